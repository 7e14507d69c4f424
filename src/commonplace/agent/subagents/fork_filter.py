"""Which items of its parent a sub-agent begins with when it forks the parent's context. Pure.

What was said stays: instructions, context, a person's words, and the answers that ended a turn. How the parent got
there goes: reasoning, calls and their outputs, searches, commentary, mail. Compactions stay, since they stand for what
was said before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.context import history_items
from commonplace.context.history_items import HistoryEntry
from commonplace.protocol import fragments, items, turns

_SCRUBBED: Final = frozenset({"multi_agent_role", "multi_agent_mode"})
"""Developer texts about the parent's own place among agents."""
_COMPACTIONS: Final = (items.Compaction, items.CompactionSummary, items.ContextCompaction)
_CALLS: Final = (
    items.FunctionCall,
    items.CustomToolCall,
    items.LocalShellCall,
    items.ToolSearchCall,
    items.WebSearchCall,
)


def forked(entries: Sequence[HistoryEntry]) -> list[bytes]:
    """Return the items that a fork keeps, as they were recorded."""
    kept: list[bytes] = []
    for place, entry in enumerate(entries):
        match entry.view:
            case items.Message(role="developer"):
                kept += _without_hints(entry)
            case items.Message(role="system" | "user"):
                kept.append(entry.raw)
            case items.Message(role="assistant") if _is_final(entries, place):
                kept.append(entry.raw)
            case items.FunctionCallOutput() if not entry.view.call_id:
                kept.append(entry.raw)
            case view if isinstance(view, _COMPACTIONS):
                kept.append(entry.raw)
            case _:
                pass
    return kept


def _is_final(entries: Sequence[HistoryEntry], place: int) -> bool:
    """Return whether a message ended its turn.

    Its phase says so. Many models write none; there a message is final unless a call follows it in its turn.
    """
    view = entries[place].view
    phase = view.phase if isinstance(view, items.Message) else None
    if phase is not None:
        return phase == "final_answer"
    for later in entries[place + 1 :]:
        if turns.is_boundary(later.view):
            return True
        if isinstance(later.view, _CALLS):
            return False
    return True


def _without_hints(entry: HistoryEntry) -> list[bytes]:
    """Return a developer message without texts about the parent's place among agents; nothing if that was all."""
    assert isinstance(entry.view, items.Message)
    told = [fragments.recognise(part.text, "developer") if part.text else None for part in entry.view.content]
    keeps = [found is None or found.name not in _SCRUBBED for found in told]
    if all(keeps):
        return [entry.raw]
    item = history_items.fields(entry.raw)
    parts = [part for part, stays in zip(history_items.parts(item["content"]), keeps, strict=True) if stays]
    item.pop(items.PASSTHROUGH, None)  # its kinds are those of all the parts
    return [msgspec.json.encode({**item, "content": parts})] if parts else []
