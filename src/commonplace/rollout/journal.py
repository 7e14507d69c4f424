"""Small append-only files beside the ledgers (names, decisions): one line at a time, durably, one writer at a time."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from commonplace.errors import LedgerError
from commonplace.rollout import locks, private_folders


def append(home: Path, name: str, line: bytes) -> None:
    """Add one line (given without its newline) to a file of the home.

    Raises:
        LedgerError: the file cannot be written.
    """
    with changing(home, name):
        write(home, name, line)


def write(home: Path, name: str, line: bytes) -> None:
    """Add one line to a file that the caller holds (`changing`)."""
    data = line + b"\n"
    descriptor = os.open(home / name, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if not size:
        private_folders.sync(home)


@contextmanager
def changing(home: Path, name: str) -> Generator[None]:
    """Hold a file alone while it is changed; what the system refuses becomes an error of ours."""
    try:
        private_folders.make_private(home)
        with locks.shared(home, name, exclusive=True):
            yield
    except OSError as error:
        reason = f"{home / name} could not be written: {error.strerror}."
        raise LedgerError(reason, hint="Check the disk and the folder's permissions.") from error
