"""Which commands of a session ran and how they ended, compared by their words.

A command that is told may leave words off (`pip install` for `pip install -e .`), also in the middle, but adds none: it
names the same program, and its words stand in the one that ran in the same order.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Final

from commonplace.learning.reading.session_view import ToolUse
from commonplace.patterns import regex
from commonplace.protocol import shell

_MAX_COMMANDS: Final = 32
"""How many commands of one line are compared."""
_PROGRAM: Final = regex(r"[a-z][\w.+-]*")
Words = tuple[str, ...]


class RanCommands:
    """The commands that ran in a session."""

    def __init__(self, calls: Sequence[ToolUse]) -> None:
        self._runs = [(words, call.ok) for call in calls for words in _commands(call.command)]
        self._programs = {_program(words) for words, _ in self._runs}

    def is_command(self, code: str) -> bool:
        """Say whether a text is a command: its program ran here, or it is a program with arguments by its looks."""
        told = list(_commands(code))
        programs = {_program(words) for words in told}
        if programs & self._programs:
            return True
        return any(len(words) > 1 and _PROGRAM.fullmatch(words[0]) and "=" not in words[1] for words in told)

    def has_run(self, code: str, *, ok: bool | None = None) -> bool:
        """Say whether every command of a text ran, and ended so if that matters."""
        told = list(_commands(code))
        ran = [words for words, ended in self._runs if ok is None or ended is ok]
        return bool(told) and all(any(_is_part(words, known) for known in ran) for words in told)


def _commands(script: str) -> Iterator[Words]:
    """Yield the words of each command of a line, also of those that it gives to a shell."""
    for segment in shell.segments(script.rstrip("… "))[:_MAX_COMMANDS]:
        words = tuple(segment.texts)
        inner = shell.wrapped_script(words[shell.prefix_length(words) :])
        if inner is not None:
            yield from (tuple(each.texts) for each in shell.segments(inner)[:_MAX_COMMANDS] if each.words)
        elif words:
            yield words


def _program(words: Words) -> str:
    bare = words[shell.prefix_length(words) :] or words
    return posixpath.basename(bare[0])


def _is_part(told: Words, ran: Words) -> bool:
    """Say whether a command is another one, or that with words left off."""
    if _program(told) != _program(ran):
        return False
    rest = iter([*ran[: shell.prefix_length(ran)], _program(ran), *ran[shell.prefix_length(ran) + 1 :]])
    wanted = [*told[: shell.prefix_length(told)], _program(told), *told[shell.prefix_length(told) + 1 :]]
    return all(word in rest for word in wanted)
