"""Pack files with the objects of a store, in git's format, written in one go and read by libgit2.

A snapshot adds one pack, whatever the number of its files; loose objects would be one file each. Objects are stored
whole, never as deltas, so that pruning can copy objects without unpacking them.

A pack becomes visible when its index is renamed, after both files are complete and on disk. A writer holds the store's
lock, so a file with a temporary name was left by a crash.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, Literal

import msgspec

from commonplace.rollout import private_folders

ObjectKind = Literal["tree", "blob"]
_NUMBERS: Final = {"tree": 2, "blob": 3}
_PART: Final = "part-"
_MAX_PACK_BYTES: Final = 2**30
"""A larger pack would need an index with wide offsets."""
_LEVEL: Final = 1
_HEAD: Final = struct.Struct(">4sII")


class PackedObject(msgspec.Struct, frozen=True):
    """The offset and size of an object in a pack."""

    id: bytes
    offset: int
    size: int


def object_id(kind: ObjectKind, data: bytes) -> bytes:
    """Return git's id of an object."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).digest()


class PackWriter:
    """Adds objects to the store; they are stored when `finish` has returned."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._entries: list[tuple[bytes, int, int]] = []
        self._offset = 0
        self.finished: set[Path] = set()
        """The packs that were written; the same objects give the same pack, which may have existed."""

    def add(self, identity: bytes, kind: ObjectKind, data: bytes) -> None:
        """Store an object that the store does not have."""
        size = len(data)
        first = _NUMBERS[kind] << 4 | size & 0xF
        size >>= 4
        head = bytearray()
        while size:
            head.append(first | 0x80)
            first = size & 0x7F
            size >>= 7
        head.append(first)
        self.copy(identity, bytes(head) + zlib.compress(data, _LEVEL))

    def copy(self, identity: bytes, packed: bytes) -> None:
        """Store an object with its bytes from another pack."""
        if self._file is None or self._offset + len(packed) > _MAX_PACK_BYTES:
            self.finish()
            self._file = tempfile.NamedTemporaryFile(dir=self._folder, prefix=_PART, delete=False)  # noqa: SIM115
            self._file.write(_HEAD.pack(b"PACK", 2, 0))
            self._offset = _HEAD.size
        self._file.write(packed)
        self._entries.append((identity, zlib.crc32(packed), self._offset))
        self._offset += len(packed)

    def finish(self) -> None:
        """Write the added objects into the store."""
        if self._file is None:
            return
        file, entries = self._file, sorted(self._entries)
        self._file, self._entries = None, []
        with file:
            file.flush()
            os.pwrite(file.fileno(), _HEAD.pack(b"PACK", 2, len(entries)), 0)
            file.seek(0)
            total = hashlib.sha1(usedforsecurity=False)
            while chunk := file.read(2**20):
                total.update(chunk)
            file.seek(0, os.SEEK_END)
            file.write(total.digest())
            file.flush()
            os.fsync(file.fileno())
        name = self._folder / f"pack-{total.hexdigest()}"
        index = _index(entries, total.digest())
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=_PART, delete=False) as beside:
            beside.write(index)
            beside.flush()
            os.fsync(beside.fileno())
        Path(file.name).replace(name.with_suffix(".pack"))
        Path(beside.name).replace(name.with_suffix(".idx"))
        self.finished.add(name)
        private_folders.sync(self._folder)

    def abandon(self) -> None:
        """Drop what was added since the last `finish`."""
        if self._file is not None:
            with self._file as file:
                Path(file.name).unlink(missing_ok=True)
            self._file, self._entries = None, []


def _index(entries: list[tuple[bytes, int, int]], pack: bytes) -> bytes:
    """Return an index (version 2) of entries that are sorted by id."""
    counts = [0] * 256
    for identity, _, _ in entries:
        counts[identity[0]] += 1
    fan: list[int] = []
    for count in counts:
        fan.append(count + (fan[-1] if fan else 0))
    parts = [b"\xfftOc", struct.pack(">I256I", 2, *fan)]
    parts += [identity for identity, _, _ in entries]
    parts.append(struct.pack(f">{len(entries)}I", *(crc for _, crc, _ in entries)))
    parts.append(struct.pack(f">{len(entries)}I", *(offset for _, _, offset in entries)))
    data = b"".join(parts) + pack
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def pack_names(folder: Path) -> list[Path]:
    """Return the packs of a store, without their endings."""
    return sorted(path.with_suffix("") for path in folder.glob("pack-*.idx") if path.with_suffix(".pack").is_file())


def object_ids(pack: Path) -> list[bytes]:
    """Return the ids of the objects in a pack, sorted; none if its index cannot be used."""
    data = pack.with_suffix(".idx").read_bytes()
    count = _count(data)
    start = 8 + 1024
    return [data[place : place + 20] for place in range(start, start + 20 * count, 20)]


def _count(data: bytes) -> int:
    if len(data) < 8 + 1024 + 40 or data[:4] != b"\xfftOc":
        return 0
    count = struct.unpack_from(">I", data, 8 + 1020)[0]
    return count if len(data) == 8 + 1024 + 28 * count + 40 else 0


def packed_objects(pack: Path) -> list[PackedObject]:
    """Return offset and size of each object of a pack, in the order of the pack."""
    data = pack.with_suffix(".idx").read_bytes()
    count = _count(data)
    offsets = struct.unpack_from(f">{count}I", data, 8 + 1024 + 24 * count)
    by_offset = sorted(zip(offsets, object_ids(pack), strict=True))
    end = pack.with_suffix(".pack").stat().st_size - 20
    ends = [offset for offset, _ in by_offset[1:]] + [end]
    return [
        PackedObject(identity, offset, after - offset)
        for (offset, identity), after in zip(by_offset, ends, strict=True)
    ]


def raw_objects(pack: Path, wanted: list[PackedObject]) -> Iterator[tuple[bytes, bytes]]:
    """Yield objects of a pack with their bytes in it."""
    with pack.with_suffix(".pack").open("rb") as file:
        for one in wanted:
            file.seek(one.offset)
            yield one.id, file.read(one.size)


def remove(pack: Path) -> int:
    """Remove a pack, its index first; return the bytes that were freed."""
    freed = 0
    for path in (pack.with_suffix(".idx"), pack.with_suffix(".pack")):
        freed += path.stat().st_size
        path.unlink()
    return freed


def leftovers(folder: Path) -> list[Path]:
    """Return the files that crashes left: unfinished files, and packs without an index."""
    found = list(folder.glob(f"{_PART}*"))
    return found + [path for path in folder.glob("pack-*.pack") if not path.with_suffix(".idx").exists()]
