"""Commands as an extractor compares them: what they run, what for, how alike two are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from commonplace.learning.reading import tables
from commonplace.patterns import regex
from commonplace.protocol import shell

_SPACE: Final = regex(r"\s+")
_WAIT: Final = regex(r"^(?:sleep \S+\s*(?:;|&&)\s*)+")
_SHOWN: Final = regex(r"(?:(?<!\s)\s+)?(?:(?:2>&1\s*)?\|\s*(?:tail|head|tee|grep|cat|less)\b[^|]*$|2>&1$)")
_LOOKING: Final = tables.words("looking")
_LOOKS: Final = tables.pattern("looking_commands")
_RUNNERS: Final = frozenset(
    {"python", "python3", "uv", "poetry", "pdm", "npx", "bunx", "pipx", "hatch", "rye", "bundle"}
)
_CONFIRMS: Final = tables.pattern("confirming")
_OF_HOSTS: Final = tables.words("of_hosts")
_VERIFY: Final = tables.pattern("verify", r"(?:^|[\s/])", r"(?![\w-])", re.NOFLAG)
_CHECKS: Final = tables.pattern("checks", flags=re.NOFLAG)
_NOT_CHECKING: Final = tables.words("not_checking")
_BUILD: Final = tables.pattern("build", r"\b", r"\b", re.NOFLAG)
_MESSAGE: Final = regex(r"(\bcommit(?: -[a-ln-zA-Z]\w{0,40}){0,9}) -\w{0,40}m (?:\"[^\"]*\"|'[^']*')")
_ASSIGNED: Final = regex(r"(?<![\w$-])([A-Z0-9_]{1,80}+)=(?:\"[^\"$]*\"|'[^']*'|[^\s'\"$;&|]++)")
_SECRET_NAME: Final = regex(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|COOKIE")
_INSTALLS: Final = tables.pattern("installs")
_TAKES_BACK: Final = tables.pattern("takes_back", flags=re.NOFLAG)
_SUBCOMMAND: Final = regex(r"[a-z][a-z0-9:_-]{1,30}")
_HIDES: Final = regex(r"\|\| *(?:true|:|echo)|; *true$")


class Command(msgspec.Struct, frozen=True):
    """A command line, taken apart."""

    line: str
    """The line, without waiting before it and without what only shows its output."""
    program: str
    """The first program that does more than look, with its subcommand."""
    looks: bool
    """It only looks at things."""


@lru_cache(maxsize=2048)
def parse(line: str) -> Command:
    """Take a command line apart."""
    bare = _SHOWN.sub("", _WAIT.sub("", _tidy(line)))
    program, looks = "", True
    for part in _parts(bare):
        found = _program(part.words)
        if not found:
            continue
        if found.split()[0] not in _LOOKING and not _LOOKS.search(part.text):
            program, looks = found, False
            break
        program = program or found
    return Command(bare, program, looks)


def _tidy(line: str) -> str:
    """Return a line with single spaces, so that no pattern has to try many."""
    return _SPACE.sub(lambda found: "\n" if "\n" in found[0] else " ", line.strip())


class _Part(msgspec.Struct, frozen=True):
    """A pipeline of a line, without assignments and wrappers before its program."""

    text: str
    words: list[str]
    """The words of the first command, at least one."""


def _parts(line: str) -> Iterator[_Part]:
    for first, *rest in shell.pipelines(line):
        before = shell.prefix_length(first.texts)
        if before < len(first.words) and first.words[before].text.strip():
            end = rest[-1].end if rest else first.end
            yield _Part(" ".join(line[first.words[before].start : end].split()), first.texts[before:])


def _program(words: list[str]) -> str:
    name = words[0].rsplit("/", 1)[-1]
    if name in _RUNNERS and len(words) > 1:
        if words[1] == "-c":  # what follows is code
            return f"{name} -c"
        rest = [word for word in words[1:] if not word.startswith("-")]
        if "-m" in words and words.index("-m") + 1 < len(words):
            return f"{name} -m {words[words.index('-m') + 1]}"
        if rest and rest[0] in ("run", "exec") and len(rest) > 1:
            return f"{name} {rest[0]} {rest[1]}"
        return f"{name} {rest[0]}" if rest else name
    rest = [word for word in words[1:3] if _SUBCOMMAND.fullmatch(word)] if name not in _OF_HOSTS else []
    return f"{name} {rest[0]}" if rest else name


def is_looking(command: Command) -> bool:
    """Say whether a command only looks at things."""
    return not command.program or command.looks


def confirms(command: Command) -> bool:
    """Say whether a command asks whether something works, and fails if it does not: a request of a health page."""
    return _CONFIRMS.search(command.line) is not None


@lru_cache(maxsize=2048)
def is_verifying(line: str) -> bool:
    """Say whether a command checks a project (tests, types, style) and tells by its end how that went."""
    return not _HIDES.search(line) and any(map(_checks, _parts(_SHOWN.sub("", _tidy(line)))))


def _checks(part: _Part) -> bool:
    """Say whether one command of a line is a check: known by its name, or called so by the project."""
    bare, words = part.text, part.text.split()
    if words[0].rsplit("/", 1)[-1] in _LOOKING or _LOOKS.search(bare) or _INSTALLS.search(bare):
        return False
    if _VERIFY.search(bare):
        return True
    return words[0] not in _NOT_CHECKING and any(
        _CHECKS.search(word) for word in words[:4] if "=" in word or not word.startswith("--")
    )


@lru_cache(maxsize=2048)
def is_telling(line: str) -> bool:
    """Say whether how a command ends tells how the work stands: a check, or a build."""
    return is_verifying(line) or (bool(_BUILD.search(line)) and not _HIDES.search(line))


def takes_back(line: str) -> bool:
    """Say whether a command takes work back."""
    return bool(_TAKES_BACK.search(line))


def shown(line: str) -> str:
    """Return a command as it is told: without what a commit says, and without values that are secret by name."""
    return _ASSIGNED.sub(_without_secret, _MESSAGE.sub(r"\1", line))


def _without_secret(assigned: re.Match[str]) -> str:
    return f"{assigned[1]}=…" if _SECRET_NAME.search(assigned[1]) else assigned[0]
