"""Whether a zstd file is all there: a walk over its frames and blocks by their headers (RFC 8878 §3).

The decompressor takes the end of its input for the end of the text, so a compressed session that was cut short would
read as a shorter one. Whoever reads to the end asks here, and whoever is about to replace the file must.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

ReadAt = Callable[[int, int], bytes]
"""Returns so many bytes of a file from an offset on."""

_FRAME: Final = 0xFD2FB528
_SKIPPABLE: Final = 0x184D2A50
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_RUN_LENGTH: Final = 1


def is_whole(read_at: ReadAt, size: int) -> bool:
    """Say whether a file of this size ends where a frame ends."""
    position: int | None = 0
    while position is not None and position < size:
        position = _after_frame(read_at, position)
    return position == size


def _after_frame(read_at: ReadAt, position: int) -> int | None:
    """Return where the frame that begins here ends, or None if its headers are not all there."""
    magic = _number(read_at, position, 4)
    if magic is None:
        return None
    if magic & ~0xF == _SKIPPABLE:
        length = _number(read_at, position + 4, 4)
        return None if length is None else position + 8 + length
    flags = _number(read_at, position + 4, 1)
    if magic != _FRAME or flags is None:
        return None
    single = flags >> 5 & 1
    content_size = _CONTENT_SIZE_BYTES[flags >> 6] or single
    position += 5 + (1 - single) + _DICTIONARY_BYTES[flags & 3] + content_size
    while (block := _number(read_at, position, 3)) is not None:
        position += 3 + (1 if block >> 1 & 3 == _RUN_LENGTH else block >> 3)
        if block & 1:
            return position + (4 if flags & 4 else 0)
    return None


def _number(read_at: ReadAt, position: int, length: int) -> int | None:
    raw = read_at(length, position)
    return int.from_bytes(raw, "little") if len(raw) == length else None
