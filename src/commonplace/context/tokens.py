"""How many tokens an item takes, estimated without a tokeniser: a quarter of its bytes, rounded up.

Bytes are those of the compact JSON that a request carries, the bookkeeping off. Three things are not counted by their
letters, because the model does not read them as letters: inline pictures and recordings have a price of their own, and
encrypted text is longer than what it hides. An estimate is a pure function of the item.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from commonplace.context import media
from commonplace.protocol import items

BYTES_PER_TOKEN: Final = 4
"""The estimate: four bytes are one token."""
IMAGE_BYTES: Final = 7_373
"""What a picture costs where its size does not matter or cannot be told."""
PATCH_PIXELS: Final = 32
"""The side of the square patches that models see a picture in."""
MAX_PATCHES: Final = 10_000
"""The most patches that a picture counts for."""
AUDIO_TOKENS_PER_SECOND: Final = 10
"""What a second of a recording counts for."""
_SEALED_OVERHEAD: Final = 650
"""How many bytes of encrypted content are not text."""


class _MediaPart(msgspec.Struct, gc=False):
    type: str
    image_url: str | None = None
    audio_url: str | None = None
    encrypted_content: str | None = None
    detail: str | None = None


class _MediaParts(msgspec.Struct, gc=False):
    """The lists in which media can stand: a message's content and a tool's output."""

    content: list[_MediaPart] | None = None
    output: str | list[_MediaPart] | None = None


_parts = msgspec.json.Decoder(_MediaParts)


def approximate_tokens(text: str) -> int:
    """Return the token estimate of a text: its UTF-8 bytes by four, rounded up."""
    return tokens_of_bytes(len(text.encode()))


def tokens_of_bytes(count: int) -> int:
    """Return how many tokens so many bytes are."""
    return max(0, -(-count // BYTES_PER_TOKEN))


def item_tokens(raw: bytes, view: items.View) -> int:
    """Return the token estimate of an item."""
    return tokens_of_bytes(item_bytes(raw, view))


def item_bytes(raw: bytes, view: items.View) -> int:
    """Return the bytes that an item counts for."""
    match view:
        case items.Compaction() | items.CompactionSummary():
            return _sealed_bytes(view.encrypted_content)
        case (
            items.Reasoning(encrypted_content=str(sealed)) | items.ContextCompaction(encrypted_content=str(sealed))
        ) if sealed:
            return _sealed_bytes(sealed)
        case _:
            return _compact_length(items.wire(raw)) - _discount(raw)


def audio_tokens(url: str) -> int:
    """Return what a recording costs: by its length in time where that can be told, else by its URL."""
    payload = media.inline_payload(url, "audio")
    seconds = media.audio_seconds(payload) if payload is not None else None
    return approximate_tokens(url) if seconds is None else math.ceil(seconds * AUDIO_TOKENS_PER_SECOND)


def _sealed_bytes(sealed: str) -> int:
    """Return what the server hid in reasoning or a summary: base64 and a fixed overhead off."""
    return max(len(sealed) * 3 // 4 - _SEALED_OVERHEAD, 0)


def _compact_length(wire: bytes) -> int:
    """Return the length of the JSON without blanks and needless escapes, whoever wrote it."""
    try:
        return len(msgspec.json.encode(msgspec.json.decode(wire)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a field that nobody reads is damaged
        return len(wire)


def _discount(raw: bytes) -> int:
    """Return how many bytes of an item's JSON count less than their letters, summed up."""
    if b'"input_image"' not in raw and b'"input_audio"' not in raw and b'"encrypted_content"' not in raw:
        return 0
    try:
        found = _parts.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return 0
    parts = [*(found.content or ()), *(found.output if isinstance(found.output, list) else ())]
    return sum(map(_part_discount, parts))


def _part_discount(part: _MediaPart) -> int:
    if part.type == "input_image" and part.image_url:
        payload = media.inline_payload(part.image_url, "image")
        return 0 if payload is None else len(payload.encode()) - image_bytes(payload, part.detail)
    if part.type == "input_audio" and part.audio_url:
        payload = media.inline_payload(part.audio_url, "audio")
        seconds = media.audio_seconds(payload) if payload is not None else None
        if payload is None or seconds is None:
            return 0
        return len(payload.encode()) - math.ceil(seconds * AUDIO_TOKENS_PER_SECOND) * BYTES_PER_TOKEN
    if part.type == "encrypted_content" and part.encrypted_content:
        length = len(part.encrypted_content)
        return length - -(-length * 9 // 16)
    return 0


def image_bytes(payload: str, detail: str | None) -> int:
    """Return what a picture counts for: its patches where the model gets it in full size, else a fixed price."""
    size = media.image_size(payload) if detail == "original" else None
    if size is None:
        return IMAGE_BYTES
    width, height = size
    patches = -(-width // PATCH_PIXELS) * -(-height // PATCH_PIXELS)
    return min(patches, MAX_PATCHES) * BYTES_PER_TOKEN
