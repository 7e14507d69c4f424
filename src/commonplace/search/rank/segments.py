"""Open segments: all passages under one numbering, and the postings of a query's terms.

It reads nothing itself: `wants` says which buckets a question needs, `hold` takes them, and they are kept while there
is room. A mask says which passages count; what is deleted, of another project or too old is as if it were not there, in
the statistics too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

import msgspec
import numpy as np

from commonplace.search.rank import segment as segments
from commonplace.search.rank.segment import Document, Numbers, PassageFacts, Postings

Place = tuple[str, int]
"""A bucket: its segment and its number there."""
KEPT_BYTES: Final = 64 * 2**20
"""How many bytes of buckets an open index caches."""


class OpenSegment(msgspec.Struct):
    """A segment whose facts are loaded."""

    id: str
    bits: int
    facts: PassageFacts
    dropped: frozenset[int] = frozenset()
    """Which of its documents are gone."""


class TermPostings(msgspec.Struct):
    """The postings of a query's terms: for each the term, the passage and the count; and where terms begin."""

    term: Numbers
    passage: Numbers
    often: Numbers
    starts: list[int]
    counts: list[int]


class SegmentIndex:
    """Several segments as one index."""

    def __init__(
        self, opened: Sequence[OpenSegment], before: SegmentIndex | None = None, *, keep: int = KEPT_BYTES
    ) -> None:
        """Open segments; of those that stood here `before`, buckets that are still good are kept."""
        self.segments = list(opened)
        self._keep = keep
        self._kept: OrderedDict[Place, Postings] = OrderedDict()
        self._kept_bytes = 0
        if before is not None:
            ids = {each.id for each in opened}
            self._kept.update((place, held) for place, held in before.cached_buckets() if place[0] in ids)
            self._kept_bytes = sum(held.nbytes for held in self._kept.values())
        self._weights: dict[tuple[str | float, ...], Numbers] = {}
        self.documents: list[Document] = [document for each in opened for document in each.facts.documents]
        sizes = np.array([document.passages for document in self.documents], np.int64)
        self.ends = np.cumsum(sizes)
        self.starts = self.ends - sizes
        self.size = int(self.ends[-1]) if len(self.ends) else 0
        self.document_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self.length = self._joined("length", np.float32)
        self.flags = self._joined("flags", np.uint8)
        self.seconds = self._joined("seconds", np.int64)
        self.offset = self._joined("offset", np.int64)
        self.turn = self._joined("turn", np.int64)
        self.text = self._joined("text", np.uint64)
        self.speakers, self.speaker = self._speakers()
        self.is_live = self._live()
        self._is_whole = bool(self.is_live.all())
        # What each passage may take from those beside it: nothing across the edge of a document.
        self.same1 = np.ones(self.size, np.float32)
        self.same2 = np.ones(self.size, np.float32)
        inside = self.starts[sizes > 0]
        self.same1[inside] = 0
        self.same2[inside] = 0
        self.same2[inside[inside + 1 < self.size] + 1] = 0
        self.is_user = (self.flags & segments.USER) > 0
        self.is_question = (self.flags & segments.QUESTION) > 0
        self.is_dated = (self.flags & segments.DATED) > 0
        self.lengths = self.document_lengths(self.live())

    def document_lengths(self, mask: Numbers | None) -> Numbers:
        """Return how long each document is, in passages that count."""
        length = self.length if mask is None else np.where(mask, self.length, 0)
        return np.bincount(self.document_of, length, len(self.documents))

    def speech(self, assistant: float, question: float) -> Numbers:
        """Return what each passage's words count for, by who says them and how; kept for the next question."""
        return self._weight(
            ("speech", assistant, question),
            lambda: _either(self.is_user, 1, assistant) * _either(self.is_question, 1 - question, 1),
        )

    def evidence(self, assistant: float) -> Numbers:
        """Return what each passage's words count for as evidence of its session."""
        return self._weight(("evidence", assistant), lambda: _either(self.is_user, 1, assistant))

    def flow(self, question: float) -> Numbers:
        """Return what of its evidence each passage hands to the next."""
        return self._weight(("flow", question), lambda: _either(self.is_question, question, 1))

    def _weight(self, name: tuple[str | float, ...], make: Callable[[], Numbers]) -> Numbers:
        if name not in self._weights:
            self._weights[name] = make()
        return self._weights[name]

    def _joined(self, name: str, kind: type) -> Numbers:
        arrays: list[Numbers] = [getattr(each.facts, name).astype(kind) for each in self.segments]
        return np.concatenate(arrays) if arrays else cast("Numbers", np.zeros(0, kind))

    def _speakers(self) -> tuple[list[int], Numbers]:
        numbers: dict[int, int] = {0: 0}
        arrays: list[Numbers] = []
        for each in self.segments:
            places = [numbers.setdefault(name, len(numbers)) for name in each.facts.speakers]
            arrays.append(np.array(places or [0], np.int32)[each.facts.speaker])
        return list(numbers), np.concatenate(arrays) if arrays else np.zeros(0, np.int32)

    def _live(self) -> Numbers:
        gone: list[int] = []
        base = 0
        for each in self.segments:
            gone += [base + place for place in each.dropped]
            base += len(each.facts.documents)
        return self.passages_of(gone, invert=True)

    def passages_of(self, documents: Iterable[int], *, invert: bool = False) -> Numbers:
        """Return which passages belong to some documents (or, inverted, to all others)."""
        chosen = np.zeros(len(self.documents), bool)
        chosen[list(documents)] = True
        return (chosen ^ invert)[self.document_of] if self.size else np.zeros(0, bool)

    def document(self, passage: int) -> Document:
        """Return the document that a passage belongs to."""
        return self.documents[int(self.document_of[passage])]

    def live(self) -> Numbers | None:
        """Return which passages are still there; None if all are."""
        return None if self._is_whole else self.is_live

    def find(self, keys: Sequence[int], mask: Numbers | None) -> TermPostings:
        """Return the postings of some terms, in passages that count."""
        passages: list[list[Numbers]] = [[] for _ in keys]
        often: list[list[Numbers]] = [[] for _ in keys]
        base = 0
        for each in self.segments:
            for place, (where, times) in self._in_segment(each, keys).items():
                passages[place].append(where.astype(np.int32) + np.int32(base))
                often[place].append(times)
            base += each.facts.size
        where = [np.concatenate(found) if found else np.zeros(0, np.int32) for found in passages]
        times = [np.concatenate(found) if found else np.zeros(0, np.uint8) for found in often]
        if mask is not None:
            chosen = [mask[found] for found in where]
            where = [found[keep] for found, keep in zip(where, chosen, strict=True)]
            times = [found[keep] for found, keep in zip(times, chosen, strict=True)]
        counts = [len(found) for found in where]
        starts = [sum(counts[:place]) for place in range(len(counts))]
        return TermPostings(
            np.repeat(np.arange(len(keys)), counts),
            np.concatenate(where) if where else np.zeros(0, np.int32),
            (np.concatenate(times) if times else np.zeros(0, np.uint8)).astype(np.float32),
            starts,
            counts,
        )

    def cached_buckets(self) -> Iterable[tuple[Place, Postings]]:
        """Return the buckets that are here."""
        return self._kept.items()

    def missing_buckets(self, keys: Sequence[int]) -> list[Place]:
        """Return the buckets that some terms need and that are not here."""
        places = {(each.id, segments.bucket_of(key, each.bits)) for each in self.segments for key in keys}
        return sorted(place for place in places if place not in self._kept)

    def cache_buckets(self, buckets: Mapping[Place, bytes]) -> None:
        """Keep buckets; those that were not used for longest make room."""
        sizes = {each.id: each.facts.size for each in self.segments}
        room = self._keep - sum(len(data) for data in buckets.values())
        while self._kept_bytes > room and self._kept:
            self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
        for (segment_id, number), data in buckets.items():
            held = self._kept[segment_id, number] = segments.unpack_bucket(data, sizes[segment_id])
            self._kept_bytes += held.nbytes

    def _in_segment(self, each: OpenSegment, keys: Sequence[int]) -> dict[int, tuple[Numbers, Numbers]]:
        """Return where terms occur in a segment, by the place of each in the question."""
        wanted: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            wanted.setdefault(segments.bucket_of(key, each.bits), []).append(place)
        found: dict[int, tuple[Numbers, Numbers]] = {}
        for bucket, places in wanted.items():
            held = self._kept.get((each.id, bucket))
            if held is None:
                continue
            self._kept.move_to_end((each.id, bucket))
            chosen = np.array([keys[place] for place in places], np.uint64)
            for place, at, key in zip(places, held.keys.searchsorted(chosen).tolist(), chosen, strict=True):
                if at < len(held.keys) and held.keys[at] == key:
                    first = int(held.ends[at - 1]) if at else 0
                    last = int(held.ends[at])
                    found[place] = (held.passage[first:last], held.often[first:last])
        return found


def _either(which: Numbers, yes: float, no: float) -> Numbers:
    return np.where(which, np.float32(yes), np.float32(no))
