"""Exchanging two folders in one step, where the system can: everybody sees the one or the other, never none."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Final

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_RENAME_SWAP: Final = 2
_CANNOT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})
"""What kernels, file systems and sandboxes answer that do not know the call."""


def exchange(one: Path, other: Path) -> bool:
    """Swap what two names of one file system stand for; False (and nothing changed) where that cannot be done.

    Raises:
        OSError: it can be done in general, but not here and now.
    """
    import ctypes  # slow to import, and most commands only read the memory

    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(names[0], names[1], ctypes.c_uint(_RENAME_SWAP))
        else:
            failed = libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE))
    except AttributeError:  # a C library without it
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
