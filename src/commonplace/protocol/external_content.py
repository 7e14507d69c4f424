"""External content: which items of a session came from the web or from tools of servers. Pure.

The kinds are Codex's: a search of the web, a search for tools and what it found, an output that nobody called for. A
call of a server's tool is known by its name, `mcp__…`, and so are the tools of other agents that read the web. A tool
that answers from a memory brings nothing new from outside, whoever serves it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import items, memory_traces

_KINDS: Final = frozenset({"web_search_call", "tool_search_call", "tool_search_output"})
_WEB: Final = frozenset({"WebSearch", "WebFetch", "google_web_search", "web_fetch"})
"""Tools that read the web, as Claude Code and Gemini call them."""
_SERVERS: Final = "mcp_"
_CALL: Final = regex(rb'"call_id"\s*:\s*(.)')


def source(view: items.View) -> str | None:
    """Return where an item came from, if that is outside: `web_search`, `tool_search`, `unasked` or `mcp`."""
    match view:
        case items.WebSearchCall():
            return "web_search"
        case items.ToolSearchCall() | items.ToolSearchOutput():
            return "tool_search"
        case items.FunctionCallOutput(call_id=None):
            return "unasked"
        case items.FunctionCall():
            return _of_call(view)
        case _:
            return None


def _of_call(view: items.FunctionCall) -> str | None:
    if memory_traces.is_memory_tool(view.name, view.namespace):
        return None
    if view.name in _WEB:
        return "web_search"
    if view.namespace is None:
        return "mcp" if view.name.startswith(_SERVERS) else None
    is_memory = memory_traces.is_memory_tool(f"{view.namespace}__{view.name}")
    return "mcp" if view.namespace.startswith(_SERVERS) and not is_memory else None


def is_external(kind: str, raw: bytes) -> bool:
    """Say whether an item of a kind came from outside, looking at as little of its JSON as that takes.

    Raises:
        msgspec.DecodeError: the JSON is no item of that kind.
    """
    if kind in _KINDS:
        return True
    if kind == "function_call_output":
        named = _CALL.search(raw)
        return (named is None or named[1] != b'"') and source(items.view(raw)) is not None
    if kind != "function_call" or (b'"mcp_' not in raw and b'"Web' not in raw and b"web_" not in raw):
        return False
    return source(items.view(raw)) is not None


class _OwnLine(msgspec.Struct):
    kind: str = ""


_note = msgspec.json.Decoder(_OwnLine)


def is_note(payload: bytes | msgspec.Raw) -> bool:
    """Say whether a line of our own notes that something came from outside (raises msgspec.DecodeError)."""
    return _note.decode(payload).kind == "external"
