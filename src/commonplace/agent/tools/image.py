"""`view_image`: a picture from a file, as a content item that a model can see.

The first bytes of a file say what it is, never its name: only pictures leave the machine this way.
"""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Annotated, Final, Literal

import anyio.to_thread
import msgspec
from msgspec import Meta

from commonplace.agent.tools.arguments import decode, schema
from commonplace.agent.tools.registry import ToolContext, ToolDefinition, ToolInvocation, ToolOutput, description
from commonplace.context.media import image_size
from commonplace.errors import ToolError

MOST_BYTES: Final = 20 * 2**20
"""A larger file is no screenshot or diagram, and would fill a request."""
MOST_PIXELS: Final = 100_000_000
"""A picture with more pixels is taken for damaged or hostile."""


class ImageArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `view_image` takes."""

    path: Annotated[str, Meta(min_length=1, description="The file, absolute or from the working folder.")]
    detail: Annotated[
        Literal["auto", "high", "low", "original"],
        Meta(description="How closely to look; `original` keeps every pixel."),
    ] = "high"


class ViewImage:
    """Shows pictures."""

    aliases = ()
    parallel = True
    mutates = False

    def __init__(self) -> None:
        self.definition = ToolDefinition("view_image", "function", description("view_image"), schema(ImageArguments))

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Return the picture of a file."""
        wanted = decode(call.arguments, ImageArguments)
        if "\0" in wanted.path:
            raise ToolError("invalid_path", "the path holds a NUL character")
        path = context.cwd / wanted.path
        url = await anyio.to_thread.run_sync(data_url, path)
        return ToolOutput(content=[{"type": "input_image", "image_url": url, "detail": wanted.detail}])


def data_url(path: Path) -> str:
    """Return a picture as a `data:` URL.

    Raises:
        ToolError: there is no such file, or it is no picture that can be shown.
    """
    data = _read(path)
    kind = kind_of(data)
    if kind is None:
        raise ToolError("not_image", f"{path} is no PNG, JPEG, GIF or WebP")
    text = base64.b64encode(data).decode()
    size = image_size(text)
    if size is None or min(size) < 1:
        raise ToolError("not_image", f"{path} is damaged: its header tells no size")
    if size[0] * size[1] > MOST_PIXELS:
        raise ToolError("too_large", f"{path} has {size[0]} × {size[1]} pixels, more than can be shown")
    return f"data:image/{kind};base64,{text}"


def kind_of(data: bytes) -> str | None:
    """Return the format of a picture, by its first bytes; None if it is none that models take."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            os.close(descriptor)
            large = f"has {status.st_size} bytes; at most {MOST_BYTES} can be shown"
            raise ToolError("not_image", f"{path} {large if stat.S_ISREG(status.st_mode) else 'is no file'}")
        with open(descriptor, "rb") as file:  # noqa: PTH123  # what was opened said itself what it is
            return file.read(MOST_BYTES)
    except OSError as error:
        raise ToolError("io", f"{path} cannot be read: {error.strerror}") from None
