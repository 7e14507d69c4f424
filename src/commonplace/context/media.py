"""Inline media: the kind and size of a picture or a recording in a `data:` URL, read from its header.

Base64 can be read anywhere, four characters to three bytes, so only the few bytes that a header takes are ever decoded,
however large the picture is. What cannot be told is None; nothing here raises.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterator
from typing import Final

_WHITE: Final = str.maketrans("", "", " \t\r\n")
_MAX_BLOCKS: Final = 10_000
"""Headers that are longer than this many blocks are made to waste time."""


def inline_payload(url: str, kind: str) -> str | None:
    """Return the base64 text of a `data:` URL of this kind of media (image, audio), None for any other URL."""
    if url[:5].lower() != "data:":
        return None
    header, comma, payload = url[5:].partition(",")
    media_type, *parameters = (part.strip().lower() for part in header.split(";"))
    if not comma or not media_type.startswith(f"{kind}/") or "base64" not in parameters:
        return None
    return payload


class _Packed:
    """Bytes at rest in base64."""

    def __init__(self, payload: str) -> None:
        self._text = (payload.translate(_WHITE) if any(map(payload.__contains__, " \t\r\n")) else payload).rstrip("=")
        self.size = len(self._text) * 3 // 4

    def read(self, start: int, size: int) -> bytes:
        """Return at most so many bytes from a place; raises ValueError where the text is not base64."""
        first = start // 3
        text = self._text[first * 4 : -(-(start + size) // 3) * 4]
        data = binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True) if text else b""
        return data[start - first * 3 :][:size]


def image_size(payload: str) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, WebP or JPEG in base64."""
    data = _Packed(payload)
    try:
        head = data.read(0, 30)
        if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
            size = struct.unpack_from(">II", head, 16)
        elif head[:6] in (b"GIF87a", b"GIF89a"):
            size = struct.unpack_from("<HH", head, 6)
        elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            size = _webp_size(head)
        elif head.startswith(b"\xff\xd8"):
            size = _jpeg_size(data)
        else:
            return None
    except (ValueError, struct.error):
        return None
    return (size[0], size[1]) if size and size[0] > 0 and size[1] > 0 else None


def _webp_size(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L" and head[20:21] == b"\x2f":
        (bits,) = struct.unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(head) == 30:
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    return None


def _jpeg_size(data: _Packed) -> tuple[int, int] | None:
    """Walk from segment to segment: the one with the size may stand behind a large preview picture."""
    at = 2
    for _ in range(_MAX_BLOCKS):
        head = data.read(at, 9)
        if len(head) < 9 or head[0] != 0xFF or head[1] in (0xD9, 0xDA):
            return None
        marker = head[1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # markers without a body
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", head, 5)
            return width, height
        else:
            at += 2 + struct.unpack_from(">H", head, 2)[0]
    return None


def audio_seconds(payload: str) -> float | None:
    """Return how long a WAV recording in base64 plays; None for other formats."""
    data = _Packed(payload)
    try:
        head = data.read(0, 12)
        if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
            return None
        bytes_per_second = 0
        for name, at, size in _wav_chunks(data):
            if name == b"fmt ":
                (bytes_per_second,) = struct.unpack_from("<I", data.read(at, 16), 8)
            elif name == b"data":
                there = data.size - at
                length = min(size or there, there)  # a recording that was streamed notes no size, or the largest
                return length / bytes_per_second if bytes_per_second else None
    except (ValueError, struct.error):
        return None
    return None


def _wav_chunks(data: _Packed) -> Iterator[tuple[bytes, int, int]]:
    at = 12
    for _ in range(_MAX_BLOCKS):
        head = data.read(at, 8)
        if len(head) < 8:
            return
        size = int.from_bytes(head[4:], "little")
        yield head[:4], at + 8, size
        at += 8 + size + (size & 1)
