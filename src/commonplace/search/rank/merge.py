"""Merging segments: the postings of several become those of one, without dropped documents.

Nothing is read from texts again. A share of the terms is merged at a time, so that memory holds no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from commonplace.search.rank import segment as segments
from commonplace.search.rank.build import ENOUGH_PASSAGES
from commonplace.search.rank.segment import IndexSegment, Numbers, PassageFacts
from commonplace.search.rank.segments import OpenSegment

Read = Callable[[str, int, int], dict[int, bytes]]
"""The buckets of a segment from one number to before another."""
_TIER: Final = 4
"""Segments of one tier are merged when there are this many; each tier is this much larger than the one before."""
_FIRST_TIER: Final = 256
"""The largest segment of the first tier, in passages."""
_MOSTLY_GONE: Final = 0.3
"""A segment with a larger share of dropped passages is merged."""
_SHARES: Final = 8
"""In how many parts the postings are merged, which bounds memory."""
_NOTHING: Final = (np.zeros(0, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.uint8))


def plan(sizes: Sequence[tuple[str, int, float]]) -> list[str]:
    """Return which segments to merge now, by name, passages and how much of each is gone; none if all is well.

    Small ones are merged with small ones, so that each passage is merged as often as there are tiers, no more.
    """
    tiers: dict[int, list[tuple[str, int]]] = {}
    for name, passages, gone in sizes:
        if gone > _MOSTLY_GONE:
            return [name]
        tier = 0
        while passages > _FIRST_TIER * _TIER**tier:
            tier += 1
        tiers.setdefault(tier, []).append((name, passages))
    for _, same in sorted(tiers.items()):
        chosen: list[str] = []
        total = 0
        for name, passages in same:
            if total + passages > ENOUGH_PASSAGES:
                break
            chosen.append(name)
            total += passages
        if len(chosen) >= _TIER:
            return chosen
    return []


def merge(opened: Sequence[OpenSegment], read: Read) -> tuple[IndexSegment, dict[tuple[str, int], int]]:
    """Return one segment with all that is left of several, and where each document went."""
    facts, moved, renumbered = _facts(opened)
    bits = segments.bits_for(sum(2**each.bits * segments.BUCKET_POSTINGS for each in opened))
    shares = min(_SHARES, 2**bits)
    width = 2**bits // shares
    buckets: list[bytes] = []
    for share in range(shares):
        found = [_NOTHING, *_share(opened, renumbered, read, share, shares)]
        key, passage, often = (np.concatenate([each[part] for each in found]) for part in range(3))
        order = np.lexsort((passage, key))
        numbers = range(share * width, (share + 1) * width)
        ordered = segments.Occurrences(key[order], passage[order], often[order])
        buckets += segments.pack_buckets(ordered, facts.size, bits, numbers)
    return IndexSegment(facts.size, bits, segments.pack_facts(facts), buckets), moved


def _facts(opened: Sequence[OpenSegment]) -> tuple[PassageFacts, dict[tuple[str, int], int], list[Numbers]]:
    """Join what is known of passages that are left; return that, where documents went, and the new numbers."""
    kept: list[Numbers] = []
    renumbered: list[Numbers] = []
    moved: dict[tuple[str, int], int] = {}
    documents: list[segments.Document] = []
    speakers: dict[int, int] = {0: 0}
    speaker: list[Numbers] = []
    base = 0
    for each in opened:
        sizes = [document.passages for document in each.facts.documents]
        live = np.array([place not in each.dropped for place in range(len(sizes))], bool)
        keep = np.repeat(live, sizes)
        for place, document in enumerate(each.facts.documents):
            if live[place]:
                moved[each.id, place] = len(documents)
                documents.append(document)
        numbers = np.full(each.facts.size, -1, np.int64)
        numbers[keep] = base + np.arange(int(keep.sum()))
        base += int(keep.sum())
        kept.append(keep)
        renumbered.append(numbers)
        places = [speakers.setdefault(name, len(speakers)) for name in each.facts.speakers]
        speaker.append(np.array(places or [0])[each.facts.speaker][keep])

    def joined(name: str) -> Numbers:
        return np.concatenate([getattr(each.facts, name)[keep] for each, keep in zip(opened, kept, strict=True)])

    facts = PassageFacts(
        offset=joined("offset"),
        text=joined("text"),
        seconds=joined("seconds"),
        turn=joined("turn"),
        length=joined("length"),
        speaker=np.concatenate(speaker),
        flags=joined("flags"),
        documents=documents,
        speakers=list(speakers),
    )
    return facts, moved, renumbered


def _share(
    opened: Sequence[OpenSegment], renumbered: Sequence[Numbers], read: Read, share: int, shares: int
) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Yield the postings of one share of all terms, segment by segment."""
    low = share * (2**64 // shares)
    high = low + 2**64 // shares - 1
    for each, numbers in zip(opened, renumbered, strict=True):
        first, last = segments.bucket_of(low, each.bits), segments.bucket_of(high, each.bits) + 1
        for data in read(each.id, first, last).values():
            found = segments.unpack_bucket(data, each.facts.size)
            key = np.repeat(found.keys, np.diff(found.ends.astype(np.int64), prepend=0))
            passage = numbers[found.passage]
            keep = (passage >= 0) & (key >= np.uint64(low)) & (key <= np.uint64(high))
            yield key[keep], passage[keep].astype(np.uint32), found.often[keep]
