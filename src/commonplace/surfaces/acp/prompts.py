"""What an editor sends as input, as the library takes it; and the servers that it brings along."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AcpMcpServer,
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    HttpMcpServer,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
    SseMcpServer,
    TextContentBlock,
)

from commonplace.agent.user_input import MOST_CHARACTERS, UserInput
from commonplace.errors import BadInput
from commonplace.patterns import regex

Block = TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
Server = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
_RESOURCE: Final = "acp.resource"
_END: Final = regex(r"<\s*+/\s*+resource", re.IGNORECASE)
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def read(blocks: Iterable[Block]) -> UserInput:
    """Return an input; parts keep their order.

    Raises:
        BadInput: it is empty or too long, or a part cannot be shown to a model.
    """
    read = [(_part(block), _kind(block)) for block in blocks]
    read = [(part, kind) for part, kind in read if part.get("text", "x").strip()]
    parts = tuple(part for part, _ in read)
    kinds = tuple(kind for _, kind in read)
    if not parts:
        raise BadInput("There is nothing to do.", hint="Write a prompt.")
    size = sum(len(part.get("text", "")) for part in parts)
    if size > MOST_CHARACTERS:
        raise BadInput(f"The input has {size:,} characters.", hint=f"Use at most {MOST_CHARACTERS:,}.")
    return UserInput(parts=parts, kinds=kinds if _RESOURCE in kinds else ())


def _kind(block: Block) -> str:
    """Return whose words a block holds: those of a file that an editor sends along are not the person's."""
    is_text = isinstance(block, EmbeddedResourceContentBlock) and not isinstance(block.resource, BlobResourceContents)
    return _RESOURCE if is_text else "user.text"


def _part(block: Block) -> dict[str, Any]:
    match block:
        case TextContentBlock():
            return _text(block.text)
        case ImageContentBlock():
            return _picture(block.mime_type, block.data)
        case ResourceContentBlock():
            return _text(f"[@{block.name}]({place(block.uri)})")
        case EmbeddedResourceContentBlock(resource=BlobResourceContents() as blob):
            if blob.mime_type in _PICTURES:
                return _picture(blob.mime_type, blob.blob)
            return _text(f"[@{Path(place(blob.uri)).name}]({place(blob.uri)})")
        case EmbeddedResourceContentBlock():
            resource: Any = block.resource
            uri, text = (_END.sub("&lt;/resource", each) for each in (resource.uri, resource.text))
            return _text(f'<resource uri="{uri}">\n{text}\n</resource>')
        case AudioContentBlock():
            raise BadInput("Sound is not understood here.", hint="Write it.")


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _picture(kind: str, data: str) -> dict[str, Any]:
    if kind not in _PICTURES:
        raise BadInput(f"A picture of the type {kind[:100]!r} cannot be shown.", hint="Use PNG, JPEG, GIF or WebP.")
    return {"type": "input_image", "image_url": f"data:{kind};base64,{data}", "detail": "high"}


def place(uri: str) -> str:
    """Return the path of a file that a URI names, else the URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme == "file" else uri


def servers(brought: Iterable[Server]) -> dict[str, dict[str, Any]]:
    """Return the servers that an editor brings along, as settings name them (raises BadInput: an old transport)."""
    found: dict[str, dict[str, Any]] = {}
    for server in brought:
        name = "".join(each if each.isascii() and (each.isalnum() or each in "_-") else "_" for each in server.name)
        match server:
            case McpServerStdio():
                variables = {each.name: each.value for each in server.env}
                found[name] = {"command": server.command, "args": [*server.args], "env": variables}
            case HttpMcpServer():
                headers = {each.name: each.value for each in server.headers}
                found[name] = {"url": server.url, "http_headers": headers}
            case _:
                hint = "Configure it with a command, or as streamable HTTP."
                raise BadInput(f"The transport of the server {server.name!r} is not spoken here.", hint=hint)
    return found
