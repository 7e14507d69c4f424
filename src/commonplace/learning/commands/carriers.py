"""Carriers: programs that run another one, as `npx`, `uv run` and `docker compose exec web` do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.learning.commands import tables
from commonplace.learning.commands.calls import program_name
from commonplace.protocol import shell

_TABLE: Final = tables.table("forms")["carriers"]
_CARRIERS: Final = {tuple(line.split()) for line in _TABLE["words"]}
_LONGEST: Final = max(map(len, _CARRIERS))
_FIRST: Final = frozenset(words[0] for words in _CARRIERS)
_WITH_PLACE: Final = {tuple(line.split()) for line in _TABLE["with_place"]}
_SILENT: Final = tables.words("forms", "carriers", "silent")
_VALUE_FLAGS: Final = tables.words("forms", "carriers", "value_flags")
_FOLDER_FLAGS: Final = tables.words("forms", "carriers", "folder_flags")
_MAX_CARRIERS: Final = 3


class Carried(msgspec.Struct, frozen=True):
    """A command behind its carriers."""

    words: tuple[str, ...]
    """The command itself; empty if a carrier runs nothing that is written here."""
    carrier: str = ""
    """The carriers as one writes them."""
    key: str = ""
    """The carriers that make another command of what they carry."""
    folder: str = ""
    """The folder that a carrier moves to."""


def carried(words: Sequence[str]) -> Carried:
    """Return a command without the carriers before it."""
    shown: list[str] = []
    key: list[str] = []
    folder = ""
    rest = tuple(words)
    for _ in range(_MAX_CARRIERS):
        name = _carrier(rest)
        if not name:
            break
        following, moved, place = _behind(rest, len(name), has_place=name in _WITH_PLACE)
        if not following:
            return Carried(())
        has_dashes = "--" in rest[len(name) : len(rest) - len(following)]
        shown += [*name, *place, *(["--"] if has_dashes else [])]
        key += [] if name[0] in _SILENT else [*_plain(name), *place]
        folder = moved or folder
        rest = following
    return Carried(rest, " ".join(shown), " ".join(key), folder)


def _carrier(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the carrier that a command begins with."""
    if not words:
        return ()
    program = program_name(words[0])
    if program.startswith("python") and words[1:2] == ("-m",):
        return (words[0], "-m")
    if program not in _FIRST:
        return ()
    for length in range(min(_LONGEST, len(words)), 0, -1):
        if (program, *words[1:length]) in _CARRIERS:
            return tuple(words[:length])
    return ()


def _plain(name: tuple[str, ...]) -> list[str]:
    program = program_name(name[0])
    return ["python" if program.startswith("python") else program, *name[1:]]


def _behind(words: tuple[str, ...], at: int, *, has_place: bool) -> tuple[tuple[str, ...], str, list[str]]:
    """Return what a carrier runs, the folder it moves to, and the place that it names."""
    folder = ""
    place: list[str] = []
    while at < len(words):
        word = words[at]
        name, equals, value = word.partition("=")
        if word == "--":
            return words[at + 1 :], folder, place
        if name in _FOLDER_FLAGS:
            folder = value if equals else (words[at + 1 : at + 2] or ("",))[0]
        if word.startswith("-"):
            at += 2 if name in _VALUE_FLAGS and not equals else 1
        elif shell.is_assignment(word):
            at += 1
        elif has_place and not place:
            place = [word]
            at += 1
        elif _names_version(word) and "--" in words[at:]:
            at = words.index("--", at)
        else:
            break
    return words[at:], folder, place


def _names_version(word: str) -> bool:
    """Return whether a word names a tool and its version, as `node@22` does."""
    return "@" in word[1:]
