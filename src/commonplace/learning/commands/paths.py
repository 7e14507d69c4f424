"""Paths of a project in command lines: relative to its roots, temporary, or of somewhere else."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Final

from commonplace.patterns import regex

_TEMPORARY: Final = regex(
    r"(?<![\w.-])(?:/private)?/(?:tmp|var/folders|var/tmp)(?![\w.-])|\$\{?TE?MP|mktemp|scratchpad|%TE?MP%|AppData/Local/Temp"
)
_ABSOLUTE: Final = regex(r"/(?!/)|~|[A-Za-z]:[\\/]")
_WORKTREE: Final = regex(r"/(?:\.claude/|\.codex/|\.git/)?\.?worktrees/|__worktrees/")


def is_temporary(text: str) -> bool:
    """Return whether a text names a place for temporary files."""
    return _TEMPORARY.search(text.replace("\\", "/")) is not None


def is_absolute(word: str) -> bool:
    """Return whether a word is an absolute path, also one of Windows or one in the home; `//a:b` is a target."""
    return _ABSOLUTE.match(word) is not None


def is_absolute_within(text: str) -> bool:
    """Return whether a command line names an absolute path, a temporary place, or something that a shell puts in."""
    return is_temporary(text) or any(is_absolute(word) or "$" in word or "`" in word for word in text.split())


def relative(path: str, roots: Iterable[str]) -> str | None:
    """Return an absolute path relative to the deepest root that holds it: empty for the root; None if there is none."""
    found: str | None = None
    for root in roots:
        bare = root.rstrip("/")
        inside = "" if path.rstrip("/") == bare else path[len(bare) + 1 :] if path.startswith(bare + "/") else None
        if inside is not None and (found is None or len(inside) < len(found)):
            found = inside.strip("/")
    return found


def own_roots(folder: str) -> tuple[str, ...]:
    """Return the roots that a session's folder shows by itself: the folder, and the repository of its worktree."""
    found = _WORKTREE.search(folder)
    return (folder, folder[: found.start()]) if found and found.start() else (folder,)


def local(word: str, folder: str, roots: Iterable[str]) -> str | None:
    """Return an absolute path of a project as it is written in a folder of it; None for a path of somewhere else."""
    inside = relative(posixpath.normpath(word), roots)
    if inside is None:
        return None
    here = relative(folder, roots) or ""
    return posixpath.relpath(inside or ".", here or ".")
