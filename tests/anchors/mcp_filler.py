"""A tiny MCP server on stdio with one tool, `filler`, that returns as much text as it is asked for.

Codex lets its own commands return at most 10,000 tokens, below the limit at which the history cuts an
output. MCP tools have no such cap; this is how a recording gets an output that the history itself had to
cut.
"""

from __future__ import annotations

import json
import sys
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]

_TOOL: Json = {
    "name": "filler",
    "description": "Return filler text.",
    "inputSchema": {"type": "object", "properties": {"bytes": {"type": "integer"}}, "required": ["bytes"]},
    "annotations": {"readOnlyHint": True},
}


def respond(request: Json) -> Json | None:
    """Return the result of a request, or None for one that is unknown."""
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "filler", "version": "0"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [_TOOL]}
        case "tools/call":
            count = int(request["params"]["arguments"]["bytes"])
            return {"content": [{"type": "text", "text": ("filler " * (count // 7 + 1))[:count]}]}
        case _:
            return None


def main() -> None:
    """Serve until stdin ends."""
    for line in sys.stdin:
        request = cast("Json", json.loads(line))
        if "id" not in request:
            continue
        result = respond(request)
        answer: Json = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": "unknown method"}
        else:
            answer["result"] = result
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
