"""Which memories a command line reads or searches: what counts as *retrieved* when a model uses the shell.

The path of a file in the memory workspace says which kind of memory it is. A search counts by the full path that the
command names; Codex keeps only the last part of the path and so never counts a search. Pure: no file is opened.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from commonplace.agent.tools import shell_script
from commonplace.memory.workspace import layout

MemoryKind = Literal["memory_md", "memory_summary", "raw_memories", "rollout_summaries", "skills"]
_FILES: Final[dict[str, MemoryKind]] = {
    layout.MEMORY: "memory_md",
    layout.SUMMARY: "memory_summary",
    layout.RAW: "raw_memories",
}
_FOLDERS: Final[dict[str, MemoryKind]] = {layout.SUMMARIES: "rollout_summaries", layout.SKILLS: "skills"}


class MemoryRead(msgspec.Struct, frozen=True):
    """A part of the memory that a command read or searched."""

    kind: MemoryKind
    use: Literal["read", "search"]
    path: str
    """From the workspace."""


def reads_of(command: str | Sequence[str], *, cwd: str, home: str, user: str = "") -> tuple[MemoryRead, ...]:
    """Return the memories that a command line reads; `user` is the folder that `~` stands for."""
    effects = shell_script.effects_of(command)
    workspace = posixpath.normpath(posixpath.join(home, layout.FOLDER))
    reads: list[MemoryRead] = []
    for each in effects or ():
        if each.kind == "list":
            continue
        for path in each.paths:
            below = _below(workspace, path, cwd, user)
            kind = None if below is None else kind_of(below)
            if below is not None and kind is not None:
                reads.append(MemoryRead(kind, each.kind, below))
    return tuple(reads)


def kind_of(path: str) -> MemoryKind | None:
    """Return the kind of memory at a path of the workspace; None for other files."""
    first, _, _ = path.partition("/")
    return _FILES.get(path) or _FOLDERS.get(first)


def _below(workspace: str, path: str, cwd: str, user: str) -> str | None:
    """Return a path relative to the workspace; None if it lies elsewhere."""
    if path == "~" or path.startswith("~/"):
        if not user:
            return None
        path = user + path[1:]
    whole = posixpath.normpath(posixpath.join(cwd, path))
    return whole[len(workspace) + 1 :] if whole.startswith(f"{workspace}/") else None
