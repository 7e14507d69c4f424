"""Merging the inputs of two hosts, file by file: a pure function of what both had, what is here and what is published.

What only one side changed is as that side has it. What both changed is kept twice: the published file keeps its name,
and the one from here gets another. What one side removed and the other changed stays. So nothing that a person wrote is
lost, whoever was first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

import msgspec

from commonplace.memory.sharing.inventory import INSIDE, FileContent
from commonplace.memory.workspace import layout
from commonplace.patterns import regex

EDITS: Final = INSIDE + layout.EDITS
_SKILL: Final = regex(rf"({re.escape(INSIDE + layout.SKILLS)}/)([^/]+)(/.+)")


class InputMerge(msgspec.Struct):
    """What a host publishes, so that it and the others have the same inputs."""

    changed: dict[str, FileContent] = {}
    removed: list[str] = []
    renamed: dict[str, str] = {}
    """Files from here that get another name, because another host has one of theirs."""


def merge(
    base: Mapping[str, str],
    here: Mapping[str, FileContent],
    published: Mapping[str, str],
    contents: Mapping[str, bytes],
    mark: str,
) -> InputMerge:
    """Return what to publish.

    `base` and `published` are hashes by path; `contents` are published contents of files that both sides may have
    changed; `mark` is what names from here end in, where they are taken.
    """
    found = InputMerge()
    for path in sorted({*base, *here}):
        was, theirs = base.get(path), published.get(path)
        ours = here[path].sha256 if path in here else None
        if ours in (was, theirs):
            continue  # nobody changed it here, or both did alike
        if ours is None:
            if theirs == was:
                found.removed.append(path)
        elif theirs in (was, None):
            found.changed[path] = here[path]
        elif path == EDITS and theirs in contents:
            found.changed[path] = FileContent(union(contents[str(theirs)], here[path].data))
        else:
            name = _free_name(path, mark, published, here)
            found.renamed[path] = name
            found.changed[name] = here[path]
    return found


def union(one: bytes, two: bytes) -> bytes:
    """Return the lines of both, each once."""
    lines = dict.fromkeys(line for data in (one, two) for line in data.split(b"\n") if line)
    return b"".join(line + b"\n" for line in lines)


def _free_name(path: str, mark: str, *taken: Mapping[str, object]) -> str:
    names = (_named(path, f"{mark}{number or ''}") for number in range(len(taken[0]) + 2))
    return next(name for name in names if not any(name in each for each in taken))


def _named(path: str, mark: str) -> str:
    """Return another name for a file; a skill is known by its folder."""
    skill = _SKILL.fullmatch(path)
    if skill is not None:
        return f"{skill[1]}{skill[2]}-{mark}{skill[3]}"
    place = PurePosixPath(path)
    return str(place.with_name(f"{place.stem}-{mark}{place.suffix}"))
