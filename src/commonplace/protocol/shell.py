"""The lexer of shell command lines: a script → its segments, each one simple command with its words.

`segments` follows the grammar of a POSIX shell as far as a reader of command lines needs it: quotes, escapes, comments,
redirections, here-documents, subshells, and the operators between commands. It never evaluates anything: a word that
the shell would expand keeps its source text and is not literal. A quote or a bracket that nothing closes is an ordinary
character, and so are all quotes and brackets behind it; its segment is not closed.

The time is linear in the length of the script: each character is read once, and at most one search for a closing sign
fails. Control flow is not parsed: `if`, `do` and `{` are words like others.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from commonplace.patterns import regex

SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
_SCRIPT_FLAGS: Final = frozenset({"-c", "-lc", "-ic", "-lic", "-ilc"})
_WRAPPERS: Final = frozenset({"sudo", "time", "env", "nohup", "exec", "command", "nice", "xargs", "timeout", "stdbuf"})
"""Programs that run the command behind them."""
_ASSIGNMENT: Final = regex(r"[A-Za-z_]\w*\+?=", re.ASCII)
_NUMBER: Final = regex(r"-?[0-9]+")

_BARE: Final = regex(r"[^ \t\n'\"\\$`|&;<>()]++")
_PATTERN: Final = regex(r"[*?\[\]{}]")
_BLANKS: Final = regex(r"[ \t]++")
_OPERATOR: Final = regex(r"&&|\|\||\|&|;;&?|;&|[|;&]")
_REDIRECTION: Final = regex(r"&>>?|<<<|<<-?|<>|<&|>>|>&|>\||[<>]")
_SIMPLE_QUOTE: Final = regex(r"\"([^\"\\$`]*+)\"")
_ESCAPE: Final = regex(r"\\(?:([$`\"\\])|\n)")
_EXPANSION: Final = regex(r"(?>(?:[^\\$`]|\\.)*)[$`]", re.DOTALL)
_ANSI_QUOTE: Final = regex(r"\$'((?>(?:[^'\\]|\\.)*))'", re.DOTALL)
_INNER_HEREDOC: Final = regex(r"<<(-?)[ \t]*+(['\"]?)\\?(\w++)\2")
_SIGNS: Final = {
    ")": regex(r"['\"\\$`()<\n]|(?<![^\s(;|&])#[^\n]*+"),
    "}": regex(r"['\"\\$`}]"),
    '"': regex(r"[\"\\$`]"),
    "`": regex(r"[\\`]"),
}
"""What ends or nests inside a construct, by the sign that closes the construct."""
_OPENING: Final = regex(r"\$?[({]|[\"`]")
_CLOSING: Final = {"(": ")", "{": "}", '"': '"', "`": "`"}


_Heredoc = tuple[str, bool]
"""The line that ends a here-document, and whether tabs may stand before it."""


class Word(msgspec.Struct, frozen=True):
    """A word of a command, without its quotes and escapes."""

    text: str
    start: int
    end: int
    is_literal: bool
    """The shell passes the text on as it is. A leading `~` counts as literal."""


class Redirection(msgspec.Struct, frozen=True):
    """A redirection of a command; the target of `<<` is the mark that ends the here-document."""

    operator: str
    target: str
    start: int


class CommandSegment(msgspec.Struct, frozen=True):
    """A simple command of a script, from its first word or redirection to its last."""

    start: int
    end: int
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]
    before: str
    """The operator before the segment: `&&`, `||`, `|`, `|&`, `;`, `&`, `(`, `)`, a line break; empty at the start."""
    after: str
    has_comment: bool
    is_closed: bool
    """Every quote and bracket that the segment opens is closed in it."""

    @property
    def texts(self) -> list[str]:
        """The words as strings."""
        return [word.text for word in self.words]

    @property
    def is_fed(self) -> bool:
        """The segment reads the output of the segment before it."""
        return self.before in ("|", "|&")


@lru_cache(maxsize=1024)
def segments(script: str) -> tuple[CommandSegment, ...]:
    """Return the segments of a script in order; one without words only where an operator or a comment stands alone."""
    return tuple(_Lexer(script).run())


def pipelines(script: str) -> list[list[CommandSegment]]:
    """Return the segments of a script that have words, those that feed each other together."""
    found: list[list[CommandSegment]] = []
    for segment in segments(script):
        if segment.is_fed and found:
            found[-1].append(segment)
        elif segment.words:
            found.append([segment])
    return found


def wrapped_script(command: Sequence[str]) -> str | None:
    """Return the script of `bash -lc SCRIPT` and its like; None for other commands, also for those of PowerShell."""
    if len(command) >= 3 and posixpath.basename(command[0]) in SHELLS and command[1] in _SCRIPT_FLAGS:
        return command[2]
    return None


def is_assignment(word: str) -> bool:
    """Return whether a word before a command sets a variable for it."""
    return _ASSIGNMENT.match(word) is not None


def prefix_length(words: Sequence[str]) -> int:
    """Return how many words stand before the program: assignments, wrappers such as `sudo`, and their numbers."""
    at = 0
    while at < len(words) and (
        is_assignment(words[at]) or words[at] in _WRAPPERS or (at and _NUMBER.fullmatch(words[at]))
    ):
        at += 2 if words[at] == "timeout" else 1
    return min(at, len(words))


class _Lexer:
    """One pass over a script."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._at = 0
        self._segments: list[CommandSegment] = []
        self._depth = 0
        self._is_broken = False
        self._heredocs: list[_Heredoc] = []
        self._before = ""
        self._begin_segment()

    def _begin_segment(self) -> None:
        self._words: list[Word] = []
        self._redirections: list[Redirection] = []
        self._redirection: tuple[str, int] | None = None
        self._pieces: list[str] | None = None
        self._word_start = self._end = self._at
        self._is_literal = self._is_closed = True
        self._has_comment = False

    def run(self) -> list[CommandSegment]:
        """Return the segments."""
        script = self._script
        while self._at < len(script):
            sign = script[self._at]
            if sign in " \t":
                self._end_word()
                self._at = _BLANKS.match(script, self._at).end()  # pyright: ignore[reportOptionalMemberAccess]
            elif sign == "\n":
                self._end_segment("\n")
                self._at = self._after_heredocs(self._at, self._heredocs)
            elif sign == "#" and self._pieces is None:
                self._has_comment = True
                end = script.find("\n", self._at)
                self._at = end if end >= 0 else len(script)
            elif sign in "|&;<>":
                self._operator()
            elif sign in "()":
                self._bracket(sign)
            else:
                self._piece(sign)
        self._end_segment("")
        return self._segments

    def _operator(self) -> None:
        script, place = self._script, self._at
        if found := _REDIRECTION.match(script, place):
            if found[0] in "<>" and script.startswith("(", found.end()):
                self._add_nested(found.end() + 1, ")")  # `<(command)` is a word
                return
            is_number = self._pieces is not None and script[self._word_start : place].isdecimal()
            start = self._word_start if is_number else place
            if is_number:
                self._pieces = None  # the file descriptor that is redirected
            self._end_word()
            self._redirection = (found[0], start)
            self._at = self._end = found.end()
            return
        found = _OPERATOR.match(script, place)
        assert found is not None
        self._end_segment(found[0])

    def _bracket(self, sign: str) -> None:
        is_first = self._pieces is None and not self._words and not self._redirections
        if sign == "(" and is_first and not self._script.startswith("((", self._at):
            self._depth += 1
            self._before = "("
            self._at += 1
        elif sign == "(":
            self._add_nested(self._at + 1, ")")
        elif self._depth:
            self._depth -= 1
            self._end_segment(")")
        else:
            self._add(sign, self._at + 1, is_literal=False)

    def _piece(self, sign: str) -> None:
        """Add what comes next to the word: a quoted string, an escape, an expansion or bare characters."""
        script, place = self._script, self._at
        if sign == "\\":
            following = script[place + 1 : place + 2]
            if following == "\n":
                self._at += 2  # the line goes on
                return
            self._is_closed &= bool(following)
            self._add(following or sign, place + 2)
        elif found := _BARE.match(script, place):
            is_negation = self._pieces is None and sign == "!"
            self._add(found[0], found.end(), is_literal=not is_negation and not _PATTERN.search(found[0]))
        elif self._is_broken:
            self._add(sign, place + 1, is_literal=False)
        elif sign == "'":
            end = script.find("'", place + 1)
            if end < 0:
                self._break()
            else:
                self._add(script[place + 1 : end], end + 1)
        elif sign == '"':
            self._double_quoted()
        elif sign == "$":
            self._expansion()
        else:
            self._add_nested(place + 1, "`")

    def _double_quoted(self) -> None:
        script, place = self._script, self._at
        if found := _SIMPLE_QUOTE.match(script, place):
            self._add(found[1], found.end())
            return
        end = self._closed(place + 1, '"')
        if end < 0:
            self._break()
            return
        text = script[place + 1 : end - 1]
        self._add(_ESCAPE.sub(r"\1", text), end, is_literal=not _EXPANSION.match(text))

    def _expansion(self) -> None:
        script, place = self._script, self._at
        following = script[place + 1 : place + 2]
        if found := _ANSI_QUOTE.match(script, place):
            self._add(found[1], found.end(), is_literal=False)
        elif following and following in "({":
            self._add_nested(place + 2, ")" if following == "(" else "}")
        else:
            self._add("$", place + 1, is_literal=False)

    def _add_nested(self, inside: int, closing: str) -> None:
        """Add the construct that begins here, as its source text."""
        end = -1 if self._is_broken else self._closed(inside, closing)
        if end < 0:
            self._break()
        else:
            self._add(self._script[self._at : end], end, is_literal=False)

    def _break(self) -> None:
        """Take the sign that is never closed, and each one behind it, as a character."""
        self._is_broken, self._is_closed = True, False
        self._add(self._script[self._at], self._at + 1, is_literal=False)

    def _add(self, text: str, end: int, *, is_literal: bool = True) -> None:
        if self._pieces is None:
            self._pieces, self._word_start, self._is_literal = [], self._at, True
        self._pieces.append(text)
        self._is_literal &= is_literal
        self._at = min(end, len(self._script))

    def _end_word(self) -> None:
        if self._pieces is None:
            return
        text = "".join(self._pieces)
        self._pieces = None
        self._end = self._at
        if self._redirection is None:
            self._words.append(Word(text, self._word_start, self._at, self._is_literal))
            return
        operator, start = self._redirection
        self._redirection = None
        self._redirections.append(Redirection(operator, text, start))
        if operator in ("<<", "<<-"):
            self._heredocs.append((text, operator == "<<-"))

    def _end_segment(self, operator: str) -> None:
        self._end_word()
        if self._redirection is not None:
            self._redirections.append(Redirection(self._redirection[0], "", self._redirection[1]))
        words, redirections = tuple(self._words), tuple(self._redirections)
        is_command = bool(words or redirections)
        is_alone = self._before == "(" if operator == ")" else operator not in ("", "\n") and self._before != ")"
        if is_command or self._has_comment or is_alone:
            starts = [*(word.start for word in words[:1]), *(each.start for each in redirections[:1])]
            start, end = (min(starts), self._end) if starts else (self._at, self._at)
            before, comment, closed = self._before, self._has_comment, self._is_closed
            self._segments.append(CommandSegment(start, end, words, redirections, before, operator, comment, closed))
        if is_command or operator != "\n" or not self._before:
            self._before = operator
        self._at += len(operator)
        self._begin_segment()

    def _after_heredocs(self, place: int, pending: list[_Heredoc]) -> int:
        """Return where the script goes on behind here-documents; one without its last line has no body."""
        for heredoc in pending:
            ends = self._line_ends.get(heredoc, [])
            following = bisect_right(ends, place)
            place = ends[following] if following < len(ends) else place
        pending.clear()
        return place

    @cached_property
    def _line_ends(self) -> dict[_Heredoc, list[int]]:
        """Where the lines end that may end a here-document."""
        ends: dict[_Heredoc, list[int]] = {}
        end = 0
        for line in self._script.split("\n"):
            end += len(line) + 1
            ends.setdefault((line, False), []).append(end)
            ends.setdefault((line.lstrip("\t"), True), []).append(end)
        return ends

    def _closed(self, place: int, closing: str) -> int:
        """Return the offset behind the sign that closes a construct with its inside at `place`; -1 if there is none."""
        script = self._script
        open_signs = [closing]
        heredocs: list[_Heredoc] = []
        while open_signs:
            found = _SIGNS[open_signs[-1]].search(script, place)
            if found is None:
                return -1
            sign, place = found[0], found.end()
            if sign == open_signs[-1]:
                open_signs.pop()
            elif sign == "\\":
                place += 1
            elif sign == "'":
                place = script.find("'", place) + 1
                if not place:
                    return -1
            elif sign == "\n":
                place = self._after_heredocs(place, heredocs)
            elif heredoc := _INNER_HEREDOC.match(script, found.start()):
                heredocs.append((heredoc[3], bool(heredoc[1])))
                place = heredoc.end()
            elif quoted := open_signs[-1] == ")" and _ANSI_QUOTE.match(script, found.start()):
                place = quoted.end()
            elif opening := _OPENING.match(script, found.start()):
                open_signs.append(_CLOSING[opening[0][-1]])
                place = opening.end()
        return place
