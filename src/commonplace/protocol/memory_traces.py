"""Traces of a memory in any agent's session: they must never be learned again as if they were new.

Three ways in: a tool that answers from a memory, a command that reads a memory's files, and a text that something put
into the conversation. Ours are recognised exactly; of other memory servers and memory hooks, those known by name.
"""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex

SECTION_OPENING: Final = "<commonplace_memory"
"""How the section that we put into prompts, and what our hooks add, begins."""

_SERVERS: Final = regex(
    r"commonplace|(?>(?:(?!mem(?:ory|ories|0|o)?(?![a-z0-9]))[a-z0-9]++[_-])*)mem(?:ory|ories|0|o)?(?>(?:[_-][a-z0-9]++)*)"
    r"|openmemory\w*|supermemory\w*|zep|graphiti|letta|cognee|memento|memgpt|memorybank|recall\w*|byterover\w*|cipher",
    re.IGNORECASE,
)
"""Names of MCP servers that serve a memory."""
_TOOLS: Final = regex(
    r"memor(?:y|ies)(?:_(?:search|read|list|get|recall|find|query))?"
    r"|(?:search|read|list|get|recall|find|query|open|retrieve|fetch)_?(?:all_)?memor(?:y|ies)"
    r"|recall|search_nodes|open_nodes|read_graph",
    re.IGNORECASE,
)
"""Tools that answer from a memory, whatever their server is called."""
_MAX_NAME: Final = 256
"""No tool is called by more than that; the rules above take long to tell of a name without end."""
_NAMESPACES: Final = frozenset({"memories", "memory", "commonplace"})
_FILES: Final = regex(
    r"\.(?:codex|commonplace)[\\/]+memories\b|\bmemory_summary\.md\b|\bmemories[\\/]+(?:MEMORY\.md|rollout_summaries)"
    r"|\.claude[\\/]+projects[\\/]+[^\\/\s\"']+[\\/]+memory\b"
)
"""Places where memories are kept as files."""
_OPENINGS: Final = (
    SECTION_OPENING,
    "<claude-mem-context",
    "<supermemory",
    "<relevant_memories",
    "<relevant-memories",
    "<recalled_memories",
    "<mem0",
    "<memory_context",
    "<memory-context",
)
_SUMMARY: Final = regex(r"^=+ *MEMORY_SUMMARY BEGINS *=+$", re.MULTILINE)
"""The line above the summary in what Codex tells its model."""


def is_memory_tool(name: str, namespace: str | None = None) -> bool:
    """Say whether a tool answers from a memory, by its name in any agent's way of writing it."""
    if namespace is not None and namespace.lower() in _NAMESPACES:
        return True
    if len(name) > _MAX_NAME:
        return False
    bare = name
    if name.startswith("mcp__"):
        server, _, bare = name[5:].partition("__")
        if _SERVERS.fullmatch(server):
            return True
    elif "__" in name:
        server, _, bare = name.partition("__")
        if server.lower() in _NAMESPACES:
            return True
    return bool(_TOOLS.fullmatch(bare))


def reads_memory(arguments: str) -> bool:
    """Say whether a call's arguments name the files of a memory."""
    return "memor" in arguments and bool(_FILES.search(arguments))


def is_memory_text(text: str) -> bool:
    """Say whether a text that was put into a conversation came out of a memory."""
    head = text.lstrip()[:80].lower()
    return head.startswith(_OPENINGS) or ("MEMORY_SUMMARY BEGINS" in text and bool(_SUMMARY.search(text)))
