"""What no confined command may change in the folders that it can write: what Git keeps, and this program itself.

Git runs programs that its folder names (hooks, filters, watchers), with the rights of whoever types `git`. So that
folder is guarded in every workspace, whether it exists or not, and so are those that a `.git` file points to. This
program runs outside every sandbox: a command that could change its code would be out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from commonplace.agent.sandbox.policy import Policy

_GIT: Final = ".git"
_POINTS: Final = "gitdir:"
_PARTS: Final = ("HEAD", "objects", "refs")
"""What makes a folder one that Git keeps."""
_DANGEROUS: Final = ("config", "hooks", "info", "worktrees", "modules")
_MOST: Final = 4096
"""Bytes of a pointer that are read."""


def paths(policy: Policy) -> tuple[Path, ...]:
    """Return everything that stays as it is, some of which may not exist; links are not followed."""
    found = [*policy.protected]
    for root in policy.workspaces():
        found.extend(of_git(root))
    # A folder that is everybody's gets no placeholder: what is there is guarded.
    found.extend(root / _GIT for root in policy.temporary() if os.path.lexists(root / _GIT))
    return tuple(dict.fromkeys(path.absolute() for path in found))


def of_git(root: Path) -> Iterator[Path]:
    """Yield where Git keeps what belongs to a folder."""
    yield root / _GIT
    if all((root / part).exists() for part in _PARTS):  # a bare repository
        yield from (root / name for name in _DANGEROUS)
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


def program() -> tuple[Path, ...]:
    """Return where this program's code and its interpreter stand."""
    package = Path(__file__).parents[2]
    interpreter = Path(sys.executable).resolve().parent
    return package, Path(sys.prefix), Path(sys.base_prefix), interpreter, Path(os.__file__).parent
