"""Counters: how often entries and outputs were retrieved, injected and cited (kept apart), and what models cost.

Counters are the only state that cannot be rebuilt from files; `doctor --repair` says so when they are lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from commonplace.state.database import Row, Transaction

Use = Literal["retrieved", "injected", "cited"]


class Limits(msgspec.Struct, frozen=True):
    """The most that may be spent on one kind of work, in one run or one day (None: no limit)."""

    requests: int | None = None
    tokens: int | None = None
    seconds: int | None = None


class SpentTotals(msgspec.Struct):
    """Requests, tokens and seconds that were spent."""

    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0


def record_outputs(tx: Transaction, use: Use, thread_ids: Iterable[str], *, now: int) -> int:
    """Count a use of what threads taught; ids that name nothing are ignored; return how many rows changed."""
    counts = Counter(thread_ids)
    return sum(tx.execute(f"usage.output_{use}", id=key, n=counts[key], now=now) for key in sorted(counts))


def record_entries(tx: Transaction, use: Use, entry_ids: Iterable[str], *, now: int) -> None:
    """Count a use of entries of the memory."""
    counts = Counter(entry_ids)
    for key in sorted(counts):
        tx.execute(f"usage.entry_{use}", id=key, n=counts[key], now=now)


def entry(tx: Transaction, entry_id: str) -> Row | None:
    """Return the counters of an entry."""
    rows = tx.query("usage.entry", entry_id=entry_id)
    return rows[0] if rows else None


def forget_entry(tx: Transaction, entry_id: str) -> None:
    """Delete the counters of an entry that is forgotten."""
    tx.execute("usage.forget_entry", entry_id=entry_id)


def spend(tx: Transaction, kind: str, cost: SpentTotals, *, now: int) -> None:
    """Note what a model cost."""
    millis = round(cost.seconds * 1000)
    tx.execute("budget.spend", day=day_of(now), kind=kind, requests=cost.requests, tokens=cost.tokens, millis=millis)


def spent(tx: Transaction, kind: str, *, now: int) -> SpentTotals:
    """Return what was spent today on a kind of work."""
    rows = tx.query("budget.spent", day=day_of(now), kind=kind)
    return SpentTotals(rows[0]["requests"], rows[0]["tokens"], rows[0]["millis"] / 1000) if rows else SpentTotals()


class SpentDay(msgspec.Struct, frozen=True):
    """What one kind of work cost on one day."""

    day: str
    kind: str
    requests: int
    tokens: int


def spent_days(tx: Transaction, *, now: int, days: int) -> list[SpentDay]:
    """Return what was spent in the last days, the oldest first; days without cost are left out."""
    rows = tx.query("budget.since", day=day_of(now - (days - 1) * 86_400))
    return [SpentDay(row["day"], row["kind"], row["requests"], row["tokens"]) for row in rows]


def last_told(tx: Transaction, limit: int) -> list[Row]:
    """Return the counters of the entries that prompts carried last."""
    return tx.query("usage.told_last", limit=limit)


def last_asked(tx: Transaction, limit: int) -> list[Row]:
    """Return the counters of the entries that searches gave out or answers named last."""
    return tx.query("usage.asked_last", limit=limit)


def day_of(now: int) -> str:
    """Return the UTC day of a time in seconds."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
