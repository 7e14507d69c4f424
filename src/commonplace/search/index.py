"""The search index of a home: add documents, drop them, merge segments, and open a collection for queries.

New documents are added and removed ones are dropped; nothing is rebuilt from scratch. Work is done in pieces of a few
megabytes, each made in memory and stored in one short transaction, so that searches can run in between and a crash
loses one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import anyio.from_thread
import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError
from commonplace.search.rank import analysis, merge
from commonplace.search.rank.analysis import Analyser
from commonplace.search.rank.build import Builder, Passage
from commonplace.search.rank.segment import IndexSegment, unpack_facts
from commonplace.search.rank.segments import OpenSegment, SegmentIndex
from commonplace.state import postings
from commonplace.state.database import Database, Transaction
from commonplace.state.postings import DocumentStamp, Shelf, StoredSegment

Progress = Callable[[int, int], None]
_PIECE_DOCUMENTS: Final = 2_000
"""How many documents one piece of work adds."""
_TRIES: Final = 4
"""How often the index is opened again because another process merged its segments meanwhile."""


class NewDocument(msgspec.Struct):
    """A document to add: its name, its state, and how to read it."""

    stamp: DocumentStamp
    read: Callable[[], Iterable[Passage]]
    place: str = ""
    kind: str = ""


async def add_documents(
    database: Database, root: str, shelf: Shelf, items: list[NewDocument], progress: Progress | None = None
) -> int:
    """Add documents, piece by piece; return how many passages they have."""
    analyser, passages, done = Analyser(), 0, 0
    left = iter(items)
    while True:
        builder = Builder(analyser)
        stamps = await anyio.to_thread.run_sync(_fill, builder, left)
        if not stamps:
            break
        packed = _packed(await anyio.to_thread.run_sync(builder.segment))
        await database.write(lambda tx, packed=packed, stamps=stamps: postings.add(tx, root, shelf, packed, stamps))
        passages, done = passages + packed.passages, done + len(stamps)
        if progress is not None:
            progress(done, len(items))
        if analyser.is_full():
            analyser = Analyser()
        await merge_segments(database, root, shelf)
    return passages


def _fill(builder: Builder, items: Iterator[NewDocument]) -> list[DocumentStamp]:
    """Read documents until there are enough for a segment; one that cannot be read is taken in as empty."""
    stamps: list[DocumentStamp] = []
    for item in items:
        builder.add(item.stamp.document, item.place, _readable(item), item.kind)
        stamps.append(item.stamp)
        if builder.is_full() or len(stamps) >= _PIECE_DOCUMENTS:
            break
    return stamps


def _readable(item: NewDocument) -> Iterator[Passage]:
    try:
        yield from item.read()
    except (CommonplaceError, OSError):
        return


def _packed(made: IndexSegment) -> StoredSegment:
    return StoredSegment(analysis.VERSION, made.passages, made.bits, made.facts, made.buckets)


async def merge_segments(database: Database, root: str, shelf: Shelf) -> None:
    """Merge segments until there are few, and drop segments that are mostly gone."""
    while True:
        rows = await database.read(lambda tx: postings.sizes(tx, root, shelf))
        sizes = [(row["segment_id"], row["passages"], _share_gone(row["live"], row["gone"])) for row in rows]
        chosen = merge.plan(sizes)
        if not chosen or not await _merge(database, root, shelf, chosen):
            return


def _share_gone(live: int, gone: int) -> float:
    return gone / max(live + gone, 1)


async def _merge(database: Database, root: str, shelf: Shelf, chosen: list[str]) -> bool:
    opened = await database.read(lambda tx: _open_some(tx, root, shelf, set(chosen)))
    if len(opened) < len(chosen):
        return False

    def read(segment_id: str, first: int, last: int) -> dict[int, bytes]:
        def body(tx: Transaction) -> dict[int, bytes]:
            return postings.bucket_range(tx, segment_id, first, last)

        return anyio.from_thread.run(database.read, body)

    made, moved = await anyio.to_thread.run_sync(merge.merge, opened, read)
    gone = {each.id: len(each.dropped) for each in opened}
    merged = postings.Merged(_packed(made), moved, gone)
    return await database.write(lambda tx: postings.replace(tx, root, shelf, merged))


def _open_some(tx: Transaction, root: str, shelf: Shelf, names: set[str] | None) -> list[OpenSegment]:
    gone = postings.dropped(tx, root, shelf)
    return [
        OpenSegment(
            row["segment_id"], row["bits"], unpack_facts(row["facts"]), gone.get(row["segment_id"], frozenset())
        )
        for row in postings.segments(tx, root, shelf, analysis.VERSION)
        if names is None or row["segment_id"] in names
    ]


class OpenIndex(msgspec.Struct):
    """A collection as it was at one generation."""

    generation: int
    index: SegmentIndex


class SearchIndex:
    """The collections of one home, kept open from query to query."""

    def __init__(self, database: Database, root: str) -> None:
        self._database = database
        self._root = root
        self._open: dict[Shelf, OpenIndex] = {}

    async def open(self, shelf: Shelf) -> OpenIndex:
        """Return the current state of a collection."""
        known = self._open.get(shelf)
        generation = await self._database.read(lambda tx: postings.generation(tx, self._root, shelf))
        if known is not None and known.generation == generation:
            return known

        def load(tx: Transaction) -> tuple[int, list[OpenSegment]]:
            return postings.generation(tx, self._root, shelf), _open_some(tx, self._root, shelf, None)

        generation, opened = await self._database.read(load)
        found = OpenIndex(generation, SegmentIndex(opened, known.index if known else None))
        self._open[shelf] = found
        return found

    async def open_for_query(self, shelf: Shelf, question: str) -> OpenIndex:
        """Return the current state of a collection, with the postings of the query's terms loaded."""
        keys = list(analysis.query_terms(question).values())
        opened = await self.open(shelf)
        for _ in range(_TRIES):
            wanted = opened.index.missing_buckets(keys)
            found = await self._database.read(lambda tx, wanted=wanted: postings.buckets(tx, wanted)) if wanted else {}
            opened.index.cache_buckets(found)
            if len(found) == len(wanted):
                break
            opened = await self.open(shelf)  # somebody merged segments meanwhile
        return opened
