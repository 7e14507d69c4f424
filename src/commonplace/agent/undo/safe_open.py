"""Open files below a folder without following links: step by step, from the descriptor of the top folder."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from commonplace.agent.undo.survey import FileLook, look_of

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def open_folder(root: int, path: bytes) -> Generator[int]:
    """Open a folder by its path from the root.

    Raises:
        OSError: it does not exist, or a part of the path is a link.
    """
    descriptor = os.dup(root)
    try:
        for part in path.split(b"/"):
            if part:
                inner = os.open(part, FOLDER_FLAGS, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(folder: int, name: bytes, bound: int) -> tuple[bytes, FileLook, bool]:
    """Return the content of a file or link, its status, and whether it stayed the same while it was read.

    Raises:
        FileNotFoundError: it does not exist any more.
        OSError: it cannot be read, is no regular file any more, or is larger than the bound.
    """
    about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(about.st_mode):
        target = os.readlink(name, dir_fd=folder)
        return target, look_of(about), True
    descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode) or before.st_size > bound:
            raise OSError("it changed while it was read")
        parts: list[bytes] = []
        left = bound + 1
        while left > 0 and (part := os.read(descriptor, min(left, max(before.st_size + 1, 2**16)))):
            parts.append(part)
            left -= len(part)
        if left <= 0:
            raise OSError("it grows while it is read")
        after = look_of(os.fstat(descriptor))
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    return b"".join(parts), after, look_of(before) == after
