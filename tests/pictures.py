"""Headers of pictures and recordings, as `data:` URLs."""

from __future__ import annotations

import base64
import struct


def url(data: bytes, media_type: str = "image/png", parameters: str = ";base64") -> str:
    return f"data:{media_type}{parameters},{base64.b64encode(data).decode()}"


def png(width: int, height: int, size: int = 100) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(size)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(30)


def jpeg(width: int, height: int, before: int = 0) -> bytes:
    """A preview of some size stands before the segment that has the dimensions."""
    preview = b"\xff\xe1" + struct.pack(">H", before + 2) + bytes(before)
    return b"\xff\xd8" + preview + b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + bytes(30)


def _webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(body) + 12) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


def webp_lossy(width: int, height: int) -> bytes:
    return _webp(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height) + bytes(20))


def webp_lossless(width: int, height: int) -> bytes:
    return _webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(20))


def webp_extended(width: int, height: int) -> bytes:
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return _webp(b"VP8X", bytes(4) + sizes + bytes(20))


def wav(data: int, *, rate: int = 16_000, noted: int | None = None, before: bytes = b"") -> bytes:
    """A recording of so many bytes, at so many bytes a second; `noted` is the size that its header claims."""
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate // 2, rate, 2, 16)
    body = before + form + b"data" + struct.pack("<I", data if noted is None else noted) + bytes(data)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body
