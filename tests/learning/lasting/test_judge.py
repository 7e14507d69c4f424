"""The judge tells what lasts from what is for now: its plainest cases. Quality is measured on real sessions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learning.lasting.authors import stretches
from commonplace.learning.lasting.features import PersonHabits, Surroundings, measure
from commonplace.learning.lasting.judge import judge, kind
from commonplace.memory.entries import KINDS
from commonplace.memory.lessons import WritingSample

LASTING = [
    "always open pull requests as drafts and never push to main directly",
    "we should never log tokens, redact them before they are written",
    "don't add fallbacks for old formats, remove them completely instead",
]
MOMENT = ["push it", "ok", "fix the lint", "can you look at this?", "yes do the second one", "what does this line do?"]

SENTENCES = [
    "Always run the whole suite before you push, and never squash what others have reviewed already.",
    "I've updated the handler so that empty carts are skipped, and added a regression test that covers the edge case.",
    "please keep the cart page as it is, we'll look at the totals, the taxes and the vouchers later on",
]


def likelihood(text: str) -> float:
    """Return how likely the best sentence of a message lasts."""
    chosen = judge()
    measured = measure(text, stretches(text), Surroundings(), chosen.hand)
    return max((chosen.probability(chosen.sums(each)) for each in measured), default=0.0)


@pytest.mark.parametrize("lasting", LASTING)
def test_what_lasts_is_likelier_than_any_order_of_the_moment(lasting: str) -> None:
    assert likelihood(lasting) > max(map(likelihood, MOMENT))


def test_a_wish_that_comes_back_in_three_sessions_is_a_habit() -> None:
    habits = PersonHabits()
    sample = WritingSample(-3.0, 2.0, ("draft",), is_request=True)
    for session in ("a", "b", "c"):
        habits.add(session, sample)

    strength, word = habits.habit(sample.extras)

    assert "draft" == word
    assert strength >= 1.5
    assert 1.0 == habits.features(sample)["hab:strong"]


def test_what_is_said_all_the_time_is_no_habit() -> None:
    habits = PersonHabits()
    for session in ("a", "b", "c"):
        habits.add(session, WritingSample(-3.0, 2.0, ("cart",), is_request=True))
        habits.add(session, WritingSample(-3.0, 2.0, ("cart",), is_request=False))

    assert habits.habit(("cart",))[0] < 1.5


@given(st.text(max_size=200))
def test_any_text_is_judged(text: str) -> None:
    chosen = judge()
    for each in measure(text, stretches(text), Surroundings(reply=text, previous=text), chosen.hand):
        sums = chosen.sums(each)
        assert 0 <= chosen.probability(sums) <= 1
        assert kind(sums) in KINDS


def test_a_sentence_is_judged_the_same_in_every_process() -> None:
    """Sets of words have another order in each process; no sum over them may tell which."""
    code = (
        "from commonplace.learning.lasting import acts, handwriting\n"
        "from commonplace.learning.lasting.judge import judge\n"
        f"print([handwriting.score(judge().hand, text, acts.shape(text)).hex() for text in {SENTENCES}])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in "0123"
    }

    assert len(said) == 1
