"""Searching one thread, ours or any agent's file: the index is made for the question and kept nowhere."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec

from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger
from commonplace.search import exact_text, hits, passages
from commonplace.search.exact_text import Needle
from commonplace.search.hits import Clean, Hit
from commonplace.search.query import Query, ranking
from commonplace.search.rank import analysis, score
from commonplace.search.rank.build import Builder
from commonplace.search.rank.segment import unpack_facts
from commonplace.search.rank.segments import OpenSegment, SegmentIndex
from commonplace.sessions.open_thread import OpenThread, read_thread
from commonplace.sessions.resolve import resolve
from commonplace.state.home import Home


class NamedThread(msgspec.Struct, frozen=True):
    """A thread by what a person typed, and the home it is looked for in, if that is not ours."""

    name: str
    elsewhere: Path | None = None


async def search_thread(
    home: Home, thread: NamedThread, query: Query, clean: Clean, *, exact: bool = False, ignore_case: bool = False
) -> list[Hit]:
    """Return what answers a question in one thread, by rank or word for word.

    Raises:
        UnknownThread, AmbiguousThread, NotASession: no single thread is meant.
    """
    target = await resolve(home, thread.name, thread.elsewhere)

    def read(opened: OpenThread) -> list[Hit]:
        if exact:
            return _word_for_word(opened.ledger, opened.store, query, clean, ignore_case=ignore_case)
        return _ranked(opened.ledger, query, clean)

    return await read_thread(home, target, thread.elsewhere, read)


def _ranked(ledger: Ledger, query: Query, clean: Clean) -> list[Hit]:
    """Return what was said in a thread that answers a question, the best first."""
    builder = Builder()
    builder.add(ledger.thread_id, str(ledger.path), passages.of_session(ledger.path))
    made = builder.segment()
    index = SegmentIndex([OpenSegment("", made.bits, unpack_facts(made.facts))])
    wanted = index.missing_buckets(list(analysis.query_terms(query.query).values()))
    index.cache_buckets({place: made.buckets[place[1]] for place in wanted})
    mask = None if query.since_s is None else index.seconds >= query.since_s
    recipe, weights = ranking(query)
    best = score.rank(index, query.query, limit=query.limit, mask=mask, recipe=recipe, weights=weights)
    row = {"thread_id": ledger.thread_id, "path": str(ledger.path), "project": ledger.meta.project()}
    found = hits.of_sessions(index, hits.choose_passages(index, best, query.limit), {ledger.thread_id: row}, clean)
    return [hit for _, hit in found]


def _word_for_word(ledger: Ledger, store: BlobStore, query: Query, clean: Clean, *, ignore_case: bool) -> list[Hit]:
    """Return the texts of a thread that hold what is looked for, in their order."""
    needle = Needle(query.query, ignore_case=ignore_case)
    new = (match for match in exact_text.search(ledger.path, needle, store) if hits.is_new(match.time, query.since_s))
    found = list(islice(new, query.limit))
    exact_text.number_turns(ledger.path, found, passages.inherited_turns(ledger.path))
    row = {"thread_id": ledger.thread_id, "project": ledger.meta.project()}
    return [hits.of_match(row, match, clean) for match in found]
