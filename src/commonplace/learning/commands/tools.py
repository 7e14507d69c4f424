"""Tools with their flags: what stays in the form of a command, what is its scope, what only narrows it."""

from __future__ import annotations

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
_MOVED_BY_TAG: Final = frozenset({"go", "pytest", "py.test", "gotestsum"})
_WORDS_OF_FORM: Final = 2


class ToolRun(msgspec.Struct):
    """A tool as a command runs it."""

    tool: str
    role: Role
    subcommand: str = ""
    flags: list[str] = msgspec.field(default_factory=list[str])
    """The flags that stay in the form."""
    modes: list[str] = msgspec.field(default_factory=list[str])
    """Modes of a formatter, which stay in the form and are not in the key."""
    words: list[str] = msgspec.field(default_factory=list[str])
    """Words that belong to the form."""
    scope: list[str] = msgspec.field(default_factory=list[str])
    folder: str = ""
    is_narrowed: bool = False
    is_binary: bool = False

    @property
    def form(self) -> str:
        """The words of the form behind the tool."""
        return " ".join(filter(None, (self.subcommand, *self.modes, *self.flags, *self.words)))

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
    rest = [word for number, word in enumerate(arguments) if number != at]
    if not _Flags(run).read(rest):
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


class _Flags:
    """Reads the flags and words of a tool from left to right."""

    def __init__(self, run: ToolRun) -> None:
        self._run: ToolRun = run
        self._is_test = run.role in _TESTS
        self._folder_flags = _FOLDER_FLAGS.get(run.tool, "").split()

    def read(self, words: Sequence[str]) -> bool:
        """Read the words; return False if the command concerns temporary files or what a shell puts in."""
        at = 0
        while at < len(words):
            word = words[at]
            following = words[at + 1] if at + 1 < len(words) else ""
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
            run.modes.append(word)
            return 1
        if self._keeps_value(name):
            return self._kept(word, "" if equals else following)
        lowered = word.lower()
        if _DROPPED.fullmatch(lowered) or _DROPPED.fullmatch(word):
            return 1
        if name.lower() in _DROPPED_WITH_VALUE or name in _DROPPED_WITH_VALUE:
            return 1 if equals or not has_value else 2
        return self._kept(word, "")

    def _keeps_value(self, name: str) -> bool:
        run = self._run
        if name in ("-f", "-a") and run.role in _STRICT:
            return False
        if name == "-p" and run.tool in _NO_SHORT_PROJECT:
            return False
        if name == "-c" and run.tool == "go":
            return False
        if name == "-m" and run.tool not in ("pytest", "py.test"):
            return False
        return name in _WITH_VALUE

    def _kept(self, word: str, value: str) -> int:
        if paths.is_temporary(f"{word} {value}") or "$(" in word + value or "`" in word + value:
            return 0
        if paths.is_absolute(value) or paths.is_absolute(word.partition("=")[2]):
            self._run.is_narrowed = True
        else:
            self._run.flags.append(f"{word} {value}" if value else word)
        return 2 if value else 1

    def _word(self, word: str) -> int:
        """Read a word that is no flag; return 0 if the command does not count."""
        run = self._run
        if paths.is_temporary(word) or "$(" in word or "`" in word:
            return 0
        if word.isdecimal() or not word or (word.startswith("+") and run.tool == "cargo"):
            return 1
        if paths.is_absolute(word) or "$" in word or (run.tool in _NO_SCOPE and run.role in _TESTS):
            run.is_narrowed = True
        elif run.role in _WORDS_IN_FORM:
            if len(run.words) < _WORDS_OF_FORM and not _VERSION.fullmatch(word):
                run.words.append(word)
        elif _is_file(word):
            run.is_narrowed = True
        else:
            self._run.scope.append(word.rstrip("/") or word)
        return 1
