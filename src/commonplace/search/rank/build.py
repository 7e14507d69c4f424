"""Building a segment: documents are added one by one, in memory that does not grow with their number.

The text of a passage becomes the numbers of its chunks at once, at the speed of a regular expression; what they mean as
terms is put together for all passages at the end, with arrays.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from commonplace.search.rank import segment, signals
from commonplace.search.rank.analysis import Analyser
from commonplace.search.rank.segment import Document, IndexSegment, PassageFacts

ENOUGH_BYTES: Final = 8 * 2**20
"""A segment is made of this many bytes of text."""
ENOUGH_PASSAGES: Final = 2**16 - 1
"""A segment holds at most this many passages, so that two bytes number them."""
_TELLING: Final = 80
"""Texts of fewer characters are said again and again; longer ones that are equal are copies."""
_MOST_SPEAKERS: Final = 2**16 - 1
"""The most speakers of a segment."""
_MOST_OFTEN: Final = 255
"""The largest count of a term in a passage that is stored, in one byte."""
_LONGEST: Final = 2**20
"""Characters of a passage that are looked at."""


class Passage(msgspec.Struct, gc=False):
    """One thing that was said, or one line of a summary."""

    text: str
    offset: int
    is_user: bool = True
    speaker: str = ""
    also: str = ""
    """Words that it is found by besides its own: when it was said."""
    seconds: int = 0
    turn: int = 0


class Builder:
    """Takes documents until it is full, then makes a segment of them."""

    def __init__(self, analyser: Analyser | None = None) -> None:
        self.analyser = analyser or Analyser()
        self.documents: list[Document] = []
        self.bytes = 0
        self._chunks: array[int] = array("I")
        self._begins: array[int] = array("I")
        """Where each passage's own words begin, after those that it is only found by."""
        self._ends: array[int] = array("I")
        self._offset: array[int] = array("Q")
        self._text: array[int] = array("Q")
        self._seconds: array[int] = array("I")
        self._turn: array[int] = array("I")
        self._speaker: array[int] = array("H")
        self._flags = bytearray()
        self._speakers: dict[int, int] = {0: 0}

    def add(self, name: str, place: str, passages: Iterable[Passage], kind: str = "") -> int:
        """Take one document; return how many passages it has."""
        before = len(self._ends)
        for passage in passages:
            self._add(passage)
        count = len(self._ends) - before
        self.documents.append(Document(name, place, count, kind))
        return count

    def _add(self, passage: Passage) -> None:
        text = passage.text[:_LONGEST]
        self.bytes += len(text)
        chunks = self.analyser.chunks
        if passage.speaker or passage.also:
            self._chunks.extend(chunks(f"{passage.speaker} {passage.also}"))
        self._begins.append(len(self._chunks))
        self._chunks.extend(chunks(text))
        self._ends.append(len(self._chunks))
        self._offset.append(passage.offset)
        self._text.append(_hash(text) if len(text) >= _TELLING else 0)
        self._seconds.append(min(max(passage.seconds, 0), 2**32 - 1))
        self._turn.append(min(passage.turn, 2**32 - 1))
        self._speaker.append(self._number(passage.speaker))
        self._flags.append(passage.is_user * segment.USER | signals.is_question(text) * segment.QUESTION)

    def _number(self, speaker: str) -> int:
        if not speaker:
            return 0
        name = signals.name_key(speaker)
        if name not in self._speakers and len(self._speakers) >= _MOST_SPEAKERS:
            return 0
        return self._speakers.setdefault(name, len(self._speakers))

    def is_full(self) -> bool:
        """Say whether it is time to make a segment."""
        return self.bytes >= ENOUGH_BYTES or len(self._ends) >= ENOUGH_PASSAGES

    def segment(self) -> IndexSegment:
        """Make a segment of everything that was taken."""
        ends = np.frombuffer(self._ends, np.uint32).astype(np.int64) if self._ends else np.zeros(0, np.int64)
        chunks = np.frombuffer(self._chunks, np.uint32) if self._chunks else np.zeros(0, np.uint32)
        counts = np.diff(ends, prepend=0)
        passage = np.repeat(np.arange(len(ends), dtype=np.uint32), counts)
        known_ends = np.frombuffer(self.analyser.ends, np.uint32).astype(np.int64)
        known_keys = np.frombuffer(self.analyser.keys, np.uint64)
        known_starts = np.append(0, known_ends[:-1]) if len(known_ends) else known_ends
        sizes = (known_ends - known_starts)[chunks]
        keys, owner = _expanded(known_keys, known_starts[chunks], sizes, passage)
        dated = np.frombuffer(bytes(self.analyser.dated), np.uint8)[chunks] > 0 if len(chunks) else chunks > 0
        dated &= np.arange(len(chunks)) >= np.repeat(np.frombuffer(self._begins, np.uint32), counts)
        flags = np.frombuffer(bytes(self._flags), np.uint8).copy()
        flags[passage[dated]] |= segment.DATED
        keys, owner, often = _counted(keys, owner)
        length = np.bincount(passage, weights=sizes, minlength=len(ends)) if len(ends) else ends
        facts = PassageFacts(
            offset=np.array(self._offset, np.uint64),
            text=np.array(self._text, np.uint64),
            seconds=np.array(self._seconds, np.uint32),
            turn=np.array(self._turn, np.uint32),
            length=length.astype(np.uint32),
            speaker=np.array(self._speaker, np.uint16),
            flags=flags,
            documents=self.documents,
            speakers=list(self._speakers),
        )
        return segment.pack(facts, segment.Occurrences(keys, owner, often))


def _expanded(
    known: segment.Numbers, starts: segment.Numbers, sizes: segment.Numbers, passage: segment.Numbers
) -> tuple[segment.Numbers, segment.Numbers]:
    """Put the terms of each chunk where the chunk stands; return them and whose they are."""
    total = int(sizes.sum())
    if not total:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint32)
    begin = np.cumsum(sizes) - sizes
    place = np.arange(total, dtype=np.int64) + np.repeat(starts - begin, sizes)
    return known[place], np.repeat(passage, sizes)


def _counted(keys: segment.Numbers, owner: segment.Numbers) -> tuple[segment.Numbers, segment.Numbers, segment.Numbers]:
    """Sort by term, then by passage, and count what is there more than once."""
    if not len(keys):
        return keys, owner, np.zeros(0, np.uint8)
    order = np.argsort(keys, kind="stable")  # the passages came in order, and stay so within each term
    keys, owner = keys[order], owner[order]
    first = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]) | (owner[1:] != owner[:-1])))
    often = np.diff(np.append(first, len(keys)))
    return keys[first], owner[first], np.minimum(often, _MOST_OFTEN).astype(np.uint8)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
