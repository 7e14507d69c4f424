"""Compressed session files: making one plain again, before it is appended to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from commonplace.rollout import private_folders, reader

_CHUNK: Final = 1024 * 1024


def materialise(path: Path) -> Path:
    """Replace `x.jsonl.zst` by `x.jsonl` with the same time and mode; never over an existing plain file.

    Raises:
        LedgerError: the compressed file is damaged or cut short.
        OSError: the plain one cannot be written; the compressed one is still there.
    """
    plain = path.with_suffix("")
    if plain.exists():
        return plain
    part = plain.with_name(f".{plain.name}.{os.getpid()}.part")
    status = path.stat()
    try:
        with reader.open_session(path) as source:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, status.st_mode & 0o777)
            with os.fdopen(descriptor, "wb") as target:
                while piece := source.read(_CHUNK):
                    target.write(piece)
                target.flush()
                os.fsync(target.fileno())
        os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.link(part, plain)
        private_folders.sync(plain.parent)
    finally:
        part.unlink(missing_ok=True)
    path.unlink()
    return plain
