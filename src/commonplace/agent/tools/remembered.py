"""Which memories a command line reads or searches: what counts as *retrieved* when a model uses the shell (spec §4).

The kind of a memory is told by its place in the workspace. A search counts by the full operand that it names, where the
model that we follow keeps only the last part of it and so never counts one. Pure: no file is looked at.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from commonplace.agent.tools import scripts
from commonplace.memory.workspace import layout

MemoryKind = Literal["memory_md", "memory_summary", "raw_memories", "rollout_summaries", "skills"]
_FILES: Final[dict[str, MemoryKind]] = {
    layout.MEMORY: "memory_md",
    layout.SUMMARY: "memory_summary",
    layout.RAW: "raw_memories",
}
_FOLDERS: Final[dict[str, MemoryKind]] = {layout.SUMMARIES: "rollout_summaries", layout.SKILLS: "skills"}


class Retrieved(msgspec.Struct, frozen=True):
    """A part of the memory that a command read or searched."""

    kind: MemoryKind
    use: Literal["read", "search"]
    path: str
    """From the workspace."""


def of_command(command: str | Sequence[str], *, cwd: str, home: str, user: str = "") -> tuple[Retrieved, ...]:
    """Return what a command line retrieves; `user` is the folder that `~` stands for."""
    done = scripts.what(command)
    workspace = posixpath.normpath(posixpath.join(home, layout.FOLDER))
    found: list[Retrieved] = []
    for each in done or ():
        if each.kind == "list":
            continue
        for path in each.paths:
            below = _below(workspace, path, cwd, user)
            kind = None if below is None else kind_of(below)
            if below is not None and kind is not None:
                found.append(Retrieved(kind, each.kind, below))
    return tuple(found)


def kind_of(path: str) -> MemoryKind | None:
    """Return what kind of memory stands at a path of the workspace."""
    first, _, _ = path.partition("/")
    return _FILES.get(path) or _FOLDERS.get(first)


def _below(workspace: str, path: str, cwd: str, user: str) -> str | None:
    """Return an operand as a path from the workspace; None if it lies elsewhere."""
    if path == "~" or path.startswith("~/"):
        if not user:
            return None
        path = user + path[1:]
    whole = posixpath.normpath(posixpath.join(cwd, path))
    return whole[len(workspace) + 1 :] if whole.startswith(f"{workspace}/") else None
