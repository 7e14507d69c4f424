"""What is searched: segments of postings on shelves (`sessions`, `memory`), and which documents stand in them.

Segments are never changed. A document that is taken in again is dropped where it stood before; so two processes that
take in the same one at once leave one live copy, and a search that began earlier still finds all it has opened. Every
change counts a shelf's generation up: an opened shelf is good for as long as that stays.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from commonplace.state.database import Row, Transaction

Shelf = Literal["sessions", "memory"]


class DocumentStamp(msgspec.Struct, frozen=True):
    """A document in a state."""

    document: str
    size: int
    mtime_ns: int


class StoredSegment(msgspec.Struct):
    """A segment as it is kept."""

    version: int
    passages: int
    bits: int
    facts: bytes
    buckets: Sequence[bytes]


def generation(tx: Transaction, root: str, shelf: Shelf) -> int:
    """Return how often a shelf changed."""
    rows = tx.query("shelves.get", root=root, shelf=shelf)
    return rows[0]["generation"] if rows else 0


def segments(tx: Transaction, root: str, shelf: Shelf, version: int) -> list[Row]:
    """Return the segments of a shelf."""
    return tx.query("segments.all", root=root, shelf=shelf, version=version)


def dropped(tx: Transaction, root: str, shelf: Shelf) -> dict[str, frozenset[int]]:
    """Return which documents of a shelf's segments are gone."""
    found: dict[str, set[int]] = {}
    for row in tx.query("dropped.all", root=root, shelf=shelf):
        found.setdefault(row["segment_id"], set()).add(row["place"])
    return {key: frozenset(places) for key, places in found.items()}


def buckets(tx: Transaction, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
    """Return the postings of some shares of some segments' terms."""
    found: dict[tuple[str, int], bytes] = {}
    for segment_id, bucket in wanted:
        rows = tx.query("postings.get", segment_id=segment_id, bucket=bucket)
        if rows:
            found[segment_id, bucket] = rows[0]["data"]
    return found


def between(tx: Transaction, segment_id: str, first: int, last: int) -> dict[int, bytes]:
    """Return the postings of several shares of a segment's terms, for merging."""
    rows = tx.query("postings.between", segment_id=segment_id, first=first, last=last)
    return {row["bucket"]: row["data"] for row in rows}


def add(tx: Transaction, root: str, shelf: Shelf, packed: StoredSegment, documents: Sequence[DocumentStamp]) -> str:
    """Take in a segment; its documents are dropped wherever they stood before. Return its name."""
    tx.serialise(f"shelf:{root}")
    segment_id = _put(tx, root, shelf, packed)
    named = [{"root": root, "shelf": shelf, "document": each.document} for each in documents]
    tx.execute_many("dropped.put", named)
    places = [
        {
            **name,
            "segment_id": segment_id,
            "place": place,
            "size": each.size,
            "mtime_ns": each.mtime_ns,
        }
        for place, (name, each) in enumerate(zip(named, documents, strict=True))
    ]
    tx.execute_many("indexed.put", places)
    tx.execute("shelves.bump", root=root, shelf=shelf)
    return segment_id


def _put(tx: Transaction, root: str, shelf: Shelf, packed: StoredSegment) -> str:
    segment_id = secrets.token_hex(8)
    values: dict[str, Any] = {"segment_id": segment_id, "root": root, "shelf": shelf, "version": packed.version}
    tx.execute("segments.put", **values, passages=packed.passages, bits=packed.bits, facts=packed.facts)
    rows = [{"segment_id": segment_id, "bucket": number, "data": data} for number, data in enumerate(packed.buckets)]
    tx.execute_many("postings.put", rows)
    return segment_id


def drop(tx: Transaction, root: str, shelf: Shelf, documents: Iterable[str]) -> int:
    """Let documents be found no more; return how many there were."""
    tx.serialise(f"shelf:{root}")
    named = [{"root": root, "shelf": shelf, "document": document} for document in documents]
    tx.execute_many("dropped.put", named)
    gone = sum(tx.execute("indexed.delete", **name) for name in named)
    if gone:
        tx.execute("shelves.bump", root=root, shelf=shelf)
    return gone


def replace(
    tx: Transaction,
    root: str,
    shelf: Shelf,
    merged: StoredSegment,
    moved: Mapping[tuple[str, int], int],
    gone: Mapping[str, int],
) -> bool:
    """Put one segment in the place of several, unless documents of theirs were dropped meanwhile; say whether.

    `moved` tells where each document of the old segments is in the new one, `gone` how many of each were dropped.
    """
    tx.serialise(f"shelf:{root}")
    for segment_id, count in gone.items():
        if not tx.query("segments.get", segment_id=segment_id):
            return False
        if len(tx.query("dropped.of", segment_id=segment_id)) != count:
            return False
    segment_id = _put(tx, root, shelf, merged) if merged.passages or moved else ""
    rows = [
        {"segment_id": segment_id, "place": place, "old_id": old_id, "old_place": old_place}
        for (old_id, old_place), place in moved.items()
    ]
    tx.execute_many("indexed.move", rows)
    for old_id in gone:
        remove(tx, old_id)
    tx.execute("shelves.bump", root=root, shelf=shelf)
    return True


def remove(tx: Transaction, segment_id: str) -> None:
    """Take away a segment and everything that is said of it."""
    for name in ("delete_postings", "delete_dropped", "delete_indexed", "delete"):
        tx.execute(f"segments.{name}", segment_id=segment_id)


def sizes(tx: Transaction, root: str, shelf: Shelf) -> list[Row]:
    """Return how large the segments of a shelf are, and how much of each is gone, the smallest first."""
    return tx.query("segments.sizes", root=root, shelf=shelf)


def outdated(tx: Transaction, root: str, shelf: Shelf, version: int) -> int:
    """Take away segments that other rules made; return how many there were."""
    old = [row["segment_id"] for row in sizes(tx, root, shelf) if row["version"] != version]
    for segment_id in old:
        remove(tx, segment_id)
    if old:
        tx.execute("shelves.bump", root=root, shelf=shelf)
    return len(old)


def stamps(tx: Transaction, root: str, shelf: Shelf) -> dict[str, DocumentStamp]:
    """Return the documents of a shelf in the state that they were taken in."""
    rows = tx.query("indexed.all", root=root, shelf=shelf)
    return {row["document"]: DocumentStamp(row["document"], row["size"], row["mtime_ns"]) for row in rows}


def stale(tx: Transaction, root: str) -> list[Row]:
    """Return the threads whose file is not searched yet, or changed since."""
    return tx.query("indexed.stale", root=root)


def gone(tx: Transaction, root: str) -> list[str]:
    """Return the threads that are searched and no longer listed."""
    return [row["document"] for row in tx.query("indexed.gone", root=root)]


def chosen(tx: Transaction, root: str, *, project: str | None = None, learned: bool = False) -> set[str]:
    """Return the threads that a search may show: of one project, and only those that memory may use."""
    filters = [name for name, wanted in (("project", project is not None), ("learned", learned)) if wanted]
    values = {"root": root} | ({"project": project} if project is not None else {})
    return {row["thread_id"] for row in tx.query("indexed.chosen", *filters, **values)}


def clear(tx: Transaction, root: str, shelf: Shelf) -> None:
    """Let nothing of a shelf be found any more."""
    for row in sizes(tx, root, shelf):
        remove(tx, row["segment_id"])
    tx.execute("shelves.bump", root=root, shelf=shelf)
