"""Scoring passages against a query: by their own words, their neighbours, and the session they belong to.

The recipe was measured on public corpora; every step is a few lines over arrays, with nothing but addition between
them, so that each can be read, weighed and left out on its own.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from commonplace.search.rank import analysis, signals
from commonplace.search.rank.recipe import RECIPE, WEIGHTS, Recipe, RerankWeights
from commonplace.search.rank.segment import Numbers
from commonplace.search.rank.segments import SegmentIndex, TermPostings

_BEST_TURNS: Final = 400
"""How many of the best passages count for the scores of documents."""
_TURNS_OF_SESSION: Final = 3
"""How many passages of one document count."""
_DAY: Final = 86_400
_BLOCK: Final = 64
_MOST_TERMS: Final = 64
"""A question is a few words; of a whole page, the rarest terms decide anyway."""


class RankedPassages(msgspec.Struct):
    """The best passages, best first, with their scores; and the best documents."""

    passages: list[int]
    scores: list[float]
    covered: list[float]
    """How much of the question's weight the passage and those beside it hold, 0 to 1."""
    documents: list[int]


class _WeightedQuery(msgspec.Struct):
    """A question against an index: its terms' weights, and what it asks for."""

    found: TermPostings
    idf: Numbers
    total: float
    """The weight of all terms that the index knows."""
    weight: float
    """The weight of all its terms."""
    known: int
    asks_time: bool
    named: Numbers | None
    """The passages of speakers that it names."""


class _Evidence(msgspec.Struct):
    own: Numbers
    covered: Numbers


class _Candidates(msgspec.Struct):
    """The passages that may answer, and for each what is known of it."""

    passages: Numbers
    first: Numbers
    """Its score so far."""
    session: Numbers
    """How much its whole session tells."""
    covered: Numbers
    window: Numbers
    """How much of the question it and its neighbours hold."""


_NOTHING: Final = RankedPassages([], [], [], [])


def rank(
    index: SegmentIndex,
    question: str,
    *,
    limit: int = 10,
    mask: Numbers | None = None,
    recipe: Recipe = RECIPE,
    weights: RerankWeights = WEIGHTS,
    prior: Numbers | None = None,
) -> RankedPassages:
    """Return the passages that answer a question best; `mask` says which of them count, `prior` what each is worth."""
    if not index.size or limit < 1:
        return _NOTHING
    live = index.live()
    counts = live if mask is None else mask if live is None else mask & live
    size = index.size if counts is None else int(np.count_nonzero(counts))
    asked = _weighted_query(index, question, counts, size)
    if asked is None:
        return _NOTHING
    average = float(index.length.mean() if counts is None else index.length[counts].mean())
    turn = _turns(index, asked, recipe, average)
    own = turn.own * (np.float32(1 - recipe.coverage) + np.float32(recipe.coverage / asked.total) * turn.covered)
    spoken = _spoken(index, asked, own, recipe)
    spread = _spread(index, spoken, recipe)
    of_session = _sessions(index, asked, own, recipe, counts)
    first = spread + (recipe.session * of_session[1]).astype(np.float32)[index.document_of]
    if prior is not None:
        first *= prior
    first *= spread > 0 if counts is None else (spread > 0) & counts
    best = _best(first, max(recipe.candidates, limit))
    window = _window(index, asked, best)
    final = first[best] / max(float(first[best].max()), 1e-9) if len(best) else first[best]
    if recipe.rerank and len(best):
        whole = of_session[0][index.document_of[best]]
        final = _rerank(index, asked, _Candidates(best, final, whole, turn.covered[best], window), weights)
    order = np.argsort(-final, kind="stable")[:limit]
    chosen = best[order]
    documents = _best(of_session[1], limit)
    return RankedPassages(
        chosen.tolist(),
        final[order].tolist(),
        (window[order] / asked.weight).tolist(),
        documents.tolist(),
    )


def _weighted_query(index: SegmentIndex, question: str, counts: Numbers | None, size: int) -> _WeightedQuery | None:
    keys = list(analysis.query_terms(question).values())
    if not keys or not size:
        return None
    found = index.find(keys, counts)
    df = np.array(found.counts, np.float64)
    idf = np.where(df > 0, np.log1p((size - df + 0.5) / (df + 0.5)), 0.0)
    if len(keys) > _MOST_TERMS:
        rare: list[int] = sorted(np.argsort(-idf, kind="stable")[:_MOST_TERMS].tolist())
        found, idf = index.find([keys[place] for place in rare], counts), idf[rare]
    total = float(idf.sum())
    if total <= 0:
        return None
    named = _named(index, question)
    unknown = len(idf) - int(np.count_nonzero(idf))
    weight = total + unknown * float(np.log1p((size + 0.5) / 0.5))
    return _WeightedQuery(found, idf, total, weight, len(idf) - unknown, signals.asks_time(question), named)


def _named(index: SegmentIndex, question: str) -> Numbers | None:
    if len(index.speakers) < 2:
        return None
    names = signals.named_in(question)
    chosen = np.array([name in names and name != 0 for name in index.speakers])
    return chosen[index.speaker] if chosen.any() else None


def _turns(index: SegmentIndex, query: _WeightedQuery, recipe: Recipe, average: float) -> _Evidence:
    """Score each passage by its own words (BM25), and weigh which of the question's terms it holds."""
    found = query.found
    idf = query.idf[found.term]
    length = index.length[found.passage]
    norm = recipe.k1 * (1 - recipe.b + recipe.b / max(average, 1e-9) * length)
    weight = idf * found.often * (recipe.k1 + 1) / (found.often + norm)
    own = np.bincount(found.passage, weight, index.size).astype(np.float32)
    return _Evidence(own, np.bincount(found.passage, idf, index.size).astype(np.float32))


def _spoken(index: SegmentIndex, query: _WeightedQuery, own: Numbers, recipe: Recipe) -> Numbers:
    """Weigh who speaks and how: a person before an assistant, a statement before a question, whoever is named."""
    weighed = own * index.speech(recipe.assistant, recipe.question)
    if query.named is not None:
        weighed += np.float32(recipe.speaker) * (query.named & (own > 0))
    if query.asks_time:
        weighed += np.float32(recipe.time) * (index.is_dated & (own > 0))
    return weighed


def _spread(index: SegmentIndex, evidence: Numbers, recipe: Recipe) -> Numbers:
    """Let each passage take from those beside it; a question hands its evidence to what follows."""
    total = evidence.copy()
    handed = evidence * index.flow(recipe.question_flow)
    total[1:] += recipe.previous * handed[:-1] * index.same1[1:]
    total[:-1] += recipe.next * evidence[1:] * index.same1[1:]
    if recipe.previous_but_one or recipe.next_but_one:
        total[2:] += recipe.previous_but_one * evidence[:-2] * index.same2[2:]
        total[:-2] += recipe.next_but_one * evidence[2:] * index.same2[2:]
    return total


def _sessions(
    index: SegmentIndex, query: _WeightedQuery, own: Numbers, recipe: Recipe, counts: Numbers | None
) -> tuple[Numbers, Numbers]:
    """Score each document: as one text, and that plus its best turns."""
    whole = _whole(index, query, recipe, counts)
    evidence = _spread(index, own * index.evidence(recipe.assistant_evidence), recipe)
    best = _best(evidence, _BEST_TURNS)
    documents = index.document_of[best]
    order = np.argsort(documents, kind="stable")  # `best` is in order, so each document's turns stay so
    documents, values = documents[order], evidence[best][order]
    first = np.append(True, documents[1:] != documents[:-1]) if len(documents) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    rank_inside = np.arange(len(documents)) - np.repeat(starts, np.diff(np.append(starts, len(documents))))
    kept = rank_inside < _TURNS_OF_SESSION
    share = values[kept] * recipe.decline ** rank_inside[kept]
    turns = np.bincount(documents[kept], share, len(index.documents))
    return whole, whole + recipe.best_turns * turns


def _whole(index: SegmentIndex, query: _WeightedQuery, recipe: Recipe, counts: Numbers | None) -> Numbers:
    """Score each document as if it were one text (BM25 with documents as what is counted)."""
    found, terms, documents = query.found, len(query.idf), len(index.documents)
    lengths = index.lengths if counts is None or counts is index.live() else index.document_lengths(counts)
    number = np.count_nonzero(lengths)
    average = lengths.sum() / max(number, 1)
    norm = recipe.session_k1 * (1 - recipe.session_b + recipe.session_b * lengths / max(average, 1e-9))
    score = np.zeros(documents)
    owner = index.document_of[found.passage]
    for term in range(terms):
        first = found.starts[term]
        last = first + found.counts[term]
        if first == last:
            continue
        often = np.bincount(owner[first:last], found.often[first:last], documents)
        present = np.flatnonzero(often)
        idf = np.log1p((number - len(present) + 0.5) / (len(present) + 0.5))
        times = often[present]
        score[present] += idf * times * (recipe.session_k1 + 1) / (times + norm[present])
    return score


def recency(index: SegmentIndex, now: int, recipe: Recipe = RECIPE) -> Numbers:
    """Return what each passage is worth by its age: what is newer comes first among what is about equally good."""
    age = np.maximum(now - index.seconds, 0) / (_DAY * recipe.recent_days)
    return (1 + recipe.recency * np.exp(-age)).astype(np.float32)


def _best(scores: Numbers, count: int) -> Numbers:
    """Return the places of the highest scores above zero, the highest first, earlier ones before later."""
    blocks = len(scores) // _BLOCK
    edge = 0.0
    if blocks > count:
        # The highest of each block: as many of them as are wanted are scores too, so nothing below those is wanted.
        highest = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
        edge = float(np.partition(highest, blocks - count)[blocks - count])
    chosen = np.flatnonzero(scores >= edge) if edge > 0 else np.flatnonzero(scores > 0)
    return chosen[np.argsort(-scores[chosen], kind="stable")][:count]


def _present(index: SegmentIndex, query: _WeightedQuery, best: Numbers, shift: int) -> Numbers:
    """Return, for each term and candidate, whether the passage that stands so far from it holds the term."""
    beside = best + shift
    inside = (beside >= 0) & (beside < index.size)
    beside = np.where(inside, beside, 0)
    inside &= index.document_of[beside] == index.document_of[best]
    held = np.zeros((len(query.idf), len(best)), bool)
    for term, (first, count) in enumerate(zip(query.found.starts, query.found.counts, strict=True)):
        if count:
            where = query.found.passage[first : first + count]
            at = np.minimum(np.searchsorted(where, beside), count - 1)
            held[term] = (where[at] == beside) & inside
    return held


def _window(index: SegmentIndex, query: _WeightedQuery, best: Numbers) -> Numbers:
    """Weigh the terms that stand in a passage, and half of those that stand only beside it."""
    here = _present(index, query, best, 0)
    beside = _present(index, query, best, -1) | _present(index, query, best, 1)
    return query.idf @ np.where(here, 1.0, np.where(beside, 0.5, 0.0))


def _rerank(index: SegmentIndex, asked: _WeightedQuery, candidates: _Candidates, weights: RerankWeights) -> Numbers:
    """Order the candidates once more, by what is known of each."""
    best = candidates.passages
    matched = np.count_nonzero(_present(index, asked, best, 0) & (asked.idf > 0)[:, None], axis=0)
    final = weights.first * candidates.first
    final += weights.session * candidates.session / asked.total
    final += weights.covered * candidates.covered / asked.total
    final += weights.window * candidates.window / asked.total
    final += weights.user * index.is_user[best]
    final += weights.matched * matched / max(asked.known, 1)
    final += weights.question * index.is_question[best]
    if asked.asks_time:
        final += weights.dated * index.is_dated[best]
    if asked.named is not None:
        final += weights.speaker * asked.named[best]
    return final
