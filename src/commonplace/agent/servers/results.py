"""What a server's tool gave: for the model, cut to what it may read, and for whoever watches. Pure.

Texts go to the model as they are, within one budget for all of them. A picture goes along if its bytes say that it is
one; recordings, files and links become a line that tells of them. Whatever comes back was written elsewhere: `external`
says so, for those who must not learn from it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from commonplace.agent.servers.offered import clean
from commonplace.agent.tools.image import MOST_PIXELS, kind_of
from commonplace.agent.tools.registry import Content, Output
from commonplace.context.media import image_size
from commonplace.context.truncate import Policy, truncate, truncate_parts
from commonplace.protocol import items

MOST_BLOCKS: Final = 256
MOST_IMAGES: Final = 16
MOST_IMAGE_BYTES: Final = 8 * 2**20
MOST_SHOWN: Final = 256 * 1024
"""Bytes of a text, or of a structure, that those who watch are shown."""
MOST_URI: Final = 500
_SHOWN: Final = Policy("bytes", MOST_SHOWN)
_SAFE_INTEGER: Final = 2**63


class Answer(msgspec.Struct, frozen=True):
    """The result of a call as it stands in the protocol."""

    content: Sequence[Mapping[str, Any]] = ()
    structured: Any = None
    is_error: bool = False
    left_out: int = 0
    """How many blocks came after those."""


class McpResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a server's tool, for an event."""

    server: str
    tool: str
    """By the server's own name for it."""
    arguments: dict[str, Any] = {}
    content: list[dict[str, Any]] = []
    """The blocks of the result as the protocol has them, within bounds."""
    structured_content: Any = None
    error: str | None = None
    """Why there is no result, or that the tool called its result an error."""
    read_only: bool = False
    external: bool = True
    """What came back was written by somebody else."""

    @property
    def result(self) -> dict[str, Any] | None:
        """What an event shows as the result."""
        if self.error is not None and not self.content:
            return None
        return {"content": self.content, "structured_content": self.structured_content}


class Called(msgspec.Struct, frozen=True):
    """Which call it was."""

    server: str
    tool: str
    arguments: dict[str, Any]
    read_only: bool = False


def output(called: Called, answer: Answer, seconds: float, policy: Policy) -> Output:
    """Return the answer to a call that its server answered."""
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
    detail = _detail(called, content=shown, structured_content=structured, error=error)
    return Output(content=_fitted(parts, policy), ok=not answer.is_error, seconds=seconds, detail=detail)


def failure(called: Called, reason: str, seconds: float | None = None) -> Output:
    """Return the answer to a call that its server did not answer, or not well."""
    text = truncate(clean(reason), Policy("bytes", 4_000))
    return Output(content=text, ok=False, seconds=seconds, detail=_detail(called, error=text))


def _detail(called: Called, **fields: Any) -> McpResult:
    return McpResult(
        server=called.server, tool=called.tool, arguments=called.arguments, read_only=called.read_only, **fields
    )


def _text(text: str) -> Content:
    return {"type": "input_text", "text": text}


def _said(parts: Sequence[Content]) -> str:
    texts = [str(part["text"]) for part in parts if part["type"] == "input_text"]
    return truncate("\n".join(texts), Policy("bytes", 4_000)) or "the tool failed and did not say why"


def _fitted(parts: list[Content], policy: Policy) -> list[Content]:
    """Return the parts, their texts cut to one budget."""
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
    """Return a block for the model, and as those who watch are shown it."""
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
    """Return a text without halves of characters; nothing else is changed, since the model is to read what is there."""
    return text.encode("utf-8", "replace").decode()


def image_url(data: str) -> str | None:
    """Return a picture as a `data:` URL; None if it is no picture, a damaged one or one that is too large.

    What a server says that it is does not count: its bytes tell.
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
    """Return a value that every JSON writer takes: no halves of characters, no numbers beyond 64 bits, not too deep."""
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
    """Return a huge number as text; beyond what Python writes out it is none."""
    try:
        return str(value)
    except ValueError:
        return None
