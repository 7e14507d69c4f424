"""What a tree is, down to the last byte: for comparing before and after."""

from __future__ import annotations

import hashlib
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pygit2

from commonplace.agent.undo import Pruned, SnapshotLimits
from commonplace.agent.undo.retention import sweep
from commonplace.agent.undo.snapshots import stores

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
Manifest = dict[bytes, tuple[int, bytes]]


def manifest(root: Path, *, skip: tuple[bytes, ...] = (b".git",)) -> Manifest:
    """Return mode and content (or link target) of everything below a folder."""
    found: Manifest = {}
    waiting = [b""]
    while waiting:
        below = waiting.pop()
        for name in os.listdir(os.path.join(os.fsencode(root), below)):  # noqa: PTH118
            if name in skip:
                continue
            path = below + name
            place = os.path.join(os.fsencode(root), path)  # noqa: PTH118
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode):
                found[path] = (mode, b"")
                waiting.append(path + b"/")
            elif stat.S_ISLNK(mode):
                found[path] = (stat.S_IFLNK, os.readlink(place))  # noqa: PTH115
            elif stat.S_ISREG(mode):
                with open(place, "rb") as file:  # noqa: PTH123
                    found[path] = (mode, file.read())
            else:
                found[path] = (mode, b"")
    return found


def git_state(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Return mode, size, time and digest of every file and folder of a repository's own."""
    found: dict[str, tuple[int, int, int, str]] = {}
    for path in sorted((root / ".git").rglob("*")):
        about = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path)] = (about.st_mode, about.st_size, about.st_mtime_ns, digest)
    return found


def repository(root: Path) -> pygit2.Repository:
    """Make a repository without a commit."""
    root.mkdir(parents=True, exist_ok=True)
    return pygit2.init_repository(str(root), initial_head="main")


def commit(repo: pygit2.Repository, message: str = "One") -> str:
    """Commit all that is there and not ignored."""
    repo.index.add_all()
    repo.index.write()
    who = pygit2.Signature("A", "a@example.invalid", 1_700_000_000, 0)
    parents = [] if repo.head_is_unborn else [repo.head.target]
    return str(repo.create_commit("refs/heads/main", who, who, message, repo.index.write_tree(), parents))


def put(root: Path, name: str, data: str | bytes = b"", mode: int = 0o644) -> Path:
    """Write a file and the folders on its way."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    path.chmod(mode)
    return path


def prune(home: Path, now: datetime, limits: SnapshotLimits | None = None) -> Pruned:
    """Bring all stores of a home within their bounds."""
    gone: list[str] = []
    freed = 0
    for store in stores(home):
        with store.lock(exclusive=True):
            one = sweep(store, now, limits or SnapshotLimits(), thorough=True)
        gone += one.snapshots
        freed += one.bytes
    return Pruned(tuple(gone), freed)
