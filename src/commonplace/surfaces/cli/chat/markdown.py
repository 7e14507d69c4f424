"""Streamed Markdown: finished blocks, the unfinished rest, and how they look in a terminal.

A top-level block is finished when another one begins after it: nothing that follows can change it. So a finished block
is printed once, and only the last one is drawn again while it grows. A block that grows too long is cut at a line, a
code block so that both parts are code.

Nothing that a model wrote can steer the terminal: texts are made harmless before they are parsed and again, piece by
piece, when they are drawn, since a parser may make other characters of an entity. HTML is text, links are spelled out,
and the definitions of links stay: nothing that was written is left out.
"""

from __future__ import annotations

import re
from functools import cache
from io import StringIO
from typing import ClassVar, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from commonplace.patterns import regex
from commonplace.surfaces.cli.output import safe

LONGEST: Final = 8_000
"""Characters of a block that is not finished; drawing many more, many times a second, would be felt."""
_ESCAPE: Final = regex(r"\x1b\[[0-9;]*m")
_TRAILING: Final = regex(r"(?: |\x1b\[[0-9;]{0,40}m){1,1000}$", re.MULTILINE)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("reference")


def _clean(text: str) -> str:
    return safe(text.replace("\r\n", "\n"))


class MarkdownStream:
    """Markdown text that arrives in pieces."""

    def __init__(self) -> None:
        self._rest = ""
        self.said = False
        """Something of it came."""

    def feed(self, text: str) -> None:
        """Take in a piece."""
        self.said = self.said or bool(text)
        self._rest += text

    @property
    def rest(self) -> str:
        """What is not finished, as far as it is worth drawing."""
        return self._rest[-LONGEST:]

    def finished(self) -> list[str]:
        """Return the blocks that were finished since the last call."""
        if "\n" not in self._rest:
            return []
        text = _clean(self._rest)
        blocks = [token for token in _parser().parse(text) if token.level == 0 and token.map and token.nesting >= 0]
        if not blocks:
            return []
        last = blocks[-1]
        assert last.map is not None
        lines = text.splitlines(keepends=True)
        done = ["".join(lines[slice(*block.map)]) for block in blocks[:-1] if block.map]
        self._rest = "".join(lines[last.map[0] :])
        return [*done, *self._cut(last)] if len(self._rest) > LONGEST else done

    def _cut(self, block: Token) -> list[str]:
        """Take the beginning off a block that is too long to wait for its end."""
        head, newline, tail = self._rest.rpartition("\n")
        if not newline:
            return []
        is_open = block.type == "fence" and not head.rstrip().endswith(f"\n{block.markup}")
        self._rest = f"{block.markup}{block.info}\n{tail}" if is_open else tail
        return [f"{head}\n{block.markup}" if is_open else head]

    def end(self) -> list[str]:
        """Return the blocks that are left."""
        done = self.finished()
        rest, self._rest = self._rest, ""
        return [*done, rest] if rest.strip() else done


class _Code(CodeBlock):
    """Code as it can be copied: no frame, no padding, the terminal's own background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)


class _Heading(Heading):
    """A heading on the left, marked as in the text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("#" * int(self.tag[1:]) + " ", style="bold").append_text(self.text)


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = _parser().parse(text)


class _Harmless:
    """What something draws, with every piece of text made harmless."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            if not segment.control:
                yield Segment(safe(segment.text), segment.style)


@cache
def _console() -> Console:
    # Code words without a background: the usual black one is a stain on a bright terminal.
    theme = Theme({"markdown.code": "bold cyan", "markdown.h1": "bold", "markdown.h2": "bold", "markdown.h3": "bold"})
    out = StringIO()
    return Console(file=out, theme=theme, force_terminal=True, legacy_windows=False, highlight=False, emoji=False)


def paint(what: RenderableType, width: int) -> str:
    """Return something as a terminal of this width shows it: lines without spaces at their ends."""
    console = _console()
    console.width = max(width, 8)
    with console.capture() as captured:
        console.print(_Harmless(what), end="", crop=False)
    text = captured.get()
    return _TRAILING.sub(lambda found: "".join(_ESCAPE.findall(found[0])), text).strip("\n")


def markdown(text: str, width: int) -> str:
    """Return Markdown as a terminal shows it."""
    return paint(_Markdown(_clean(text)), width)


def plain(text: str, width: int, style: str = "", *, wraps: bool = True) -> str:
    """Return words as they are; where they do not wrap, the terminal breaks lines, and they can be copied whole."""
    return paint(
        Text(_clean(text).expandtabs(4), style, no_wrap=not wraps, overflow=None if wraps else "ignore"), width
    )
