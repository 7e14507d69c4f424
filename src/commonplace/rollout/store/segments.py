"""The segments of one ledger in a store: where each begins, what they cover, which are to be merged.

A store has no append, so a ledger is a row of objects, each with the bytes from one offset on:

    <root>/sessions/YYYY/MM/DD/<file name>/<start, 16 digits>            what one upload added
    <root>/sessions/YYYY/MM/DD/<file name>/<start, 16 digits>-<size>     several merged into one, or a torn one repaired

Segments may overlap (a merge that was cut short leaves its parts behind): then they have the same bytes, and the one
that reaches furthest counts. What none covers is a hole and reads as zero bytes, so that a reader reports the lines
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.rollout.store.object_store import StoredObject

LONGEST: Final = 8 * 2**20
"""Longest segment that an upload makes; one of this size is never merged."""
_TIERS: Final = (512 * 2**10, LONGEST)
MERGED: Final = 16
"""So many neighbours of one tier become one: a ledger has about its size / 8 MiB segments, and at most 30 more."""
_KEY: Final = regex(r"(?P<start>\d{16})(?:-(?P<size>\d+))?")


class Segment(msgspec.Struct, frozen=True, order=True):
    """Bytes of a ledger in one object."""

    start: int
    size: int
    key: str
    tag: str

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.start + self.size


class LedgerStretch(msgspec.Struct, frozen=True):
    """A stretch of a ledger: of a segment, or of a hole if there is none."""

    start: int
    end: int
    segment: Segment | None


class SegmentManifest:
    """The segments of one ledger, in the order of their bytes."""

    def __init__(self, folder: str, objects: Iterable[StoredObject]) -> None:
        self.folder = folder
        self.all = sorted(_parsed(folder, objects))
        self.segments: list[Segment] = []
        """Those that count; the others cover nothing more."""
        for each in sorted(self.all, key=lambda segment: (segment.start, -segment.end)):
            if each.size and each.end > self.end:
                while len(self.segments) > 1 and self.segments[-2].end >= each.start:
                    self.segments.pop()
                self.segments.append(each)

    @property
    def end(self) -> int:
        """How long the ledger is."""
        return self.segments[-1].end if self.segments else 0

    def take_over(self, newer: SegmentManifest) -> None:
        """Use the segments of a newer listing from now on."""
        self.all, self.segments = newer.all, newer.segments

    def pieces(self, start: int, end: int) -> Iterator[LedgerStretch]:
        """Yield what the bytes from `start` to `end` are made of, in order."""
        position, end = start, min(end, self.end)
        for segment in self.segments:
            if segment.end <= position or position >= end:
                continue
            if segment.start > position:
                stop = min(segment.start, end)
                yield LedgerStretch(position, stop, None)
                position = stop
            if position < (stop := min(segment.end, end)):
                yield LedgerStretch(position, stop, segment)
                position = stop

    def holes(self) -> list[LedgerStretch]:
        """Return the stretches that no segment covers."""
        return [piece for piece in self.pieces(0, self.end) if piece.segment is None]

    def leftovers(self) -> list[Segment]:
        """Return segments that cover nothing which a longer one does not cover alone: a merge that was cut short."""
        kept = {segment.key for segment in self.segments}
        return [
            each
            for each in self.all
            if each.key not in kept and any(one.start <= each.start and each.end <= one.end for one in self.segments)
        ]

    def to_merge(self) -> list[Segment]:
        """Return the newest segments if so many of them have the same tier that they should be one."""
        run: list[Segment] = []
        for segment in reversed(self.segments):
            is_next = not run or (segment.end == run[-1].start and _tier(segment) == _tier(run[-1]))
            if not is_next or segment.size >= LONGEST:
                break
            run.append(segment)
        return run[::-1] if len(run) >= MERGED else []


def key(folder: str, start: int, size: int | None = None) -> str:
    """Return the key of a segment; with `size`, of one that takes the place of others."""
    return f"{folder}/{start:016d}" + ("" if size is None else f"-{size}")


def _parsed(folder: str, objects: Iterable[StoredObject]) -> Iterator[Segment]:
    for each in objects:
        place, _, name = each.key.rpartition("/")
        found = _KEY.fullmatch(name)
        if place == folder and found is not None:
            yield Segment(int(found["start"]), each.size, each.key, each.tag)


def _tier(segment: Segment) -> int:
    return next((tier for tier, bound in enumerate(_TIERS) if segment.size < bound), len(_TIERS))
