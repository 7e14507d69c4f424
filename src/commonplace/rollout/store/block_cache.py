"""Blocks of objects that were read from a store, kept on disk up to a bound.

An object never changes, and its tag is part of a block's name, so a block is never wrong; one that a crash cut short
has another length and is read again. The folder may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from pathlib import Path
from typing import Final

from commonplace.rollout.private_folders import make_private
from commonplace.rollout.store.object_store import ObjectStore
from commonplace.rollout.store.segments import Segment

BLOCK: Final = 256 * 2**10
BOUND: Final = 256 * 2**20
"""Most bytes that are kept."""
_KEPT: Final = 3, 4
"""The share of the bound that stays when the oldest blocks are removed."""


class BlockCache:
    """A folder of blocks; used from any thread and any process."""

    def __init__(self, folder: Path, store: ObjectStore, *, bound: int = BOUND) -> None:
        self._folder = folder
        self._store = store
        self._bound = bound
        self._size: int | None = None
        """About how much is in the folder; other processes write there, too."""

    def read(self, segment: Segment, start: int, end: int) -> bytes:
        """Return a range of an object; what is missing is asked for in as few requests as there are gaps.

        Raises:
            StoreUnavailable: the store cannot be reached, and something is missing.
            ObjectGone: the object is not there any more.
        """
        first, last = start // BLOCK, (end - 1) // BLOCK
        blocks = {number: self._load(segment, number) for number in range(first, last + 1)}
        missing = [number for number, data in blocks.items() if data is None]
        while missing:
            count = 1
            while count < len(missing) and missing[count] == missing[0] + count:
                count += 1
            begin, stop = missing[0] * BLOCK, min((missing[0] + count) * BLOCK, segment.size)
            data = self._store.read(segment.key, begin, stop)
            for number in missing[:count]:
                blocks[number] = data[number * BLOCK - begin : (number + 1) * BLOCK - begin]
                self._keep(segment, number, blocks[number] or b"")
            del missing[:count]
        whole = b"".join(blocks[number] or b"" for number in range(first, last + 1))
        return whole[start - first * BLOCK : end - first * BLOCK]

    def _load(self, segment: Segment, number: int) -> bytes | None:
        path = self._path(segment, number)
        try:
            data = path.read_bytes()
            os.utime(path)  # what is used is removed last
        except OSError:
            return None
        return data if len(data) == min(BLOCK, segment.size - number * BLOCK) else None

    def _keep(self, segment: Segment, number: int, data: bytes) -> None:
        """Store a block; where that is not possible, it is read from the store again."""
        path = self._path(segment, number)
        part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        with contextlib.suppress(OSError):
            make_private(self._folder)
            part.write_bytes(data)
            part.chmod(0o600)
            part.replace(path)
            self._make_room(len(data))

    def _make_room(self, added: int) -> None:
        self._size = self._size + added if self._size is not None else self._bound + 1
        if self._size <= self._bound:
            return
        found = sorted((status.st_mtime_ns, status.st_size, path) for path, status in self._files())
        left = sum(size for _, size, _ in found)
        keep = self._bound if left <= self._bound else self._bound * _KEPT[0] // _KEPT[1]
        for _, size, path in found:
            if left <= keep:
                break
            path.unlink(missing_ok=True)
            left -= size
        self._size = left

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        files: list[tuple[Path, os.stat_result]] = []
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                files.append((path, path.stat()))
        return files

    def _path(self, segment: Segment, number: int) -> Path:
        name = hashlib.sha256(f"{segment.key}\n{segment.tag}\n{segment.size}".encode()).hexdigest()
        return self._folder / f"{name[:32]}.{number}"
