"""A small MCP server whose one tool tells of its progress before it answers. It needs nothing but Python."""

from __future__ import annotations

import json
import sys
from typing import Any


def out(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    tool: dict[str, Any] = {"name": "work", "description": "Work.", "inputSchema": {"type": "object", "properties": {}}}
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        number, method = message.get("id"), message.get("method")
        params: dict[str, Any] = message.get("params") or {}
        if method == "initialize":
            server = {"name": "progress", "version": "1"}
            version = params["protocolVersion"]
            out(
                {
                    "id": number,
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server},
                }
            )
        elif method == "tools/list":
            out({"id": number, "result": {"tools": [tool]}})
        elif method == "tools/call":
            token = params.get("_meta", {}).get("progressToken", 1)
            told = {"progressToken": token, "progress": 1, "total": 2, "message": "half of it"}
            out({"method": "notifications/progress", "params": told})
            out({"id": number, "result": {"content": [{"type": "text", "text": "ok"}]}})
        elif number is not None:
            out({"id": number, "error": {"code": -32601, "message": "no such method"}})


if __name__ == "__main__":
    main()
