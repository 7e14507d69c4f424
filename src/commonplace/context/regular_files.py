"""Reading a regular file of another program, up to a bound, whatever stands at its path.

A path in a project may be a folder, a pipe that nobody writes to, a device, a link to nowhere or a file of many
gigabytes. Links are followed, since people link their instructions; what is at the end must be a regular file.

Invariants: reading never blocks, never takes more than `limit` bytes into memory, and looks at the opened file, not at
the name, to say what it is.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""What a path says when nothing usable stands there, links in a circle included."""

_TEXTS: Final = (".md", ".mdc", ".txt", "rules")
"""How the names of hidden files end that people link their instructions to: `.cursorrules`."""


class FilePrefix(msgspec.Struct, frozen=True):
    """The beginning of a file, and how long the file is."""

    data: bytes
    size: int


class ReadRefused(msgspec.Struct, frozen=True):
    """Why nothing was read: `missing`, `not_a_file` or `unreadable`."""

    reason: str
    detail: str = ""


def is_regular(path: Path) -> bool:
    """Say whether a regular file stands at the path, at the end of its links."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # a name with a NUL in it is a ValueError
        return False


def exists(path: Path, *, held: bool = True) -> bool:
    """Say whether anything stands at the path; a folder that may not be searched holds nothing.

    Without `held`, a folder that the sandbox put there to hold the place (empty, and its time is 0) is nothing either.
    """
    try:
        found = os.stat(path)
        if held or not stat.S_ISDIR(found.st_mode) or found.st_mtime_ns != 0:
            return True
        return bool(os.listdir(path))
    except (OSError, ValueError):
        return False


def link_target(path: Path) -> Path | None:
    """Return where a link leads in the end, if the path is one; a link to nowhere leads to its last name."""
    try:
        if not stat.S_ISLNK(os.lstat(path).st_mode):
            return None
    except (OSError, ValueError):
        return None
    return Path(os.path.realpath(path))


def leaves(path: Path, root: Path) -> bool:
    """Say whether a link leads a path out of its folder and out of a root, or to what is private there."""
    end, folders = Path(os.path.realpath(path)), (Path(os.path.realpath(root)), Path(os.path.realpath(path.parent)))
    inside = [end.relative_to(folder) for folder in folders if end.is_relative_to(folder)]
    return not inside or ".git" in inside[0].parts or (link_target(path) is not None and is_private(inside[0]))


def is_private(path: Path) -> bool:
    """Say whether a path in a project is a repository's own, or a hidden file that is no text for readers: `.env`."""
    return ".git" in path.parts or (path.name.startswith(".") and not path.name.lower().endswith(_TEXTS))


def read(path: Path, limit: int) -> FilePrefix | ReadRefused:
    """Return at most `limit` bytes from the beginning of a regular file, or why not."""
    try:
        # Opening a device can have effects, so the name is looked at first; what was opened is looked at again.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ReadRefused("not_a_file")
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        return _refused(error)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return ReadRefused("not_a_file")
        data = _take(descriptor, limit)
    except OSError as error:
        return _refused(error)
    finally:
        os.close(descriptor)
    return FilePrefix(data, max(found.st_size, len(data)))


def _take(descriptor: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(descriptor, min(limit, 2**20))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _refused(error: OSError | ValueError) -> ReadRefused:
    if isinstance(error, ValueError) or error.errno in _MISSING:
        return ReadRefused("missing")
    return ReadRefused("unreadable", error.strerror or type(error).__name__)
