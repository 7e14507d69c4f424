"""Attachments of a message: pictures, sound and files."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.protocol import items

_MEDIA: Final = frozenset({"input_image", "input_audio", "input_file", "input_video"})


class _MessageParts(msgspec.Struct):
    content: list[dict[str, Any]] = []


def parts_of(raw: bytes) -> list[dict[str, Any]]:
    """Return the media of a message, as they are."""
    try:
        content = msgspec.json.decode(raw, type=_MessageParts).content
    except msgspec.ValidationError:
        return []
    return [part for part in content if part.get("type") in _MEDIA]


def count(view: items.View) -> int:
    """Return how many media an item holds."""
    match view:
        case items.Message() | items.AgentMessage():
            return sum(part.type in _MEDIA for part in view.content)
        case items.FunctionCallOutput() | items.CustomToolCallOutput():
            return 0 if isinstance(view.output, str) else sum(part.type in _MEDIA for part in view.output)
        case _:
            return 0
