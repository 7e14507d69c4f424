"""The rows that mirror what the memory holds; they follow from its files and can be made anew."""

from __future__ import annotations

import msgspec

from commonplace.learning.consolidate.consolidator import ConsolidatedMemory
from commonplace.memory.entries import Entry
from commonplace.state import entries, outputs
from commonplace.state.database import Transaction


def write(tx: Transaction, home: str, consolidated: ConsolidatedMemory, fingerprint: str) -> None:
    """Make the rows of a home say what its memory holds.

    Candidates that were said in the same words have the same id: the first stands for them.
    """
    hidden = {entry.id for entry in consolidated.left_out}
    rows = [_row(entry, is_shown=entry.id not in hidden) for entry in consolidated.entries]
    rows += [_row(entry, is_candidate=True) for entry in consolidated.candidates]
    by_id = {row["entry_id"]: row for row in reversed(rows)}
    entries.replace(tx, home, list(reversed(by_id.values())), fingerprint)
    for thread_id in _pinned(consolidated.entries):
        outputs.pin(tx, thread_id)


def _pinned(found: list[Entry]) -> set[str]:
    """Return the threads that pinned entries rest on, so that they do not age out, also after rows were made anew."""
    return {source.thread_id for entry in found if entry.pinned for source in entry.sources if source.thread_id}


def _row(entry: Entry, *, is_shown: bool = False, is_candidate: bool = False) -> dict[str, object]:
    return {
        "entry_id": entry.id,
        "scope": entry.scope,
        "kind": entry.kind,
        "text": entry.text,
        "support": entry.support,
        "sources": msgspec.json.encode(entry.sources).decode(),
        "first_seen_s": entry.first_seen_s,
        "last_seen_s": entry.last_seen_s,
        "is_pinned": int(entry.pinned),
        "is_shown": int(is_shown),
        "is_candidate": int(is_candidate),
        "confidence": entry.confidence,
    }
