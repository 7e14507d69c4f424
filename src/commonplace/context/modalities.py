"""What kinds of input a model takes, and what stands in a prompt where it does not take one (spec §3.3, 3 and 4).

A text takes the place of every picture or recording, so that the model knows that there was one. The rest of the item
keeps its fields and their order; the same item always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, cast

import msgspec

from commonplace.protocol import items

Modalities = frozenset[str]
ALL: Final[Modalities] = frozenset({"text", "image", "audio"})
TEXT_ONLY: Final[Modalities] = frozenset({"text"})
NO_IMAGE: Final = "image content omitted because you do not support image input"
NO_AUDIO: Final = "audio content omitted because you do not support audio input"
_STAND_INS: Final = {"input_image": ("image", NO_IMAGE), "input_audio": ("audio", NO_AUDIO)}
_PARTS_OF: Final = {
    "message": "content",
    "function_call_output": "output",
    "custom_tool_call_output": "output",
}
_object = msgspec.json.Decoder(dict[str, Any])


def supported(raw: bytes, view: items.View, modalities: Collection[str]) -> bytes:
    """Return the item with what the model does not take replaced; the very same bytes where it takes everything."""
    missing = {kind: text for kind, (name, text) in _STAND_INS.items() if name not in modalities}
    if not missing:
        return raw
    if isinstance(view, items.ImageGenerationCall):
        drawn = view.result and "image" not in modalities
        return msgspec.json.encode({**_object.decode(raw), "result": ""}) if drawn else raw
    if not any(f'"{kind}"'.encode() in raw for kind in missing):
        return raw
    whole = _object.decode(raw)
    place = _PARTS_OF.get(str(whole["type"]))
    if place is None or not isinstance(whole.get(place), list):
        return raw
    parts = cast("list[dict[str, Any]]", whole[place])
    if not any(part.get("type") in missing for part in parts):
        return raw
    whole[place] = [_stand_in(part, missing) for part in parts]
    return msgspec.json.encode(whole)


def _stand_in(part: dict[str, Any], missing: dict[str, str]) -> dict[str, Any]:
    text = missing.get(str(part.get("type")))
    return part if text is None else {"type": "input_text", "text": text}
