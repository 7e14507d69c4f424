"""Files that this program runs unconfined for a person: the programs of hooks and servers, and what is handed to them.

A model that could change such a file would be out of its sandbox with the next call. So each file of the workspace that
a hook or a server names is protected like the settings, and so is each place of the workspace where a program would be
found before the one that is meant.
"""

# Paths are put together as texts, as a shell would.
# ruff: noqa: PTH118

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template

from commonplace.protocol import shell

Command = str | Sequence[str]
"""A script for the shell, or a program and its arguments."""


def program_files(commands: Iterable[Command], cwd: Path, variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the paths that commands name, as far as their words tell, and where their programs are looked for."""
    known = {**variables, "PWD": str(cwd)}
    return tuple(dict.fromkeys(path for command in commands for path in _paths(command, cwd, known)))


def _paths(command: Command, cwd: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    script = command if isinstance(command, str) else shell.wrapped_script(command)
    if script is None:
        yield from _named(list(command), cwd, variables)
        return
    if not isinstance(command, str):
        yield from _named(command[:1], cwd, variables)
    for segment in shell.segments(script):
        words = [_expanded(word, variables) for word in segment.texts]
        start = shell.prefix_length(words)
        for wrapper in words[:start]:
            yield from _named([wrapper] if not shell.is_assignment(wrapper) else [], cwd, variables)
        yield from _named(words[start:], cwd, variables)
        inner = shell.wrapped_script(words[start:])
        if inner is not None and inner != script:
            yield from _paths(inner, cwd, variables)


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    if word.startswith("~/"):
        word = variables.get("HOME", "~") + word[1:]
    return Template(word).safe_substitute(variables)


def _named(words: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the candidates for the program, and the arguments that are files or look like paths."""
    for word in words[:1]:
        if "/" in word:
            yield cwd / word
        else:
            yield from _candidates(word, cwd, variables.get("PATH", os.defpath))
    for word in words[1:]:
        text = word.partition("=")[2] if word.startswith("-") else word
        if text and "\0" not in text and len(text) < 4096 and (text.startswith(("./", "../")) or _is_file(cwd / text)):
            yield cwd / text


def _candidates(name: str, cwd: Path, path: str) -> Iterator[Path]:
    """Yield where a program is looked for, up to where it is; a folder that does not exist is no such place."""
    for folder in path.split(":"):
        place = Path(os.path.join(cwd, folder, name))
        if place.parent.is_dir():
            yield place
        if _is_file(place):
            return


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long, or not allowed
        return False
