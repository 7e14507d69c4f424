"""Modalities: the kinds of input that a model takes, and the text that replaces an input that it does not take.

A text takes the place of every picture or recording, so that the model knows that there was one. The rest of the item
keeps its fields and their order; the same item always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from commonplace.context import history_items
from commonplace.protocol import items

Modalities = frozenset[str]
ALL: Final[Modalities] = frozenset({"text", "image", "audio"})
NO_IMAGE: Final = "image content omitted because you do not support image input"
NO_AUDIO: Final = "audio content omitted because you do not support audio input"
_STAND_INS: Final = {"input_image": ("image", NO_IMAGE), "input_audio": ("audio", NO_AUDIO)}
_PARTS_OF: Final = {
    "message": "content",
    "function_call_output": "output",
    "custom_tool_call_output": "output",
}


def with_supported_media(raw: bytes, view: items.View, modalities: Collection[str]) -> bytes:
    """Return the item with what the model does not take replaced; the very same bytes where it takes everything."""
    missing = {kind: text for kind, (name, text) in _STAND_INS.items() if name not in modalities}
    if not missing:
        return raw
    if isinstance(view, items.ImageGenerationCall):
        drawn = view.result and "image" not in modalities
        return msgspec.json.encode({**history_items.fields(raw), "result": ""}) if drawn else raw
    if not any(f'"{kind}"'.encode() in raw for kind in missing):
        return raw
    place = _PARTS_OF.get(items.kind(raw))
    whole = history_items.fields(raw) if place is not None else {}
    if place is None or not bytes(whole[place]).startswith(b"["):
        return raw
    before = history_items.parts(whole[place])
    after: list[Any] = [_stand_in(part, missing) for part in before]
    return raw if before == after else msgspec.json.encode({**whole, place: after})


def _stand_in(part: msgspec.Raw, missing: dict[str, str]) -> msgspec.Raw | dict[str, str]:
    text = missing.get(items.kind(part))
    return part if text is None else {"type": "input_text", "text": text}
