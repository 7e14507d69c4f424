"""Searching one thread, ours or any agent's file: what is searched is made for the question and kept nowhere."""

from __future__ import annotations

from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger
from commonplace.search import exact_text, hits, passages
from commonplace.search.exact_text import Needle
from commonplace.search.hits import Clean, Hit
from commonplace.search.rank import analysis, score
from commonplace.search.rank.build import Builder
from commonplace.search.rank.segment import unpack_facts
from commonplace.search.rank.segments import Index, Opened
from commonplace.search.search import Wish, weighed


def ranked(ledger: Ledger, wish: Wish, clean: Clean) -> list[Hit]:
    """Return what was said in a thread that answers a question, the best first."""
    builder = Builder()
    builder.add(ledger.thread_id, str(ledger.path), passages.of_session(ledger.path))
    made = builder.segment()
    index = Index([Opened("", made.bits, unpack_facts(made.facts))])
    wanted = index.wants(list(analysis.query_terms(wish.query).values()))
    index.hold({place: made.buckets[place[1]] for place in wanted})
    mask = None if wish.since_s is None else index.seconds >= wish.since_s
    recipe, weights = weighed(wish)
    best = score.rank(index, wish.query, limit=wish.limit, mask=mask, recipe=recipe, weights=weights)
    row = {"thread_id": ledger.thread_id, "path": str(ledger.path), "project": ledger.meta.project()}
    found = hits.of_sessions(index, hits.chosen(index, best, wish.limit), {ledger.thread_id: row}, clean)
    return [hit for _, hit in found]


def word_for_word(ledger: Ledger, store: BlobStore, wish: Wish, clean: Clean, *, ignore_case: bool) -> list[Hit]:
    """Return the texts of a thread that hold what is looked for, in their order."""
    needle = Needle(wish.query, ignore_case=ignore_case)
    found = [match for match in exact_text.search(ledger.path, needle, store) if hits.is_new(match.time, wish.since_s)]
    exact_text.number_turns(ledger.path, found[: wish.limit], passages.inherited_turns(ledger.path))
    row = {"thread_id": ledger.thread_id, "project": ledger.meta.project()}
    return [hits.of_match(row, match, clean) for match in found[: wish.limit]]
