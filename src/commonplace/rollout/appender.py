"""Appending to one session file, exact about what reached it.

The file is only ever appended to. A line that a crash left without its newline is closed off with one, never cut. After
a failed or partial write the next attempt looks at what landed and goes on from that very byte, so nothing is missing
and nothing stands there twice. A file that vanished under us is put back from the open descriptor once its folder is
there again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from commonplace.errors import LedgerError
from commonplace.rollout.folders import make_private

_COPY_CHUNK: Final = 1024 * 1024


class Appender:
    """Owns the descriptor of one session file; used by one thread at a time."""

    def __init__(self, path: Path, *, write: Callable[[int, bytes], int] = os.write) -> None:
        self.path = path
        self._write = write
        self._descriptor: int | None = None
        self._end = 0
        """Where the file ends as far as we know: everything before it is accounted for."""

    def open(self, *, create: bool) -> None:
        """Open the file (making it and its folders if asked to) and close off a torn last line."""
        if create:
            make_private(self.path.parent)
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self._descriptor = os.open(self.path, flags, 0o600)
        self._end = os.fstat(self._descriptor).st_size
        if self._end and os.pread(self._descriptor, 1, self._end - 1) != b"\n":
            self._end += self._write(self._descriptor, b"\n")

    @property
    def is_open(self) -> bool:
        """Whether the file was opened."""
        return self._descriptor is not None

    def append(self, data: bytes) -> int:
        """Write as much of the data as the system takes in one go; return how much is in the file now.

        Raises:
            OSError: nothing could be written.
            LedgerError: someone else wrote to the file.
        """
        descriptor = self._attached()
        landed = os.fstat(descriptor).st_size - self._end
        if landed:  # an earlier attempt failed after some bytes had reached the file
            if landed < 0 or landed > len(data) or os.pread(descriptor, landed, self._end) != data[:landed]:
                raise LedgerError(f"{self.path} was changed by another program.", hint="Fork the thread to go on.")
        else:
            landed = self._write(descriptor, data)
        self._end += landed
        return landed

    def sync(self) -> None:
        """Make what was written survive a loss of power."""
        os.fsync(self._attached())

    def sync_folder(self) -> None:
        """Make the file's name survive a loss of power."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def check(self) -> None:
        """Raise OSError unless the path still names the file that was written to."""
        self._attached()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _attached(self) -> int:
        """Return the descriptor, after making sure that the path names the same file."""
        descriptor = self._descriptor
        if descriptor is None:
            raise OSError(errno.EBADF, "the file is not open")
        ours = os.fstat(descriptor)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return self._put_back(descriptor)
        if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
            return descriptor
        return self._take_over(descriptor)

    def _put_back(self, lost: int) -> int:
        """Write a deleted file anew from the descriptor that still holds it; fails while its folder is missing."""
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        fresh = os.open(part, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self._copy(lost, fresh, 0)
            os.fsync(fresh)
            os.link(part, self.path)
        except OSError:
            os.close(fresh)
            raise
        finally:
            part.unlink(missing_ok=True)
        os.close(lost)
        self._descriptor = fresh
        return fresh

    def _take_over(self, lost: int) -> int:
        """Go on in a file that was put in place of ours (a restored backup), if it is a beginning of ours."""
        fresh = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        size = os.fstat(fresh).st_size
        if size > os.fstat(lost).st_size or not _same_start(lost, fresh, size):
            os.close(fresh)
            raise LedgerError(f"{self.path} was replaced by another file.", hint="Fork the thread to go on.")
        try:
            self._copy(lost, fresh, size)
        except OSError:
            os.close(fresh)
            raise
        os.close(lost)
        self._descriptor = fresh
        return fresh

    def _copy(self, source: int, target: int, start: int) -> None:
        offset = start
        while piece := os.pread(source, _COPY_CHUNK, offset):
            offset += self._write(target, piece)


def _same_start(left: int, right: int, size: int) -> bool:
    for offset in range(0, size, _COPY_CHUNK):
        length = min(_COPY_CHUNK, size - offset)
        if os.pread(left, length, offset) != os.pread(right, length, offset):
            return False
    return True
