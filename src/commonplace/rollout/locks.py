"""One writer per thread, across processes: an advisory lock on a small file that names its holder.

The kernel drops the lock when its process ends, however it ends, so a lock is never stale. Only a program that the
process was starting as it was killed may have it for a moment longer, until it runs; that is waited for. The file is
removed while the lock is still held, and whoever acquires checks that the file it locked is the one the path names.
A holder whose file was removed by somebody else (a home cleaned up, or put back from a backup) takes the lock anew or
learns that it lost it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from commonplace.errors import LedgerError, ThreadBusy
from commonplace.patterns import regex
from commonplace.rollout.private_folders import make_private

FOLDER: Final = "locks"
_PLAIN_NAME: Final = regex(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")


_PATIENCE: Final = 5.0
"""For so many seconds a lock is waited for whose process is dead."""
_PAUSE: Final = 0.01


class WriterLock:
    """The right to append to one thread."""

    def __init__(self, home: Path, thread_id: str) -> None:
        self.thread_id = thread_id
        self._path = home / FOLDER / f"{_file_name(thread_id)}.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock at once.

        Raises:
            ThreadBusy: another writer, in this process or another, has it.
            LedgerError: the lock's file cannot be made.
        """
        try:
            make_private(self._path.parent)
            self._take()
        except OSError as error:
            raise LedgerError(
                f"Thread {self.thread_id} cannot be locked: {error.strerror}.",
                hint=f"Check that {self._path.parent} can be written.",
            ) from error

    def renew(self) -> None:
        """Make sure that the lock is still held by the file that others would look at.

        Raises:
            ThreadBusy: the file was removed and another writer has the thread now.
            OSError: the file was removed and cannot be made again; the home itself is never made here.
        """
        held = self._descriptor
        if held is not None and self._is_current(held):
            return
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._take()
        if held is not None:
            os.close(held)

    def _take(self) -> None:
        patience = _PATIENCE
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(descriptor):
                    break
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                os.close(descriptor)
                if patience > 0 and _is_dead(holder):
                    patience -= _PAUSE
                    time.sleep(_PAUSE)
                    continue
                raise ThreadBusy(
                    f"Thread {self.thread_id} is being written by process {holder or 'unknown'}.",
                    hint="Wait until it ends, or fork the thread.",
                    thread_id=self.thread_id,
                    holder=holder,
                ) from None
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the former holder removed the file between our open and our lock
        with contextlib.suppress(OSError):  # on a full disk the lock holds without saying who has it
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give the lock back; safe to call twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with contextlib.suppress(OSError):  # a file that stays behind locks nobody out
            if self._is_current(descriptor):
                self._path.unlink()
        os.close(descriptor)

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _is_dead(holder: str) -> bool:
    """Say whether the process that a lock's file names has ended."""
    if not holder.isdecimal():
        return False
    try:
        os.kill(int(holder), 0)
        state = Path(f"/proc/{holder}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except (OSError, OverflowError, IndexError):  # another user's, or a system without /proc: it lives
        return False
    return state in "ZX"


def _file_name(thread_id: str) -> str:
    """Return a name that stays inside its folder, whatever a file says its thread is called."""
    if _PLAIN_NAME.fullmatch(thread_id):
        return thread_id
    return "thread." + hashlib.sha256(thread_id.encode(errors="surrogatepass")).hexdigest()


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
