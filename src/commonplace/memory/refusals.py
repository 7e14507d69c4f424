"""What models said of sessions and the sessions do not bear out: refused, counted, and kept for a person to look at.

A refused line is no entry and no candidate: agents neither get nor find it. In a review it is shown with its reason. A
person who keeps it writes a note with its words.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from commonplace.memory import lessons
from commonplace.memory.entries import Entry, Source
from commonplace.memory.lessons import RefusedLesson
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.state import outputs
from commonplace.state.database import Row, Transaction

_STORED: Final = '%"refused":[{%'
"""How the JSON of lessons looks that holds a refused line."""


def count(tx: Transaction, home: str | None) -> int:
    """Return how many lines are refused now, with those that are not repeated."""
    return sum(len(_refused(row)) for row in outputs.matching(tx, home, _STORED))


async def refused_lines(store: MemoryStore) -> list[tuple[KnownEntry, str]]:
    """Return the refused lines, each in the form of an entry and with the reason, those of new sessions first.

    What must not be repeated, because it may steer its reader or hold a credential, is only counted.
    """
    if not store.home.has_index():
        return []
    key, database = store.home.sources_key, await store.home.database()
    rows = await database.read(lambda tx: outputs.matching(tx, key, _STORED))
    found = [(_known(row, each), each.reason) for row in rows for each in _refused(row) if each.text]
    return list({known.entry.id: (known, reason) for known, reason in reversed(found)}.values())[::-1]


def _refused(row: Row) -> tuple[RefusedLesson, ...]:
    try:
        return lessons.decode(row["lessons"]).refused
    except (msgspec.DecodeError, msgspec.ValidationError):  # a newer version wrote it
        return ()


def _known(row: Row, line: RefusedLesson) -> KnownEntry:
    thread, moment = row["thread_id"], row["source_updated_at"]
    name = "r" + hashlib.sha256(f"{thread}\0{line.kind}\0{line.text}".encode()).hexdigest()[:9]
    source = Source(line.quote, "refused", thread, line.turn or None, updated_s=moment)
    entry = Entry(name, row["project"] or row["cwd"], line.kind, line.text, 1, [source], moment, moment)
    return KnownEntry(entry, is_candidate=True)
