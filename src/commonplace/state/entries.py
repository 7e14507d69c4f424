"""The entries of a memory, mirrored from its files for listing; their sources are kept as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from commonplace.state.database import Row, Transaction


def mirrored_fingerprint(tx: Transaction, root: str) -> str | None:
    """Return the fingerprint of the memory that the entries mirror."""
    rows = tx.query("memories.get", root=root)
    return rows[0]["fingerprint"] if rows else None


def replace(tx: Transaction, root: str, rows: Iterable[dict[str, Any]], fingerprint: str) -> None:
    """Replace the rows of a memory by new entries, the most useful first, and note the fingerprint that they mirror."""
    tx.execute("memories.put", root=root, fingerprint=fingerprint)
    tx.execute("entries.clear", root=root)
    tx.execute_many("entries.put", [{"root": root, "place": place, **row} for place, row in enumerate(rows)])


def page(
    tx: Transaction,
    root: str,
    *,
    after: int = 0,
    limit: int,
    scope: str | None = None,
    kind: str | None = None,
    candidates: bool = False,
) -> list[Row]:
    """Return some entries, or some candidates, the most useful first."""
    chosen = [name for name, value in (("scope", scope), ("kind", kind)) if value is not None]
    values: dict[str, Any] = {"root": root, "after": after, "limit": limit, "candidates": int(candidates)}
    values |= {name: value for name, value in (("scope", scope), ("kind", kind)) if value is not None}
    return tx.query("entries.page", *chosen, **values)


def get(tx: Transaction, root: str, entry_id: str) -> Row | None:
    """Return one entry."""
    rows = tx.query("entries.get", root=root, entry_id=entry_id)
    return rows[0] if rows else None


def omitted_entries(tx: Transaction, root: str) -> set[str]:
    """Return the entries of a memory for which its file had no room."""
    return {row["entry_id"] for row in tx.query("entries.hidden", root=root)}


def pin(tx: Transaction, root: str, entry_id: str, *, pinned: bool) -> bool:
    """Mirror whether a person pinned an entry; return whether the entry exists."""
    return tx.execute("entries.pin", root=root, entry_id=entry_id, is_pinned=int(pinned)) > 0


def everything(tx: Transaction, root: str, *, candidates: bool = False) -> list[Row]:
    """Return every entry of a memory, or every candidate, the most useful first."""
    return page(tx, root, limit=2**31 - 1, candidates=candidates)


def newest(tx: Transaction, root: str, limit: int) -> list[Row]:
    """Return the entries that were learned last."""
    return tx.query("entries.newest", root=root, limit=limit)


def undecided(tx: Transaction, root: str, told: float) -> list[str]:
    """Return the candidates, and the entries of one session whose confidence is below `told`, by their ids."""
    return [row["entry_id"] for row in tx.query("entries.undecided", root=root, told=told)]


def count(tx: Transaction, root: str) -> tuple[int, int]:
    """Return how many entries and how many candidates there are."""
    counts = {row["is_candidate"]: row["n"] for row in tx.query("entries.count", root=root)}
    return counts.get(0, 0), counts.get(1, 0)


def scopes(tx: Transaction, root: str) -> dict[str, int]:
    """Count the entries of each scope."""
    return {row["scope"]: row["n"] for row in tx.query("entries.scopes", root=root)}


def clear(tx: Transaction, root: str) -> None:
    """Delete the entries of a memory."""
    tx.execute("entries.clear", root=root)
    tx.execute("memories.forget", root=root)
