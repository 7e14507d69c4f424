"""Paths that no confined command may change, even in folders that it can write: Git's files, and this program itself.

Git runs programs that its folder names (hooks, filters, watchers), with the rights of the person who runs `git`. So
that folder is protected in every workspace, whether it exists or not, and so are those that a `.git` file points to.
This program runs outside every sandbox: a command that could change its code would escape.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from commonplace.agent.sandbox.policy import SandboxPolicy

_GIT: Final = ".git"
_POINTS: Final = "gitdir:"
_PARTS: Final = ("HEAD", "objects", "refs")
"""Names by which a bare repository is recognised."""
_SHARED: Final = "commondir"
"""A file that says where the objects of a repository are: `HEAD` and it are enough to be taken for a bare one."""
_DANGEROUS: Final = ("config", "hooks", "info", "worktrees", "modules")
"""What of a bare repository can name programs that Git runs."""
_MOST: Final = 4096
"""Bytes of a `.git` file that are read."""


def paths(policy: SandboxPolicy) -> tuple[Path, ...]:
    """Return all protected paths, some of which may not exist; links are not followed."""
    found = [*policy.protected]
    for root in policy.workspaces():
        found.extend(git_paths(root))
    # A shared temporary folder gets no placeholder: only a `.git` that exists is protected.
    found.extend(root / _GIT for root in policy.temporary() if os.path.lexists(root / _GIT))
    return tuple(dict.fromkeys(path.absolute() for path in found))


def git_paths(root: Path) -> Iterator[Path]:
    """Yield the paths of Git's own files for a working folder."""
    yield root / _GIT
    has_shared = os.path.lexists(root / _SHARED)  # never held where it does not exist: git could not read it
    if (root / _PARTS[0]).exists() and (has_shared or all((root / part).exists() for part in _PARTS)):
        yield from (root / name for name in ((*_DANGEROUS, _SHARED) if has_shared else _DANGEROUS))
    kept = _pointed(root / _GIT)
    if kept is not None:
        yield kept
        common = _line(kept / "commondir")
        if common:
            yield kept / common


def _pointed(path: Path) -> Path | None:
    line = _line(path)
    if not line.startswith(_POINTS):
        return None
    return path.parent / line.removeprefix(_POINTS).strip()


def _line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_MOST).split(b"\n")[0].strip())
    except OSError:
        return ""


def program_paths() -> tuple[Path, ...]:
    """Return the folders of this program's code and of its interpreter."""
    package = Path(__file__).parents[2]
    interpreter = Path(sys.executable).resolve().parent
    return package, Path(sys.prefix), Path(sys.base_prefix), interpreter, Path(os.__file__).parent
