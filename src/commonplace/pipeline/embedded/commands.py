"""Commands as an extractor compares them: what they run, what for, how alike two are."""

from __future__ import annotations

import re
import shlex
from typing import Final

import msgspec

from commonplace.pipeline.embedded import tables

_SPLIT: Final = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_ASSIGN: Final = re.compile(r"[A-Za-z_]\w*=\S*")
_LOOKING: Final = tables.words("looking")
_WRAPPERS: Final = frozenset({"sudo", "time", "env", "nohup", "exec", "command", "nice", "xargs"})
_VERIFY: Final = tables.pattern("verify", r"\b", r"\b", re.NOFLAG)
_SETUP: Final = tables.pattern("set_up", r"\b", r"\b", re.NOFLAG)


_BUILD: Final = tables.pattern("build", r"\b", r"\b", re.NOFLAG)


class Command(msgspec.Struct, frozen=True):
    """A command line, taken apart."""

    line: str
    program: str
    """The first program that does more than look, with its subcommand."""
    words: frozenset[str]


def parse(line: str) -> Command:
    """Take a command line apart."""
    program = ""
    for part in _SPLIT.split(line):
        found = _program(part)
        if found and found.split()[0] not in _LOOKING:
            program = found
            break
        program = program or found
    return Command(line, program, frozenset(re.findall(r"[\w./@:=+-]+", line.lower())))


def _program(part: str) -> str:
    try:
        words = shlex.split(part, comments=False)
    except ValueError:
        words = part.split()
    while words and (_ASSIGN.fullmatch(words[0]) or words[0] in _WRAPPERS):
        words = words[1:]
    if not words:
        return ""
    name = words[0].rsplit("/", 1)[-1]
    if name in ("python", "python3", "uv", "poetry", "pdm", "npx", "bunx", "pipx", "hatch", "rye") and len(words) > 1:
        rest = [word for word in words[1:] if not word.startswith("-")]
        if "-m" in words and words.index("-m") + 1 < len(words):
            return f"{name} -m {words[words.index('-m') + 1]}"
        return f"{name} {rest[0]}" if rest else name
    rest = [word for word in words[1:3] if re.fullmatch(r"[a-z][a-z0-9:_-]{1,30}", word)]
    return f"{name} {rest[0]}" if rest else name


def is_looking(command: Command) -> bool:
    """Say whether a command only looks at things."""
    return not command.program or command.program.split()[0] in _LOOKING


def is_verifying(line: str) -> bool:
    """Say whether a command checks a project: tests, types, style."""
    return bool(_VERIFY.search(line)) and "|| true" not in line


def is_telling(line: str) -> bool:
    """Say whether how a command ends tells how the work stands: a check, or a build."""
    return is_verifying(line) or bool(_BUILD.search(line))


def is_setting_up(line: str) -> bool:
    """Say whether a command changes what is there for later commands."""
    return bool(_SETUP.search(line))


def likeness(one: Command, two: Command) -> float:
    """Return how alike two commands are, from 0 to 1."""
    if not one.words or not two.words:
        return 0.0
    shared = len(one.words & two.words) / len(one.words | two.words)
    same = one.program == two.program or one.program.split()[:1] == two.program.split()[:1]
    return min(1.0, shared + (0.3 if same else 0.0))
