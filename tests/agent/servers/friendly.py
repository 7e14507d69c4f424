"""A real server, made with the official SDK: `friendly.py stdio`, or `friendly.py http`, which prints its port."""

from __future__ import annotations

import base64
import socket
import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from pictures import png

server = MCPServer("friendly", instructions="Be friendly.")
READS = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def write(path: str) -> str:
    """Write something."""
    return f"wrote {path}"


@server.tool(annotations=READS)
def fail() -> str:
    """Fail."""
    raise ToolError("it does not work")


@server.tool(annotations=READS, structured_output=False)
def media() -> list[Any]:
    """Give one of each kind."""
    picture = base64.b64encode(png(3, 2)).decode()
    note = types.TextResourceContents(uri="note://one", text="a note")
    return [
        types.TextContent(text="first"),
        types.ImageContent(data=picture, mime_type="image/jpeg"),
        types.ImageContent(data="bm8gcGljdHVyZQ==", mime_type="image/png"),
        types.AudioContent(data="UklGRg==", mime_type="audio/wav"),
        types.ResourceLink(name="a link", uri="note://two"),
        types.EmbeddedResource(resource=note),
    ]


@server.tool(annotations=READS)
def weather() -> dict[str, Any]:
    """Give a structure."""
    return {"sun": True, "degrees": 21}


def serve_http() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app(json_response="json" in sys.argv)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listening])


if __name__ == "__main__":
    if sys.argv[1] == "http":
        serve_http()
    else:
        server.run("stdio")
