"""A thread as a conversation: turns with what the person said and what was answered; calls between them are folded."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from commonplace.errors import BadInput
from commonplace.protocol import fragments, items
from commonplace.protocol.remotes import is_commit
from commonplace.rollout.transcript import TranscriptItem
from commonplace.sessions.inspection import Shown
from commonplace.surfaces.cli.output import one_line, terminal_width
from commonplace.surfaces.cli.views import short_project

_WIDE: Final = 10_000
"""How many columns a pipe has: nothing is wrapped there."""
_SHORT: Final = 40
"""How many lines of one message are shown without `--full`."""
_CALLS: Final = (
    items.FunctionCall
    | items.CustomToolCall
    | items.LocalShellCall
    | items.ToolSearchCall
    | items.WebSearchCall
    | items.ImageGenerationCall
)


class ConversationView:
    """Lines of text for a thread; each line fits the terminal."""

    def __init__(self, shown: Shown, *, turn: int | None, full: bool) -> None:
        self.shown = shown
        self.turn = turn
        self.full = full
        self.width = terminal_width(_WIDE)
        self.turns = max((item.turn for item in shown.items or ()), default=0)
        self._folded: list[tuple[str, bool]] = []

    def lines(self) -> Iterator[str]:
        """Yield every line.

        Raises:
            BadInput: the thread has no such turn.
        """
        if self.turn is not None and self.turn > self.turns:
            has = f"{self.turns} turn" if self.turns == 1 else f"{self.turns} turns"
            raise BadInput(f"The thread has {has}, and no turn {self.turn}.", hint="Choose one with --turn.")
        yield from self._head()
        calls = iter(self.shown.calls)
        current = -1
        for item in self.shown.items or ():
            view = items.view(item.item)
            called = (view, next(calls, None)) if isinstance(view, _CALLS) else None
            if self.turn is not None and item.turn != self.turn:
                continue
            if item.turn != current:
                yield from self._unfold()
                current = item.turn
                yield from self._turn(item)
            if called is not None and not self.full:
                self._folded.append((_name(view), called[1] is not None and called[1].ok))
                continue
            failed = called is not None and not (called[1] is not None and called[1].ok)
            body = list(self._body(view, item.kinds or [], failed=failed))
            if body:
                yield from self._unfold()
                yield from body
        yield from self._unfold()
        yield from self._end()

    def _head(self) -> Iterator[str]:
        shown = self.shown
        project = short_project(shown.project, shown.cwd) if is_commit(shown.project) else shown.project
        facts = {"thread": shown.thread_id, "source": shown.source, "project": project, "file": shown.path}
        for name, value in facts.items():
            yield from self._wrapped(value, f"{name:<8} ", " " * 9)

    def _turn(self, item: TranscriptItem) -> Iterator[str]:
        if item.turn:
            when = f" · {item.time[:16].replace('T', ' ')}" if item.time else ""
            yield ""
            yield one_line(f"── turn {item.turn} of {self.turns}{when} ──", self.width)
        for mark in self.shown.compactions:
            if mark.turn == item.turn:
                yield "   (compacted in this turn)"

    def _body(self, view: items.View, kinds: list[str], *, failed: bool) -> Iterator[str]:
        match view:
            case items.Message(role="assistant"):
                yield from self._message("".join(part.text or "" for part in view.content), "  ")
            case items.Message():
                own = _own_words(view, kinds)
                yield from self._message(own, "› ")
                if self.full and (others := _others(view, kinds, own)):
                    yield from self._message(others, "# ")
            case items.FunctionCall() | items.CustomToolCall() if self.full:
                given = view.arguments if isinstance(view, items.FunctionCall) else view.input
                yield from self._message(f"{view.name} {given}", "✗ " if failed else "$ ")
            case items.FunctionCallOutput() | items.CustomToolCallOutput() if self.full:
                yield from self._message(_output_text(view.output), "  │ ")
            case _ if self.full and isinstance(view, _CALLS):
                yield from self._message(_name(view), "✗ " if failed else "$ ")
            case _:
                return

    def _message(self, text: str, mark: str) -> Iterator[str]:
        lines = text.strip("\n").split("\n")
        kept = lines if self.full else lines[:_SHORT]
        if not text.strip():
            return
        yield ""
        rest = mark if mark.strip() == "│" else " " * len(mark)
        for number, line in enumerate(kept):
            yield from self._wrapped(line, mark if number == 0 else rest, rest)
        if len(kept) < len(lines):
            yield f"{rest}… {len(lines) - len(kept)} more lines (--full)"

    def _wrapped(self, line: str, first: str, rest: str) -> Iterator[str]:
        if len(line) + len(first) <= self.width:
            yield (first + line).rstrip()
            return
        wrapped = textwrap.wrap(
            line, max(self.width, 20), initial_indent=first, subsequent_indent=rest,
            replace_whitespace=False, drop_whitespace=True, break_on_hyphens=False,
        )  # fmt: skip
        yield from wrapped

    def _unfold(self) -> Iterator[str]:
        """Yield the calls since the last message, in one line."""
        if not self._folded:
            return
        called = Counter(name for name, _ in self._folded)
        failed = Counter(name for name, ok in self._folded if not ok)
        counts = [
            name + (f" × {count}" if count > 1 else "") + (f" ({failed[name]} failed)" if failed[name] else "")
            for name, count in called.most_common()
        ]
        self._folded = []
        yield ""
        yield from self._wrapped(", ".join(counts), "  ⚙ ", "    ")

    def _end(self) -> Iterator[str]:
        for child in self.shown.sidechains:
            yield ""
            yield f"sub-agent: commonplace sessions show {child.thread_id}"
        if count := len(self.shown.skipped):
            yield ""
            yield f"{count} stretch(es) of the file are not usable (--json lists them)"


def _own_words(message: items.Message, kinds: list[str]) -> str:
    """Return what the person said in a message; whose each part is stands beside it where its writer noted that."""
    if len(kinds) != len(message.content):
        return fragments.own_words(message)
    noted = zip(message.content, kinds, strict=True)
    return fragments.join_words(part.text for part, kind in noted if kind.startswith("user."))


def _others(message: items.Message, kinds: list[str], own: str) -> str:
    """Return what a program put into a message."""
    if len(kinds) != len(message.content):
        return "" if own else "\n".join(part.text for part in message.content if part.text)
    noted = zip(message.content, kinds, strict=True)
    return "\n".join(part.text for part, kind in noted if part.text and not kind.startswith("user."))


def _name(view: Any) -> str:
    name: str = getattr(view, "name", "") or type(view).__name__
    return one_line(name, 60)


def _output_text(output: str | list[items.Content]) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part.text or f"[{part.type}]" for part in output)
