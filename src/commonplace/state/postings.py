"""The search index in the database: segments of postings in collections (`sessions`, `memory`), and their documents.

Segments never change. When a document is added again, its earlier copy is dropped; so two processes that add the same
document at once leave one live copy, and a search that began earlier still finds everything that it opened. Every
change raises the generation of the collection (column `shelf`): an opened collection is valid while the generation
stays.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from commonplace.rollout.store import stubs
from commonplace.state.database import Row, Transaction

Shelf = Literal["sessions", "memory"]


class DocumentStamp(msgspec.Struct, frozen=True):
    """A document and the state in which it was indexed."""

    document: str
    size: int
    mtime_ns: int


class StoredSegment(msgspec.Struct):
    """A segment as the database stores it."""

    version: int
    passages: int
    bits: int
    facts: bytes
    buckets: Sequence[bytes]


def generation(tx: Transaction, root: str, shelf: Shelf) -> int:
    """Return the generation of a collection: how often it changed."""
    rows = tx.query("shelves.get", root=root, shelf=shelf)
    return rows[0]["generation"] if rows else 0


def segments(tx: Transaction, root: str, shelf: Shelf, version: int) -> list[Row]:
    """Return the segments of a collection."""
    return tx.query("segments.all", root=root, shelf=shelf, version=version)


def dropped(tx: Transaction, root: str, shelf: Shelf) -> dict[str, frozenset[int]]:
    """Return the documents of a collection's segments that were dropped."""
    found: dict[str, set[int]] = {}
    for row in tx.query("dropped.all", root=root, shelf=shelf):
        found.setdefault(row["segment_id"], set()).add(row["place"])
    return {key: frozenset(places) for key, places in found.items()}


def buckets(tx: Transaction, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
    """Return the postings of some buckets of some segments."""
    found: dict[tuple[str, int], bytes] = {}
    for segment_id, bucket in wanted:
        rows = tx.query("postings.get", segment_id=segment_id, bucket=bucket)
        if rows:
            found[segment_id, bucket] = rows[0]["data"]
    return found


def bucket_range(tx: Transaction, segment_id: str, first: int, last: int) -> dict[int, bytes]:
    """Return the postings of a range of a segment's buckets, for merging."""
    rows = tx.query("postings.between", segment_id=segment_id, first=first, last=last)
    return {row["bucket"]: row["data"] for row in rows}


def add(tx: Transaction, root: str, shelf: Shelf, packed: StoredSegment, documents: Sequence[DocumentStamp]) -> str:
    """Add a segment and drop earlier copies of its documents; return the segment's name."""
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
    """Drop documents, so that no search finds them; return how many there were."""
    tx.serialise(f"shelf:{root}")
    named = [{"root": root, "shelf": shelf, "document": document} for document in documents]
    tx.execute_many("dropped.put", named)
    gone = sum(tx.execute("indexed.delete", **name) for name in named)
    if gone:
        tx.execute("shelves.bump", root=root, shelf=shelf)
    return gone


class Merged(msgspec.Struct, frozen=True):
    """One segment made of several."""

    segment: StoredSegment
    moved: Mapping[tuple[str, int], int]
    """Where each document of the old segments is in the new one."""
    dropped: Mapping[str, int]
    """How many documents of each old segment were dropped when it was read."""


def replace(tx: Transaction, root: str, shelf: Shelf, merged: Merged) -> bool:
    """Put one segment in the place of several, unless documents of theirs were dropped meanwhile; say whether."""
    tx.serialise(f"shelf:{root}")
    for segment_id, count in merged.dropped.items():
        if not tx.query("segments.get", segment_id=segment_id):
            return False
        if len(tx.query("dropped.of", segment_id=segment_id)) != count:
            return False
    segment_id = _put(tx, root, shelf, merged.segment) if merged.segment.passages or merged.moved else ""
    rows = [
        {"segment_id": segment_id, "place": place, "old_id": old_id, "old_place": old_place}
        for (old_id, old_place), place in merged.moved.items()
    ]
    tx.execute_many("indexed.move", rows)
    for old_id in merged.dropped:
        remove(tx, old_id)
    tx.execute("shelves.bump", root=root, shelf=shelf)
    return True


def remove(tx: Transaction, segment_id: str) -> None:
    """Delete a segment and all rows about it."""
    for name in ("delete_postings", "delete_dropped", "delete_indexed", "delete"):
        tx.execute(f"segments.{name}", segment_id=segment_id)


def sizes(tx: Transaction, root: str, shelf: Shelf) -> list[Row]:
    """Return the size of each segment of a collection and how much of it was dropped, the smallest first."""
    return tx.query("segments.sizes", root=root, shelf=shelf)


def remove_outdated(tx: Transaction, root: str, shelf: Shelf, version: int) -> int:
    """Delete segments that another version of the analysis made; return how many there were."""
    old = [row["segment_id"] for row in sizes(tx, root, shelf) if row["version"] != version]
    for segment_id in old:
        remove(tx, segment_id)
    if old:
        tx.execute("shelves.bump", root=root, shelf=shelf)
    return len(old)


def stamps(tx: Transaction, root: str, shelf: Shelf) -> dict[str, DocumentStamp]:
    """Return the documents of a collection with the state in which they were indexed."""
    rows = tx.query("indexed.all", root=root, shelf=shelf)
    return {row["document"]: DocumentStamp(row["document"], row["size"], row["mtime_ns"]) for row in rows}


def changed_threads(tx: Transaction, root: str) -> list[Row]:
    """Return the threads whose file is here and not indexed yet, or changed since."""
    return [row for row in tx.query("indexed.stale", root=root) if not stubs.is_remote(row["path"])]


def removed_threads(tx: Transaction, root: str) -> list[str]:
    """Return the threads that are indexed and no longer listed."""
    return [row["document"] for row in tx.query("indexed.gone", root=root)]


def visible_threads(
    tx: Transaction, root: str, *, project: str | None = None, learned: bool = False, shared: bool = False
) -> set[str]:
    """Return the threads that a search may show: those of one project, or only those that memory may use.

    `shared` means the threads of every home that shares the memory.
    """
    filters = [name for name, wanted in (("project", project is not None), ("learned", learned)) if wanted]
    filters.append("shared" if shared else "own")
    values = ({} if shared else {"root": root}) | ({"project": project} if project is not None else {})
    return {row["thread_id"] for row in tx.query("indexed.chosen", *filters, **values)}


def clear(tx: Transaction, root: str, shelf: Shelf) -> None:
    """Delete everything of a collection."""
    for row in sizes(tx, root, shelf):
        remove(tx, row["segment_id"])
    tx.execute("shelves.bump", root=root, shelf=shelf)
