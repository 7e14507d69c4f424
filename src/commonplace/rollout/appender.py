"""Appending to one session file, exact about what reached it.

The file is only ever appended to. A line that a crash left without its newline is closed off with one, never cut. After
a failed or partial write the next attempt looks at what landed and goes on from that very byte, so nothing is missing
and nothing stands there twice. A file that vanished under us is put back from the open descriptor once its folder is
there again.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from commonplace.errors import LedgerError
from commonplace.rollout import private_folders

_COPY_CHUNK: Final = 1024 * 1024
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
"""O_NONBLOCK keeps a FIFO in the file's place from hanging the writer; regular files ignore it."""


class Appender:
    """Owns the descriptor of one session file; used by one thread at a time."""

    def __init__(self, path: Path, *, write: Callable[[int, bytes], int] = os.write) -> None:
        self.path = path
        self._write = write
        self._descriptor: int | None = None
        self._end = 0
        """Where the file ends as far as we know: everything before it is accounted for."""
        self._new_names: list[Path] = []
        """Folders that got a name which would not survive a loss of power yet."""
        self._synced = 0
        self._sync_failed = False

    def open(self, *, create: bool) -> None:
        """Open the file (making it and its folders if asked to) and close off a torn last line.

        Raises:
            OSError: it cannot be opened, or its torn line not closed off; it is as if nothing was tried.
            LedgerError: it is not a file, or a new file was asked for and one is there.
        """
        if create:
            made = private_folders.make_private(self.path.parent)
            self._new_names = [self.path.parent, *(folder.parent for folder in reversed(made))]
        descriptor = os.open(self.path, _FLAGS | (os.O_CREAT if create else 0), 0o600)
        try:
            self._end = self._closed_off(descriptor, create=create)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._synced = 0 if create else self._end

    def _closed_off(self, descriptor: int, *, create: bool) -> int:
        """Give a torn last line its newline; return where the file ends."""
        end = self._regular_size(descriptor)
        if end and create:
            raise LedgerError(f"{self.path} is there already.", hint="Resume the thread instead.")
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            end += self._written(descriptor, b"\n")
        return end

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
            landed = self._written(descriptor, data)
        self._end += landed
        return landed

    def sync(self) -> None:
        """Make what was written, and the file's name, survive a loss of power."""
        descriptor = self._attached()
        if self._sync_failed:
            self._write_again()
        self._sync_failed = True
        os.fsync(descriptor)
        self._synced, self._sync_failed = self._end, False
        while self._new_names:
            private_folders.sync(self._new_names[0])
            del self._new_names[0]

    def _write_again(self) -> None:
        """Write the same bytes to the same place: after a failed sync Linux may take lost pages for written ones."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            offset = self._synced
            while piece := os.pread(descriptor, min(_COPY_CHUNK, self._end - offset), offset):
                offset += os.pwrite(descriptor, piece, offset)
        finally:
            os.close(descriptor)

    def check(self) -> None:
        """Raise OSError unless the path still names the file that was written to."""
        self._attached()

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

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
        fresh = os.open(part, _FLAGS | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            self._copy(lost, fresh, 0)
            os.fsync(fresh)
            os.link(part, self.path)
        except BaseException:
            os.close(fresh)
            raise
        finally:
            part.unlink(missing_ok=True)
        self._new_names.append(self.path.parent)
        return self._swap(fresh)

    def _take_over(self, lost: int) -> int:
        """Go on in a file that was put in place of ours (a restored backup), if it is a beginning of ours."""
        fresh = os.open(self.path, _FLAGS)
        try:
            self._extend(lost, fresh)
        except BaseException:
            os.close(fresh)
            raise
        return self._swap(fresh)

    def _extend(self, lost: int, fresh: int) -> None:
        size = self._regular_size(fresh)
        if size > os.fstat(lost).st_size or not _same_start(lost, fresh, size):
            raise LedgerError(f"{self.path} was replaced by another file.", hint="Fork the thread to go on.")
        self._copy(lost, fresh, size)

    def _swap(self, fresh: int) -> int:
        self.close()
        self._descriptor = fresh
        return fresh

    def _copy(self, source: int, target: int, start: int) -> None:
        offset = start
        while piece := os.pread(source, _COPY_CHUNK, offset):
            offset += self._written(target, piece)

    def _written(self, descriptor: int, data: bytes) -> int:
        """Write once; taking nothing at all counts as a failure, so that no loop goes on for ever."""
        if written := self._write(descriptor, data):
            return written
        raise OSError(errno.EIO, "the system took nothing")

    def _regular_size(self, descriptor: int) -> int:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(f"{self.path} is not a file.", hint="Move it out of the way.")
        return status.st_size


def _same_start(left: int, right: int, size: int) -> bool:
    for offset in range(0, size, _COPY_CHUNK):
        length = min(_COPY_CHUNK, size - offset)
        if os.pread(left, length, offset) != os.pread(right, length, offset):
            return False
    return True
