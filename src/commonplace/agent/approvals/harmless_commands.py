"""Commands that are known to change nothing, and prefixes of commands that a person allowed. Pure.

A script is harmless if every command in it is; a script with variables, substitutions or redirections is not known to
be. An allowed prefix is the first words of a command; a script is allowed if each of its commands is harmless or begins
with an allowed prefix.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from commonplace.agent.tools import shell_script

Prefix = tuple[str, ...]
_SED: Final = re.compile(r"\d+(?:,\d+)?p")
_SED_WORDS: Final = (3, 4)
_DEEP: Final = frozenset(
    {"git", "npm", "pnpm", "yarn", "cargo", "go", "docker", "kubectl", "make", "uv", "pip", "poetry", "gh", "python3"}
)
"""Programs whose second word decides what they do; it belongs to their prefix."""
_NEVER: Final = frozenset(
    {"bash", "sh", "zsh", "dash", "env", "sudo", "su", "xargs", "eval", "exec", "nohup", "time", "timeout"}
    | {"rm", "rmdir", "mv", "ln", "dd", "tee", "chmod", "chown", "kill", "pkill", "killall", "mkfs", "mount"}
    | {"curl", "wget", "ssh", "scp", "rsync"}
)
"""Programs without a useful prefix: they run other programs, or their name says too little about what they do."""


class _CommandTable(msgspec.Struct, frozen=True):
    always: frozenset[str]
    unless: dict[str, list[str]]
    git: dict[str, list[str]]


@cache
def _table() -> _CommandTable:
    text = Path(__file__).with_name("harmless_commands.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _CommandTable)


def is_harmless(command: Sequence[str]) -> bool:
    """Return whether a command line is known to change nothing."""
    commands = _commands(command)
    return bool(commands) and all(map(_is_reading, commands))


def is_allowed(command: Sequence[str], prefixes: Collection[Prefix]) -> bool:
    """Return whether each command of a command line is harmless or begins with an allowed prefix."""
    changing = [words for words in _commands(command) or () if not _is_reading(words)]
    return bool(changing) and all(
        any(tuple(words[: len(prefix)]) == prefix for prefix in prefixes) for words in changing
    )


def prefixes_of(command: Sequence[str]) -> tuple[Prefix, ...]:
    """Return the prefixes that would allow a command line; none if one of its commands has no useful prefix."""
    commands = _commands(command)
    found: list[Prefix] = []
    for words in commands or ():
        if _is_reading(words):
            continue
        if words[0] in _NEVER or "/" in words[0]:
            return ()
        deep = words[0] in _DEEP and len(words) > 1 and not words[1].startswith("-")
        found.append(tuple(words[: 2 if deep else 1]))
        if words[0] in _DEEP and not deep:
            return ()
    return tuple(dict.fromkeys(found))


def _commands(command: Sequence[str]) -> list[list[str]] | None:
    script = shell_script.script_of(command)
    if not isinstance(script, str):
        return [script]
    return shell_script.split(script)


def _is_reading(words: list[str]) -> bool:
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
    """Return whether one of the arguments is refused, also as `--name=value` and `-xvalue`."""
    if "*" in refused:
        return bool(arguments)
    for argument in arguments:
        if argument.partition("=")[0] in refused:
            return True
        if any(len(each) == 2 and each[0] == "-" and argument.startswith(each) for each in refused):
            return True
    return False
