"""Which commands only look, and how commands are remembered that a person allowed. Pure.

A script is harmless if every plain command in it is; one that the shell would work out further (variables,
substitutions, redirections) is not known to be. An allowed prefix is the first words of a command; a script may run
if each of its commands is harmless or begins with one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent.tools import scripts

Prefix = tuple[str, ...]
_SED: Final = re.compile(r"\d+(?:,\d+)?p")
_SED_WORDS: Final = (3, 4)
_DEEP: Final = frozenset(
    {"git", "npm", "pnpm", "yarn", "cargo", "go", "docker", "kubectl", "make", "uv", "pip", "poetry", "gh", "python3"}
)
"""Programs that do this or that by their second word."""
_NEVER: Final = frozenset(
    {"bash", "sh", "zsh", "dash", "env", "sudo", "su", "xargs", "eval", "exec", "nohup", "time", "timeout"}
    | {"rm", "rmdir", "mv", "ln", "dd", "tee", "chmod", "chown", "kill", "pkill", "killall", "mkfs", "mount"}
    | {"curl", "wget", "ssh", "scp", "rsync"}
)
"""Programs that run whatever is given to them, or whose name says too little of what they will do."""


class _Table(msgspec.Struct, frozen=True):
    always: frozenset[str]
    unless: dict[str, list[str]]
    git: dict[str, list[str]]


@cache
def _table() -> _Table:
    text = Path(__file__).with_name("harmless.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Table)


def is_harmless(command: Sequence[str]) -> bool:
    """Say whether a command line is known to change nothing."""
    commands = _commands(command)
    return bool(commands) and all(map(_only_looks, commands))


def is_allowed(command: Sequence[str], prefixes: Collection[Prefix]) -> bool:
    """Say whether a person allowed a command line before, by the first words of all that it runs."""
    doing = [words for words in _commands(command) or () if not _only_looks(words)]  # of looking nothing was said
    return bool(doing) and all(any(tuple(words[: len(prefix)]) == prefix for prefix in prefixes) for words in doing)


def prefixes_of(command: Sequence[str]) -> tuple[Prefix, ...]:
    """Return the first words that would allow a command line in the future; none if no such words mean anything."""
    commands = _commands(command)
    found: list[Prefix] = []
    for words in commands or ():
        if _only_looks(words):
            continue
        if words[0] in _NEVER or "/" in words[0]:
            return ()
        deep = words[0] in _DEEP and len(words) > 1 and not words[1].startswith("-")
        found.append(tuple(words[: 2 if deep else 1]))
        if words[0] in _DEEP and not deep:
            return ()
    return tuple(dict.fromkeys(found))


def _commands(command: Sequence[str]) -> list[list[str]] | None:
    script = scripts.script_of(command)
    if not isinstance(script, str):
        return [script]
    return scripts.split(script)


def _only_looks(words: list[str]) -> bool:
    table, name = _table(), words[0]
    if name == "cd":
        return len(words) == 2
    if name == "sed":  # only to print a stretch of lines
        return len(words) in _SED_WORDS and words[1] == "-n" and _SED.fullmatch(words[2]) is not None
    if name == "uniq":  # a second operand is written to
        return sum(not word.startswith("-") for word in words[1:]) <= 1
    if name == "git":
        return _git(words)
    if name in table.unless:
        return not _has(words[1:], table.unless[name])
    return name in table.always


def _git(words: list[str]) -> bool:
    if len(words) < 2 or words[1].startswith("-"):  # options before the sub-command can run programs
        return False
    refused = _table().git.get(words[1])
    return refused is not None and not _has(words[2:], refused)


def _has(arguments: Sequence[str], refused: Sequence[str]) -> bool:
    """Say whether an argument is one of those, also as `--name=value` and `-xvalue`."""
    if "*" in refused:
        return bool(arguments)
    for argument in arguments:
        if argument.partition("=")[0] in refused:
            return True
        if any(len(each) == 2 and each[0] == "-" and argument.startswith(each) for each in refused):
            return True
    return False
