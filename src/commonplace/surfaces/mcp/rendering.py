"""How the server describes itself and its tools, and how a tool's result looks on the wire.

A result is there twice, as text and as structure, and both say the same: some clients show only the one, some only the
other.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from commonplace import package_files
from commonplace.surfaces.mcp.protocol import META_SERVER, MODERN_VERSIONS, Json
from commonplace.version import __version__

if TYPE_CHECKING:
    from commonplace.memory.recall.tools import Definition

NAME: Final = "commonplace"
"""The server's name; sessions that were recorded with it are told by that name."""
SUMMARY_URI: Final = "commonplace://memory/summary"
CAPABILITIES: Final[Json] = {"tools": {"listChanged": False}, "resources": {"subscribe": False, "listChanged": False}}
_TITLES: Final = {
    "list": "List memory files",
    "read": "Read a memory file",
    "search": "Search memory for exact words",
    "find": "Find in memory and old sessions",
    "add_ad_hoc_note": "Write down a note",
}
_CACHEABLE: Final = frozenset(
    {"server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list"}
)
"""Methods whose results say, in the modern era, how long they may be kept."""


def about() -> Json:
    """Return the server's name and version."""
    return {"name": NAME, "title": "Commonplace", "version": __version__}


def instructions(lessons: str = "") -> str:
    """Return when to use which tool, for the model, and the best lessons for where it works."""
    return f"{_guidance()}\n\nRemembered here, the most useful first:\n{lessons}" if lessons else _guidance()


@cache
def _guidance() -> str:
    return package_files.text("surfaces/mcp/instructions.md").strip()


def tool(definition: Definition) -> Json:
    """Return how a tool is listed."""
    title = _TITLES.get(definition.name, definition.name)
    hints: Json = {"title": title, "readOnlyHint": definition.read_only, "openWorldHint": False}
    if not definition.read_only:
        hints |= {"destructiveHint": False, "idempotentHint": False}
    return {
        "name": definition.name,
        "title": title,
        "description": definition.description,
        "inputSchema": definition.input_schema,
        "outputSchema": definition.output_schema,
        "annotations": hints,
    }


def tool_result(value: msgspec.Struct) -> Json:
    """Return a tool's result: the same value as text and as structure."""
    text = msgspec.json.encode(value)
    return {
        "content": [{"type": "text", "text": text.decode("utf-8")}],
        "structuredContent": msgspec.json.decode(text),
        "isError": False,
    }


def tool_error(sentence: str) -> Json:
    """Return what a tool says when it cannot do what was asked."""
    return {"content": [{"type": "text", "text": sentence}], "isError": True}


def summary() -> Json:
    """Return how the scoped summary is listed as a resource."""
    return {
        "uri": SUMMARY_URI,
        "name": "memory_summary.md",
        "title": "What is remembered about this project",
        "description": "The part of the memory that is for this project and for all, ready to be put into a prompt.",
        "mimeType": "text/markdown",
    }


def contents(text: str) -> Json:
    """Return the summary as the content of its resource."""
    return {"contents": [{"uri": SUMMARY_URI, "mimeType": "text/markdown", "text": text}]}


def discovery(lessons: str = "") -> Json:
    """Return what a client of the modern era learns about the server."""
    return {
        "supportedVersions": list(MODERN_VERSIONS),
        "capabilities": CAPABILITIES,
        "instructions": instructions(lessons),
    }


def modern_result(method: str, value: Json) -> Json:
    """Return a result with what the modern era adds to it."""
    stamped: Json = {**value, "resultType": "complete", "_meta": {META_SERVER: about()}}
    if method in _CACHEABLE:
        # What is remembered can change at any time and is one person's.
        stamped |= {"ttlMs": 0, "cacheScope": "private"}
    return stamped


def any_text(value: Any) -> str:
    """Return a value shortened for a sentence."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
