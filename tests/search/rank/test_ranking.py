"""Ranking: the arrays say what the formulas say, however the passages are spread over segments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest
from corpora import Corpus, corpora, index, keys, opened, segment, texts, told
from hypothesis import given
from hypothesis import strategies as st

from commonplace.search.rank import merge, score, signals
from commonplace.search.rank.analysis import Analyser
from commonplace.search.rank.build import Builder, Passage
from commonplace.search.rank.recipe import RECIPE, WEIGHTS, Recipe
from commonplace.search.rank.score import rank

PLAIN = msgspec.structs.replace(
    RECIPE,
    coverage=0,
    assistant=1,
    assistant_evidence=1,
    question=0,
    speaker=0,
    time=0,
    previous=0,
    next=0,
    previous_but_one=0,
    next_but_one=0,
    session=0,
    rerank=False,
)
"""Nothing but BM25 of the turn."""


def terms(passage: Passage) -> Counter[int]:
    analyser = Analyser()
    starts = [0]
    counted: Counter[int] = Counter()
    numbers = [*analyser.chunks(f"{passage.speaker} {passage.also}"), *analyser.chunks(passage.text)]
    starts += list(analyser.ends)
    for number in numbers:
        counted.update(analyser.keys[starts[number] : starts[number + 1]])
    return counted


def bm25(corpus: Corpus, question: str, recipe: Recipe) -> dict[tuple[str, int], float]:
    """The formula, spelt out."""
    said = [(name, place, terms(passage)) for name, each in corpus.items() for place, passage in enumerate(each)]
    average = sum(counted.total() for _, _, counted in said) / max(len(said), 1)
    found: dict[tuple[str, int], float] = {}
    for name, place, counted in said:
        total = 0.0
        for key in keys(question):
            df = sum(1 for _, _, other in said if other[key])
            idf = math.log(1 + (len(said) - df + 0.5) / (df + 0.5)) if df else 0.0
            norm = recipe.k1 * (1 - recipe.b + recipe.b * counted.total() / max(average, 1e-9))
            total += idf * counted[key] * (recipe.k1 + 1) / (counted[key] + norm) if counted[key] else 0.0
        if total > 0:
            found[name, place] = total
    return found


@given(corpora, texts)
def test_without_its_steps_it_is_bm25(corpus: Corpus, question: str) -> None:
    numbered = {
        name: [msgspec.structs.replace(each, offset=place) for place, each in enumerate(said)]
        for name, said in corpus.items()
    }
    expected = bm25(numbered, question, PLAIN)
    found = index(segment(numbered))
    ranked = rank(found, question, limit=100, recipe=PLAIN)
    assert set(told(found, ranked.passages)) == set(expected)
    highest = max(expected.values(), default=1)
    for place, points in zip(told(found, ranked.passages), ranked.scores, strict=True):
        assert points == pytest.approx(expected[place] / highest, rel=1e-4)


def answers(corpus_segments: Sequence[Corpus], question: str) -> list[tuple[tuple[str, int], float]]:
    found = index(*(segment(corpus) for corpus in corpus_segments))
    ranked = rank(found, question, limit=100)
    return sorted(zip(told(found, ranked.passages), (round(each, 4) for each in ranked.scores), strict=True))


def apart(corpus: Corpus) -> Corpus:
    """The same passages, each with an offset of its own."""
    place = iter(range(10_000))
    return {name: [msgspec.structs.replace(each, offset=next(place)) for each in said] for name, said in corpus.items()}


@given(corpora, texts, st.data())
def test_how_documents_are_spread_over_segments_changes_nothing(
    corpus: Corpus, question: str, data: st.DataObject
) -> None:
    corpus = apart(corpus)
    names = list(corpus)
    cut = data.draw(st.integers(0, len(names)))
    parts = [{name: corpus[name] for name in part} for part in (names[:cut], names[cut:])]
    assert answers(parts, question) == answers([corpus], question)


@given(corpora, texts, st.data())
def test_what_is_dropped_or_masked_is_as_if_it_had_never_been_there(
    corpus: Corpus, question: str, data: st.DataObject
) -> None:
    corpus = apart(corpus)
    names = list(corpus)
    gone = data.draw(st.sets(st.sampled_from(range(len(names)))))
    left = {name: corpus[name] for place, name in enumerate(names) if place not in gone}
    expected = answers([left], question)
    made = segment(corpus)
    dropped = index(made, dropped={0: gone})
    ranked = rank(dropped, question, limit=100)
    assert sorted(zip(told(dropped, ranked.passages), (round(x, 4) for x in ranked.scores), strict=True)) == expected
    whole = index(made)
    mask = whole.passages_of(gone, invert=True)
    ranked = rank(whole, question, limit=100, mask=mask)
    assert sorted(zip(told(whole, ranked.passages), (round(x, 4) for x in ranked.scores), strict=True)) == expected


@given(st.lists(corpora, min_size=1, max_size=4), texts, st.data())
def test_merged_segments_answer_as_the_several_did(parts: list[Corpus], question: str, data: st.DataObject) -> None:
    place = iter(range(10_000))
    parts = [
        {
            f"{number}{name}": [msgspec.structs.replace(each, offset=next(place)) for each in said]
            for name, said in part.items()
        }
        for number, part in enumerate(parts)
    ]
    made = [segment(part) for part in parts]
    gone = {number: data.draw(st.sets(st.sampled_from(range(len(part))))) for number, part in enumerate(parts)}
    several = index(*made, dropped=gone)
    opens = [opened(str(number), each, gone[number]) for number, each in enumerate(made)]
    one, moved = merge.merge(
        opens,
        lambda name, first, last: {n: data for n, data in enumerate(made[int(name)].buckets) if first <= n < last},
    )
    merged = index(one)
    for (name, old), new in moved.items():
        assert merged.documents[new] == opens[int(name)].facts.documents[old]
    assert len(moved) == sum(len(part) - len(gone[number]) for number, part in enumerate(parts))
    first, second = rank(several, question, limit=100), rank(merged, question, limit=100)
    assert sorted(told(several, first.passages)) == sorted(told(merged, second.passages))
    assert sorted(round(each, 4) for each in first.scores) == sorted(round(each, 4) for each in second.scores)


def test_many_postings_are_spread_over_buckets_and_found_again() -> None:
    corpus = {f"d{n}": [Passage(f"word{n}x{m} common term{m}", m) for m in range(50)] for n in range(400)}
    made = segment(corpus)
    assert made.bits > 0
    assert len(made.buckets) == 2**made.bits
    found = index(made)
    ranked = rank(found, "word17x3", limit=5)
    assert told(found, ranked.passages)[0] == ("d17", 3)


def best(corpus: Corpus, question: str, recipe: Recipe = RECIPE) -> tuple[str, int]:
    found = index(segment(corpus))
    return told(found, rank(found, question, recipe=recipe).passages)[0]


def test_a_question_hands_its_evidence_to_the_answer() -> None:
    corpus = {
        "a": [Passage("which port does the database use?", 0), Passage("it is 5433", 1)],
        "b": [Passage("the weather is fine", 0), Passage("indeed it is", 1)],
    }
    found = index(segment(corpus))
    ranked = rank(found, "database port")
    assert told(found, ranked.passages) == [("a", 0), ("a", 1)]


def test_nothing_is_handed_across_the_edge_of_a_session() -> None:
    corpus = {"a": [Passage("the database port", 0)], "b": [Passage("something else", 0)]}
    found = index(segment(corpus))
    assert told(found, rank(found, "database port").passages) == [("a", 0)]


def test_what_the_person_said_comes_before_what_the_model_said() -> None:
    corpus = {
        "a": [Passage("we deploy on thursday", 0, is_user=False), Passage("ok", 1), Passage("x", 2), Passage("y", 3)],
        "b": [Passage("we deploy on thursday", 0), Passage("ok", 1)],
    }
    assert best(corpus, "when do we deploy") == ("b", 0)


def test_whoever_is_named_comes_first() -> None:
    corpus = {
        "a": [Passage("I bought a lamp", 0, speaker="Ben"), Passage("I bought a lamp too", 1, speaker="Anna")],
    }
    assert best(corpus, "What lamp did Anna buy") == ("a", 1)


def test_a_question_for_a_time_prefers_what_tells_one() -> None:
    corpus = {
        "a": [Passage("the move was hard", 0), Passage("so", 1), Passage("x", 2), Passage("the move was last march", 3)]
    }
    assert best(corpus, "when was the move") == ("a", 3)


def test_newer_comes_first_among_equals_and_never_before_better() -> None:
    now = 1_800_000_000
    corpus = {
        "old": [Passage("the flaky socket test", 0, seconds=now - 400 * 86_400)],
        "new": [Passage("the flaky socket test", 0, seconds=now - 86_400)],
        "other": [Passage("another flaky thing altogether", 0, seconds=now)],
    }
    found = index(segment(corpus))
    ranked = rank(found, "flaky socket test", prior=score.recency(found, now))
    assert told(found, ranked.passages) == [("new", 0), ("old", 0), ("other", 0)]


@pytest.mark.parametrize("question", ["", "   ", "the of and", "?", "zebra"])
def test_a_question_that_says_nothing_known_finds_nothing(question: str) -> None:
    found = index(segment({"a": [Passage("a lamp", 0)]}))
    assert rank(found, question).passages == []


def test_an_empty_index_finds_nothing() -> None:
    assert rank(index(), "lamp").passages == []
    assert rank(index(segment({"a": []})), "lamp").passages == []


def test_a_page_as_a_question_is_answered_by_its_rarest_words() -> None:
    common = " ".join(f"common{n}" for n in range(200))
    corpus = {**{name: [Passage(common, 0)] for name in "abcde"}, "q": [Passage("quetzal", 0)]}
    found = index(segment(corpus))
    assert ("q", 0) in told(found, rank(found, f"{common} quetzal").passages)


@pytest.mark.parametrize("limit", [1, 3, 10, 1000])
def test_no_more_is_returned_than_was_asked_for(limit: int) -> None:
    found = index(segment({"a": [Passage("a lamp", place) for place in range(20)]}))
    assert len(rank(found, "lamp", limit=limit).passages) == min(limit, 20)


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([], []),
        ([("a", 10, 0.0)], []),
        ([(name, 10, 0.0) for name in "abcd"], ["a", "b", "c", "d"]),
        ([(name, 10, 0.0) for name in "abc"], []),
        ([("a", 10, 0.5), ("b", 10, 0.0)], ["a"]),
        ([(name, 20_000, 0.0) for name in "abcd"], []),
        ([(name, 15_000, 0.0) for name in "abcd"], ["a", "b", "c", "d"]),
        ([*((name, 10, 0.0) for name in "abc"), ("d", 5_000, 0.0)], []),
    ],
)
def test_segments_are_merged_with_those_of_their_size(sizes: list[tuple[str, int, float]], chosen: list[str]) -> None:
    assert merge.plan(sizes) == chosen


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("When did we move?", True),
        ("what year was it", True),
        ("how many days did it take", True),
        ("how long", True),
        ("whenever", False),
        ("which port", False),
    ],
)
def test_questions_for_a_time_are_recognised(question: str, asks: bool) -> None:
    assert signals.asks_time(question) is asks


def test_each_step_can_be_switched_off() -> None:
    corpus = {"a": [Passage("which lamp?", 0), Passage("the blue one", 1), Passage("ok", 2, is_user=False)]}
    found = index(segment(corpus))
    for field in ("previous", "next", "session", "coverage", "question", "speaker", "time", "best_turns"):
        assert rank(found, "blue lamp", recipe=msgspec.structs.replace(RECIPE, **{field: 0.0})).passages
    assert rank(found, "blue lamp", recipe=msgspec.structs.replace(RECIPE, rerank=False), weights=WEIGHTS).passages


def test_a_builder_is_full_when_it_holds_enough() -> None:
    builder = Builder()
    builder.add("a", "", [Passage("word " * 100_000, 0) for _ in range(20)])
    assert builder.is_full()
