"""An overview of the memory for one screen: what was learned lately, what waits, what was told, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import anyio.to_thread
import msgspec

from commonplace.memory.edits import history
from commonplace.memory.edits.review import is_doubtful
from commonplace.memory.store import KnownEntry, MemoryStore, MemorySummary
from commonplace.protocol.ids import wire_second, wire_time
from commonplace.rollout import decisions
from commonplace.state import usage
from commonplace.state.database import Row, Transaction
from commonplace.state.usage import SpentDay

DAYS: Final = 14
"""How many days the overview looks back."""
_NEWEST: Final = 8
"""How many entries each list shows."""


class UsedEntry(msgspec.Struct, frozen=True):
    """An entry, and when it was last used."""

    known: KnownEntry
    time: str


class Overview(msgspec.Struct):
    """What a person looks at once a week."""

    entries: int
    candidates: int
    waiting: int
    """Candidates and doubtful entries that nobody decided about."""
    learned: list[KnownEntry]
    """The entries that were learned last, the newest first."""
    changes: dict[str, int]
    """How many entries came, changed and went since some days ago."""
    told: list[UsedEntry]
    used: list[UsedEntry]
    """Entries that were found or cited last."""
    spent: list[SpentDay]


async def overview(store: MemoryStore) -> Overview:
    """Return the overview as of now."""
    decided = await anyio.to_thread.run_sync(decisions.reviews, store.home.path)
    past = await anyio.to_thread.run_sync(history.read, store.home.path)
    since = wire_time(store.home.now() - timedelta(days=DAYS))
    counts = Counter(
        "came" if each.before is None else "went" if each.after is None else "changed"
        for each in past
        if each.time >= since
    )
    told, used, spent = await _uses(store)
    held = await store.summary(_NEWEST, [row["entry_id"] for row in (*told, *used)]) or await _of_all(store)
    by_id = {each.entry.id: each for each in held.named}
    return Overview(
        entries=held.entries,
        candidates=held.candidates,
        waiting=sum(name not in decided for name in held.undecided),
        learned=held.newest,
        changes=dict(counts),
        told=_last(by_id, told, ("last_injected",)),
        used=_last(by_id, used, ("last_retrieved", "last_cited")),
        spent=spent,
    )


async def _of_all(store: MemoryStore) -> MemorySummary:
    """Return the same from the files, where no rows mirror them."""
    known, waiting = await store.known_entries(), await store.candidates()
    doubtful = [each for each in known if is_doubtful(each.entry)]
    newest = sorted(known, key=lambda each: -each.entry.first_seen_s)[:_NEWEST]
    undecided = [each.entry.id for each in (*waiting, *doubtful)]
    return MemorySummary(len(known), len(waiting), undecided, newest, known)


async def _uses(store: MemoryStore) -> tuple[list[Row], list[Row], list[SpentDay]]:
    if not store.home.has_index():
        return [], [], []
    now = store.home.now_s()

    def body(tx: Transaction) -> tuple[list[Row], list[Row], list[SpentDay]]:
        spent = usage.spent_days(tx, now=now, days=DAYS)
        return usage.last_told(tx, _NEWEST), usage.last_asked(tx, _NEWEST), spent

    return await (await store.home.database()).read(body)


def _last(known: dict[str, KnownEntry], rows: Iterable[Row], columns: tuple[str, ...]) -> list[UsedEntry]:
    return [
        UsedEntry(known[row["entry_id"]], wire_second(max(row[name] or 0 for name in columns)))
        for row in rows
        if row["entry_id"] in known
    ]
