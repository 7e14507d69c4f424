"""Tools with their flags: what stays in the form of a command, what is its scope, what only narrows it.

A form is a command that works: its words stand in the order in which they were typed. The key, which makes it another
command than others of its tool, has less: values that change from run to run are not in it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.learning.commands import paths, roles, tables
from commonplace.learning.commands.roles import Role
from commonplace.patterns import regex

_DROPPED: Final = tables.pattern("forms", "flags", "dropped")
_DROPPED_WITH_VALUE: Final = tables.words("forms", "flags", "dropped_with_value")
_WITH_VALUE: Final = tables.words("forms", "flags", "with_value")
_FILTERS: Final = tables.words("forms", "flags", "filters")
_NOISE: Final = tables.pattern("forms", "flags", "noise")
_SWITCHES: Final = tables.words("forms", "flags", "switches")
_MESSAGES: Final = tables.words("forms", "flags", "messages")
_TOOL_VALUES: Final[dict[str, str]] = tables.table("forms")["tool_values"]
_WHOLE: Final = tables.words("forms", "scope", "whole")
_MODES: Final = tables.words("forms", "flags", "modes")
_SHOWS_ONLY: Final = tables.words("forms", "flags", "shows_only")
_NO_SCOPE: Final = tables.words("forms", "scope", "none")
_WORDS_IN_FORM: Final = tables.words("forms", "scope", "in_form")
_TOOL_WORDS: Final[dict[str, str]] = tables.table("forms")["tool_words"]
_FOLDER_FLAGS: Final[dict[str, str]] = tables.table("forms")["folder_flags"]
_TESTS: Final = frozenset({"test", "integration", "e2e"})
_STRICT: Final = frozenset({"test", "integration", "e2e", "lint", "typecheck", "format", "bench"})
"""Roles whose short flags `-f` and `-a` are switches."""
_NO_SHORT_PROJECT: Final = frozenset({"pytest", "py.test", "jest", "vitest"})
_FILE_END: Final = regex(r"\.[A-Za-z]{1,5}(?::\d{1,6}){0,2}\Z")
_VERSION: Final = regex(r"v?\d++(?>(?:\.\d++)*)\S*|[^@]+@\S+")
_SPECIAL: Final = regex(r"integration|e2e")
_PARTS: Final = regex(r"[/_.,=: -]++")
_PLAIN_WORD: Final = regex(r"[\w,:@+-]{1,60}")
_QUOTED: Final = regex(r"[\s'\"\\;&|<>(){}#!]")
_OF_ONE_RUN: Final = regex(r"[\d=\s{}'\"]")
_MOVED_BY_TAG: Final = frozenset({"go", "pytest", "py.test", "gotestsum"})
_WORDS_OF_FORM: Final = 2


class ToolRun(msgspec.Struct):
    """A tool as a command runs it."""

    tool: str
    role: Role
    subcommand: str = ""
    parts: list[str] = msgspec.field(default_factory=list[str])
    """The words of the form behind the tool, quoted where they must be."""
    flags: list[str] = msgspec.field(default_factory=list[str])
    """The flags of the key."""
    words: list[str] = msgspec.field(default_factory=list[str])
    """The other words of the key."""
    scope: list[str] = msgspec.field(default_factory=list[str])
    folder: str = ""
    is_narrowed: bool = False
    is_binary: bool = False

    @property
    def form(self) -> str:
        """The words of the form behind the tool."""
        return " ".join(self.parts)

    @property
    def key(self) -> str:
        """What makes the command another one than others of the tool, `--flag=x` and `--flag x` being the same."""
        flags = sorted(flag.replace("=", " ", 1).replace("--", "-", 1) for flag in self.flags)
        return " ".join(filter(None, (self.subcommand, *flags, *self.words)))


def tool_run(tool: str, arguments: Sequence[str]) -> ToolRun | None:
    """Return how a tool is run; None if it has no role, only shows something, or concerns temporary files."""
    found = _role_and_subcommand(tool, arguments)
    if found is None or not _SHOWS_ONLY.isdisjoint(arguments):
        return None
    role, subcommand, at = found
    run = ToolRun(tool, role, subcommand)
    if not _Flags(run).read(arguments, at):
        return None
    _move_by_tag(run)
    return run


def _role_and_subcommand(tool: str, arguments: Sequence[str]) -> tuple[Role, str, int] | None:
    """Return the role of a tool, its subcommand and the place of that (-1 for none)."""
    at = _first_word(tool, arguments)
    first = arguments[at] if at >= 0 else ""
    by_subcommand = roles.subcommands(tool)
    if first in by_subcommand and first:
        return by_subcommand[first], first, at
    flag = next((word for word in arguments if word in by_subcommand), "")
    if flag:
        return by_subcommand[flag], flag, list(arguments).index(flag)
    if (role := roles.role_of_tool(tool)) is None:
        role = by_subcommand.get("") if not first or tool in ("ruff", "vite", "hugo", "electron", "vercel") else None
        return None if role is None else (role, "", -1)
    known = _TOOL_WORDS.get(tool)
    if known is not None and first in known.split():
        return role, first, at
    return None if known and tool == "golangci-lint" else (role, "", -1)


def _first_word(tool: str, arguments: Sequence[str]) -> int:
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if not word.startswith(("-", "+")):
            return at
        at += 2 if word in _WITH_VALUE or word in _FOLDER_FLAGS.get(tool, "").split() else 1
    return -1


def _move_by_tag(run: ToolRun) -> None:
    """Move tests that a tag, a marker or a path calls integration or end-to-end tests to that role."""
    if run.role != "test" or run.tool not in _MOVED_BY_TAG:
        return
    parts = {part for word in (*run.flags, *run.scope) for part in _PARTS.split(word)}
    for part in sorted(parts):
        if _SPECIAL.fullmatch(part):
            run.role = "e2e" if part == "e2e" else "integration"


def _is_file(word: str) -> bool:
    """Return whether a word names a file, several files by a pattern, or a test in a file."""
    return "::" in word or any(sign in word for sign in "*?[") or _FILE_END.search(word) is not None


def _is_value(flag: str, following: str) -> bool:
    """Return whether the word behind a flag that is not known is its value: no path, or a word that needs quotes."""
    if not flag.startswith("--") or following in _WHOLE:
        return False
    return _PLAIN_WORD.fullmatch(following) is not None or _OF_ONE_RUN.search(following) is not None


def _is_absolute(word: str, value: str) -> bool:
    return paths.is_absolute(value) or paths.is_absolute(word.partition("=")[2])


def _quoted(word: str) -> str:
    """Return a word as a shell takes it."""
    return shlex.quote(word) if _QUOTED.search(word) else word


class _Flags:
    """Reads the flags and words of a tool from left to right."""

    def __init__(self, run: ToolRun) -> None:
        self._run: ToolRun = run
        self._is_test = run.role in _TESTS
        self._is_strict = run.role in _STRICT
        self._folder_flags = _FOLDER_FLAGS.get(run.tool, "").split()
        self._values = _TOOL_VALUES.get(run.tool, "").split()

    def read(self, words: Sequence[str], subcommand: int) -> bool:
        """Read the words; return False if the command concerns temporary files or what a shell puts in."""
        at = 0
        while at < len(words):
            word = words[at]
            following = words[at + 1] if at + 1 < len(words) and at + 1 != subcommand else ""
            if at == subcommand:
                self._run.parts.append(word)
                at += 1
                continue
            if word == "--":
                self._run.is_narrowed |= at + 1 < len(words)
                return True
            width = self._flag(word, following) if word.startswith("-") and word != "-" else self._word(word)
            if not width:
                return False
            at += width
        return True

    def _flag(self, word: str, following: str) -> int:
        """Read a flag; return how many words it takes, 0 if the command does not count."""
        run = self._run
        name, equals, value = word.partition("=")
        has_value = bool(following) and not following.startswith("-")
        if name == "-o" and run.tool == "go":
            run.parts.append("-o <out>")
            run.flags.append("-o <out>")
            run.is_binary = True
            return 1 if equals else 2
        if name in self._folder_flags:
            folder = value if equals else following
            run.folder = folder.rpartition("/")[0] if folder.endswith(".toml") else folder
            return 1 if equals else 2
        if name in _FILTERS and self._is_test:
            run.is_narrowed = True
            return 1 if equals else 2
        if run.role == "format" and word in _MODES:
            run.parts.append(word)
            return 1
        if name in _MESSAGES and not self._is_strict:
            run.parts.append(f"{name} …")
            return 1 if equals else 2
        if self._keeps_value(name):
            return self._kept(word, "" if equals else following, is_key=name not in self._values)
        if name.lower() in _DROPPED_WITH_VALUE or name in _DROPPED_WITH_VALUE:
            width = 1 if equals or not has_value else 2
            return width if self._is_strict else self._shown(word, following if width == 2 else "")
        if _DROPPED.fullmatch(word.lower()) or _DROPPED.fullmatch(word):
            return 1 if self._is_strict or _NOISE.fullmatch(word) else self._shown(word, "")
        is_value = has_value and not equals and name not in _SWITCHES and _is_value(name, following)
        return self._kept(word, following if is_value else "", is_key=not is_value)

    def _keeps_value(self, name: str) -> bool:
        run = self._run
        if name in self._values:
            return True
        if name in ("-f", "-a") and self._is_strict:
            return False
        if name == "-p" and run.tool in _NO_SHORT_PROJECT:
            return False
        if name == "-c" and run.tool == "go":
            return False
        if name == "-m" and run.tool not in ("pytest", "py.test"):
            return False
        return name in _WITH_VALUE

    def _kept(self, word: str, value: str, *, is_key: bool = True) -> int:
        """Keep a flag in the form and in the key, there without a value that is of one run if `is_key` is False."""
        width = self._shown(word, value)
        if width and not _is_absolute(word, value):
            is_of_one_run = not is_key and not self._is_strict and _OF_ONE_RUN.search(value) is not None
            self._run.flags.append(word if is_of_one_run or not value else f"{word} {value}")
        return width

    def _shown(self, word: str, value: str) -> int:
        """Keep a flag in the form; return how many words it takes, 0 if the command does not count."""
        if paths.is_temporary(f"{word} {value}") or "$(" in word + value or "`" in word + value:
            return 0
        if _is_absolute(word, value):
            self._run.is_narrowed = True
        else:
            self._run.parts.append(f"{_quoted(word)} {_quoted(value)}" if value else _quoted(word))
        return 2 if value else 1

    def _word(self, word: str) -> int:
        """Read a word that is no flag; return 0 if the command does not count."""
        run = self._run
        if paths.is_temporary(word) or "$(" in word or "`" in word:
            return 0
        if not word or (word.startswith("+") and run.tool == "cargo"):
            return 1
        if paths.is_absolute(word) or "$" in word or (run.tool in _NO_SCOPE and run.role in _TESTS):
            run.is_narrowed = True
        elif run.role in _WORDS_IN_FORM:
            run.parts.append(_quoted(word))
            if len(run.words) < _WORDS_OF_FORM and not word.isdecimal() and not _VERSION.fullmatch(word):
                run.words.append(word)
        elif _is_file(word):
            run.is_narrowed = True
        elif not word.isdecimal():
            self._run.scope.append(_quoted(word.rstrip("/") or word))
        return 1
