"""Whether anything changed below a folder since it was last read, told by the kernel instead of asked of every file.

Asking costs a system call for each file; on Linux, inotify answers in one for all of them. It is trusted only where it
sees every change: on file systems of this machine, for files that have one name. Where it cannot be had, the answer is
always that something may have changed. A change through `mmap` is not seen until the file is closed or touched, which
holds for the times of files as well.

Folders are watched by their descriptors, so that what is watched is what was read.
"""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path
from typing import Final

_MASK: Final = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x01000000
"""Written, changed, closed after writing, moved from or to, made, deleted, itself deleted or moved; folders only."""
_LOCAL: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "ramfs", "overlay", "zfs", "bcachefs"}
)
_BUFFER: Final = 64 * 1024


class Watch:
    """A watch over folders; it ends with the object, and a forked process has none."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._process = os.getpid()
        self._works = True
        weakref.finalize(self, os.close, descriptor)

    def add(self, folder: int) -> None:
        """Watch one more folder."""
        import ctypes

        call = ctypes.CDLL(None).inotify_add_watch
        if call(self._descriptor, f"/proc/self/fd/{folder}".encode(), ctypes.c_uint(_MASK)) < 0:
            self._works = False

    def is_quiet(self) -> bool:
        """Say that nothing changed since this was last asked; forgets what did."""
        if self._process != os.getpid():
            return False
        quiet = self._works
        while True:
            try:
                quiet = not os.read(self._descriptor, _BUFFER) and quiet
            except BlockingIOError:
                return quiet
            except OSError:
                return False


def watch(folder: int) -> Watch | None:
    """Return a watch that watches nothing yet; None where changes in a folder could go unseen."""
    if sys.platform != "linux" or not _is_local(os.fstat(folder).st_dev):
        return None
    import ctypes

    try:
        descriptor = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    except AttributeError:
        return None
    return Watch(descriptor) if descriptor >= 0 else None


def _is_local(device: int) -> bool:
    """Say whether a file system is one that only this machine changes."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[2:3] == [wanted]:
            return after.split()[:1] != [] and after.split()[0] in _LOCAL
    return False
