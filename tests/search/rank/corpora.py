"""Small made-up corpora, and a way to search them without a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hypothesis import strategies as st

from commonplace.search.rank import analysis
from commonplace.search.rank.build import Builder, Passage
from commonplace.search.rank.segment import IndexSegment, unpack_facts
from commonplace.search.rank.segments import OpenSegment, SegmentIndex

WORDS = (
    "socket", "retry", "flaky", "lamp", "river", "pytest", "deploy", "token", "cache", "index", "blue", "green", "when",
    "may", "Anna", "Ben",
)  # fmt: skip
texts = st.lists(st.sampled_from([*WORDS, "?"]), min_size=1, max_size=8).map(" ".join)
passages = st.builds(
    Passage,
    text=texts,
    offset=st.integers(0, 10**6),
    is_user=st.booleans(),
    speaker=st.sampled_from(["", "Anna", "Ben"]),
    seconds=st.integers(0, 10**9),
    turn=st.integers(0, 9),
)
corpora = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(passages, max_size=6), min_size=1)
Corpus = Mapping[str, Sequence[Passage]]


def segment(corpus: Corpus) -> IndexSegment:
    """Make a segment of documents."""
    builder = Builder()
    for name, said in corpus.items():
        builder.add(name, "", said)
    return builder.segment()


def opened(name: str, made: IndexSegment, dropped: Iterable[int] = ()) -> OpenSegment:
    """Open a segment."""
    return OpenSegment(name, made.bits, unpack_facts(made.facts), frozenset(dropped))


def index(*segments: IndexSegment, dropped: Mapping[int, Iterable[int]] | None = None) -> SegmentIndex:
    """Open segments with all their postings at hand."""
    found = SegmentIndex(
        [opened(str(place), made, (dropped or {}).get(place, ())) for place, made in enumerate(segments)]
    )
    found.cache_buckets(
        {(str(place), number): data for place, made in enumerate(segments) for number, data in enumerate(made.buckets)}
    )
    return found


def keys(question: str) -> list[int]:
    """Return the terms of a question."""
    return list(analysis.query_terms(question).values())


def told(found: SegmentIndex, numbers: Sequence[int]) -> list[tuple[str, int]]:
    """Return which passages those are: document and offset."""
    return [(found.document(number).id, int(found.offset[number])) for number in numbers]
