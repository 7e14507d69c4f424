"""A segment: the passages of some documents and where each term occurs in them, packed for a database.

A segment never changes. New documents make a new one; a document that is gone is passed over until segments are merged.
Terms are spread over buckets by the top bits of their keys, so that a question reads only the buckets of its terms.

    bucket  =  count, then for all its terms: key (u64), end of its postings (u32); then all postings: passage (u32 or
               u16), then how often (u8, at most 255)
    facts   =  the documents and the keys of the speakers, as MessagePack; then for each passage: where its line begins
               (u64), its text's hash (u64), time (u32), turn (u32), length (u32), speaker (u16), flags (u8)
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

USER: Final = 1
QUESTION: Final = 2
DATED: Final = 4
BUCKET_POSTINGS: Final = 16_384
"""About how many postings share a bucket: 48 KB."""
_MOST_BITS: Final = 12
"""The most bits that name a bucket."""
_SMALL: Final = 2**16

Numbers = NDArray[Any]


class Document(msgspec.Struct, frozen=True, array_like=True):
    """What passages belong to: a session, a summary, an entry of the memory."""

    id: str
    place: str
    """Where its text is: a file."""
    passages: int
    kind: str = ""


class PassageFacts(msgspec.Struct):
    """What is known of a segment's passages, one array each, and its documents in order."""

    offset: Numbers
    text: Numbers
    """A hash of the text, by which copies of one message are recognised; 0 for texts too short to tell."""
    seconds: Numbers
    turn: Numbers
    length: Numbers
    speaker: Numbers
    """Number of the speaker's key; 0 is nobody."""
    flags: Numbers
    documents: list[Document]
    speakers: list[int]

    @property
    def size(self) -> int:
        """How many passages there are."""
        return len(self.flags)


class IndexSegment(msgspec.Struct):
    """Packed, as a database keeps it."""

    passages: int
    bits: int
    """How many top bits of a key name its bucket."""
    facts: bytes
    buckets: list[bytes]


_FIELDS: Final = (
    ("offset", "<u8"),
    ("text", "<u8"),
    ("seconds", "<u4"),
    ("turn", "<u4"),
    ("length", "<u4"),
    ("speaker", "<u2"),
    ("flags", "<u1"),
)


def pack_facts(facts: PassageFacts) -> bytes:
    """Return facts as bytes."""
    arrays = b"".join(getattr(facts, name).astype(kind).tobytes() for name, kind in _FIELDS)
    tail = msgspec.msgpack.encode((facts.size, facts.documents, facts.speakers))
    return len(tail).to_bytes(4, "little") + tail + arrays


def unpack_facts(data: bytes) -> PassageFacts:
    """Return what `pack_facts` packed."""
    end = 4 + int.from_bytes(data[:4], "little")
    size, documents, speakers = msgspec.msgpack.decode(data[4:end], type=tuple[int, list[Document], list[int]])
    arrays: dict[str, Numbers] = {}
    for name, kind in _FIELDS:
        arrays[name] = np.frombuffer(data, kind, size, end)
        end += arrays[name].nbytes
    return PassageFacts(**arrays, documents=documents, speakers=speakers)


def bits_for(postings: int) -> int:
    """Return how many bits of a key should name its bucket, for so many postings."""
    return min(_MOST_BITS, max(0, (postings // BUCKET_POSTINGS).bit_length()))


def bucket_of(key: int, bits: int) -> int:
    """Return the bucket that a term's postings are in."""
    return key >> (64 - bits) if bits else 0


class Postings(msgspec.Struct):
    """Where some terms occur: all keys, and for each posting which key, which passage and how often; sorted by both."""

    keys: Numbers
    ends: Numbers
    passage: Numbers
    often: Numbers

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return sum(each.nbytes for each in (self.keys, self.ends, self.passage, self.often))


def pack_bucket(postings: Postings, passages: int) -> bytes:
    """Return the postings of a bucket's terms as bytes."""
    return b"".join(
        (
            len(postings.keys).to_bytes(4, "little"),
            postings.keys.astype("<u8").tobytes(),
            postings.ends.astype("<u4").tobytes(),
            postings.passage.astype("<u2" if passages <= _SMALL else "<u4").tobytes(),
            postings.often.astype("<u1").tobytes(),
        )
    )


def unpack_bucket(data: bytes, passages: int) -> Postings:
    """Return what `pack_bucket` packed."""
    count = int.from_bytes(data[:4], "little")
    keys = np.frombuffer(data, "<u8", count, 4)
    ends = np.frombuffer(data, "<u4", count, 4 + 8 * count)
    total = int(ends[-1]) if count else 0
    begin = 4 + 12 * count
    passage = np.frombuffer(data, "<u2" if passages <= _SMALL else "<u4", total, begin)
    often = np.frombuffer(data, "<u1", total, begin + passage.nbytes)
    return Postings(keys, ends, passage, often)


class Occurrences(NamedTuple):
    """Which passage holds which term how often, a row each, sorted by key, then by passage."""

    keys: Numbers
    passage: Numbers
    often: Numbers


def pack(facts: PassageFacts, found: Occurrences) -> IndexSegment:
    """Make a segment."""
    bits = bits_for(len(found.keys))
    buckets = pack_buckets(found, facts.size, bits, range(2**bits))
    return IndexSegment(facts.size, bits, pack_facts(facts), buckets)


def pack_buckets(found: Occurrences, passages: int, bits: int, numbers: range) -> list[bytes]:
    """Pack postings into the buckets of these numbers."""
    keys, passage, often = found
    inner = [bucket << (64 - bits) for bucket in numbers[1:]] if bits else []
    edges = np.searchsorted(keys, np.array(inner, np.uint64))
    limits = [0, *(int(edge) for edge in edges), len(keys)]
    return [
        pack_bucket(_grouped(keys[first:last], passage[first:last], often[first:last]), passages)
        for first, last in pairwise(limits)
    ]


def _grouped(keys: Numbers, passage: Numbers, often: Numbers) -> Postings:
    """Tell each key once, with where its postings end."""
    if not len(keys):
        return Postings(keys, np.zeros(0, np.uint32), passage, often)
    last = np.flatnonzero(np.append(keys[1:] != keys[:-1], True))
    return Postings(keys[last], last + 1, passage, often)
