"""The result of a server's tool, for the model and for events, both within bounds. Pure.

Texts go to the model as they are, within one budget for all of them. A picture is passed on if its bytes say that it is
one; recordings, files and links become a line that describes them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from commonplace.agent.servers.tool_list import clean
from commonplace.agent.tools.image import MOST_PIXELS, kind_of
from commonplace.agent.tools.registry import Content, McpResult, ToolOutput
from commonplace.context.media import image_size
from commonplace.context.truncate import TruncationPolicy, truncate, truncate_parts
from commonplace.protocol import items

MOST_BLOCKS: Final = 256
"""Blocks of one result that are read."""
MOST_IMAGES: Final = 16
"""Pictures of one result that the model gets."""
MOST_IMAGE_BYTES: Final = 8 * 2**20
"""Bytes of one picture."""
MOST_SHOWN: Final = 256 * 1024
"""Bytes of a text, or of a structure, in an event."""
MOST_URI: Final = 500
"""How many characters of a resource's name or address are shown."""
_SHOWN: Final = TruncationPolicy("bytes", MOST_SHOWN)
_SAFE_INTEGER: Final = 2**63


class CallResult(msgspec.Struct, frozen=True):
    """The result of a call as it stands in the protocol."""

    content: Sequence[Mapping[str, Any]] = ()
    structured: Any = None
    is_error: bool = False
    left_out: int = 0
    """How many further blocks the result has."""


def output(answer: CallResult, seconds: float, policy: TruncationPolicy) -> ToolOutput:
    """Return the output of a call that the server answered."""
    parts: list[Content] = [_text(f"Wall time: {seconds:.4f} seconds\nOutput:")]
    shown: list[dict[str, Any]] = []
    images = 0
    for block in answer.content:
        part, bounded = _block(block, with_image=images < MOST_IMAGES)
        images += part["type"] == "input_image"
        parts.append(part)
        shown.append(bounded)
    structured = _bounded(answer.structured)
    if answer.structured is not None and not any(block.get("type") == "text" for block in answer.content):
        parts.append(_text(_json(answer.structured)))
    if answer.left_out:
        parts.append(_text(f"[{answer.left_out} more parts left out]"))
    error = _said(parts[1:]) if answer.is_error else None
    detail = McpResult(content=shown, structured_content=structured, error=error)
    return ToolOutput(content=_fitted(parts, policy), ok=not answer.is_error, seconds=seconds, detail=detail)


def failure(reason: str, seconds: float | None = None) -> ToolOutput:
    """Return the output of a call that failed."""
    text = truncate(clean(reason), TruncationPolicy("bytes", 4_000))
    return ToolOutput(content=text, ok=False, seconds=seconds, detail=McpResult(error=text))


def _text(text: str) -> Content:
    return {"type": "input_text", "text": text}


def _said(parts: Sequence[Content]) -> str:
    texts = [str(part["text"]) for part in parts if part["type"] == "input_text"]
    return truncate("\n".join(texts), TruncationPolicy("bytes", 4_000)) or "the tool failed and did not say why"


def _fitted(parts: list[Content], policy: TruncationPolicy) -> list[Content]:
    """Return the parts with their texts cut to one budget."""
    views = [items.Content(part["type"], text=part.get("text")) for part in parts]
    cut = truncate_parts(views, policy)
    if cut is None:
        return parts
    kept = [
        _text(cut.texts[index]) if index in cut.texts else part
        for index, part in enumerate(parts)
        if index not in cut.dropped
    ]
    return [*kept, *(_text(note) for note in cut.notes)]


def _block(block: Mapping[str, Any], *, with_image: bool) -> tuple[Content, dict[str, Any]]:
    """Return a block for the model, and the same block for an event."""
    match block.get("type"):
        case "text":
            text = clean_text(str(block.get("text", "")))
            return _text(text), {"type": "text", "text": truncate(text, _SHOWN)}
        case "image":
            url = image_url(str(block.get("data", ""))) if with_image else None
            if url is None:
                return _note(f"[image left out: {_kind(block)}, no picture that can be shown, or one too many]")
            header, _, data = url.partition(",")
            kept = {"type": "image", "data": data, "mimeType": header[len("data:") : -len(";base64")]}
            return {"type": "input_image", "image_url": url, "detail": "auto"}, kept
        case "audio":
            return _note(f"[audio left out: {_kind(block)}, {len(str(block.get('data', ''))) * 3 // 4} bytes]")
        case "resource_link":
            name = clean(str(block.get("name", "")))[:MOST_URI]
            return _note(f"[resource {name}: {_uri(block)}]")
        case "resource":
            return _resource(cast("Mapping[str, Any]", block.get("resource") or {}))
        case other:
            return _note(f"[a part of kind {str(other)[:100]!r} left out]")


def _resource(resource: Mapping[str, Any]) -> tuple[Content, dict[str, Any]]:
    text = resource.get("text")
    if not isinstance(text, str):
        size = len(str(resource.get("blob", ""))) * 3 // 4
        return _note(f"[resource {_uri(resource)} left out: {_kind(resource)}, {size} bytes]")
    whole = f"[resource {_uri(resource)}]\n{clean_text(text)}"
    return _text(whole), {"type": "text", "text": truncate(whole, _SHOWN)}


def _note(text: str) -> tuple[Content, dict[str, Any]]:
    plain = clean(text)
    return _text(plain), {"type": "text", "text": plain}


def _kind(block: Mapping[str, Any]) -> str:
    return clean(str(block.get("mimeType") or "unknown kind"))[:100]


def _uri(block: Mapping[str, Any]) -> str:
    return clean(str(block.get("uri", "")))[:MOST_URI]


def clean_text(text: str) -> str:
    """Return a text without lone surrogates and otherwise unchanged."""
    return text.encode("utf-8", "replace").decode()


def image_url(data: str) -> str | None:
    """Return a picture as a `data:` URL; None if it is no picture, a damaged one or one that is too large.

    Its bytes decide what it is, not what the server says.
    """
    if len(data) > MOST_IMAGE_BYTES * 4 // 3 + 4:
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    kind = kind_of(raw)
    packed = base64.b64encode(raw).decode()
    size = image_size(packed)
    if kind is None or size is None or size[0] * size[1] > MOST_PIXELS:
        return None
    return f"data:image/{kind};base64,{packed}"


def _bounded(structured: Any) -> Any:
    """Return a structure that can be recorded; None if it is too large."""
    if structured is None:
        return None
    plain = plain_json(structured)
    return plain if len(msgspec.json.encode(plain)) <= MOST_SHOWN else None


def _json(structured: Any) -> str:
    return msgspec.json.encode(plain_json(structured)).decode()


def plain_json(value: Any, depth: int = 200) -> Any:
    """Return a value that every JSON writer accepts: no lone surrogates, no numbers beyond 64 bits, not too deep."""
    match value:
        case str():
            return clean_text(value)
        case bool() | None:
            return value
        case int():
            return value if -_SAFE_INTEGER <= value < _SAFE_INTEGER else _digits(value)
        case float():
            return value
        case dict() if depth:
            fields = cast("dict[Any, Any]", value)
            return {clean_text(str(key)): plain_json(each, depth - 1) for key, each in fields.items()}
        case list() | tuple() if depth:
            return [plain_json(each, depth - 1) for each in cast("list[Any]", value)]
        case _:
            return None


def _digits(value: int) -> str | None:
    """Return a huge number as text; None if Python refuses to write it out."""
    try:
        return str(value)
    except ValueError:
        return None
