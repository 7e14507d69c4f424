"""One writer per thread, across processes: an advisory lock on a small file that names its holder.

The kernel drops the lock when its process ends, however it ends, so a lock is never stale. The file is removed while
the lock is still held, and whoever acquires checks that the file it locked is the one that the path names.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from commonplace.errors import ThreadBusy
from commonplace.rollout.folders import make_private

FOLDER: Final = "locks"


class WriterLock:
    """The right to append to one thread."""

    def __init__(self, home: Path, thread_id: str) -> None:
        self.thread_id = thread_id
        self._path = home / FOLDER / f"{thread_id}.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock at once.

        Raises:
            ThreadBusy: another writer, in this process or another, has it.
        """
        make_private(self._path.parent)
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise ThreadBusy(
                    f"Thread {self.thread_id} is being written by process {holder or 'unknown'}.",
                    hint="Wait until it ends, or fork the thread.",
                    thread_id=self.thread_id,
                    holder=holder,
                ) from None
            if self._is_current(descriptor):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
                self._descriptor = descriptor
                return
            os.close(descriptor)  # the former holder removed the file between our open and our lock

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.stat(self._path).st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give the lock back; safe to call twice."""
        if self._descriptor is None:
            return
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def shared(home: Path, name: str, *, exclusive: bool = False) -> Generator[None]:
    """Hold a lock that many may share and one may have alone; waits for it."""
    folder = home / FOLDER
    make_private(folder)
    descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)
