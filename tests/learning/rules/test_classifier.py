"""The ear: its weights belong to the messages that are here, and hearing is adding them up."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest

from commonplace.learning.extract.rules import classifier, judge
from commonplace.learning.extract.rules.findings import FAILURES, KNOWLEDGE, PREFERENCES
from commonplace.learning.reading import sentences

TRAINING = Path(__file__).parents[3] / "training"
FAMILIES = {
    "m",
    "x",
    "b",
    "k",
    "s0",
    "s1",
    "s2",
    "n",
    "c",
    "cc",
    "r",
    "where",
    "pos",
    "len",
    "q",
    "code",
    "digit",
    "name",
}
LARGEST = 900 * 1024


def test_the_weights_were_made_from_the_messages_that_are_here() -> None:
    found = hashlib.sha256()
    for path in sorted(TRAINING.glob("*.jsonl")):
        found.update(path.read_bytes())

    assert classifier.weights().made_from == found.hexdigest()


def test_every_weight_can_be_explained_by_what_it_is_for() -> None:
    known = classifier.weights()

    assert [classifier.NOTHING, *classifier.KINDS] == known.kinds
    assert len(known.kinds) == len(known.base)
    assert {len(known.kinds)} == {len(row) for row in known.words.values()}
    assert FAMILIES >= {name.split(":", 1)[0] for name in known.words}


def test_the_weights_are_one_feature_per_line_and_small() -> None:
    data = resources.files("commonplace.learning.extract.rules").joinpath("classifier.json").read_bytes()

    assert len(data) <= LARGEST
    assert len(classifier.weights().words) + 2 == data.count(b"\n")


def test_hearing_is_adding_up_the_weights_of_what_is_there() -> None:
    own = sentences.of_text("we keep the lockfile in git")
    known = classifier.weights()
    rows = [known.words.get(name, [0] * len(known.kinds)) for name in classifier.features(own, 0, "answering")]
    total = [base + sum(row[place] for row in rows) for place, base in enumerate(known.base)]
    heard = classifier.classify(own, 0, "answering")

    told = {classifier.NOTHING: heard.nothing, **heard.kinds}
    assert max(range(len(total)), key=total.__getitem__) == known.kinds.index(max(told, key=told.__getitem__))
    assert 1 == pytest.approx(heard.nothing + sum(heard.kinds.values()))


def test_the_same_words_are_heard_the_same_again() -> None:
    first = classifier.classify(sentences.of_text("tabs, never spaces"), 0, "answering")
    classifier.classify.cache_clear()
    sentences.of_text.cache_clear()

    assert first == classifier.classify(sentences.of_text("tabs, never spaces"), 0, "answering")


def test_the_best_kind_is_of_the_likeliest_section() -> None:
    shares = dict.fromkeys(classifier.KINDS, 0.0)
    heard = classifier.KindProbabilities(
        0.1, {**shares, "failure": 0.3, "environment": 0.25, "decision": 0.2, "rule": 0.15}
    )

    assert "environment" == heard.best
    assert 0.45 == pytest.approx(heard.share(KNOWLEDGE))
    assert 0.3 == pytest.approx(heard.share(FAILURES))
    assert 0.15 == pytest.approx(heard.share(PREFERENCES))


def test_features_say_where_a_sentence_stands_and_what_the_rules_say() -> None:
    own = sentences.of_text("add a flag. we never edit gen/ by hand")
    found = classifier.features(own, 1, "opening", "rule")

    assert {"where:opening", "pos:last", "r:rule", "c:command"} <= found
    assert all(re.match(r"[a-z]+\d*(?::|$)", name) for name in found)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("never force-push in this repo", "rule"),
        ("please ask me before you touch the infra folder", "preference"),
        ("the staging database listens on port 54320", "environment"),
        ("let's stay with sqlite because nobody here wants to run a server", "decision"),
    ],
)
def test_what_is_said_outright_is_told(text: str, kind: str) -> None:
    told = judge.judge_sentence(sentences.of_text(text), 0)

    assert told is not None
    assert kind == told.kind


@pytest.mark.parametrize(
    "text",
    [
        "thanks",
        "can you rename the button?",
        "the button must always be visible",
        "skip the tests just this once",
        "my colleague says we should always use tabs",
        "my password is hunter2hunter2, always use it",
    ],
)
def test_what_does_not_last_is_not_told(text: str) -> None:
    assert judge.judge_sentence(sentences.of_text(text), 0) is None


def test_after_something_failed_a_dead_end_needs_less() -> None:
    own = sentences.of_text("right, no way around pairing on this firmware.")
    told = judge.judge_sentence(own, 0, judge.MessageContext("answering", failing=True))

    assert told is not None
    assert "failure" == told.kind


PLAIN = [
    "please always answer in German",
    "always run the linter before you commit",
    "never use emojis in commit messages",
    "From now on use polars instead of pandas.",
    "I always want imperative commit messages.",
    "don't ever push to main",
    "We never commit directly to main.",
    "Always use type hints in Python code.",
    "Use conventional commits in this repo.",
    "I prefer vitest over jest.",
    "Tests go next to the code in this project.",
]


@pytest.mark.parametrize("statement", PLAIN)
@pytest.mark.parametrize("message", ["{}.", "Fix the failing login test. {}.", "{}. Now fix the login test."])
def test_what_is_said_outright_is_heard_wherever_it_stands(statement: str, message: str) -> None:
    own = sentences.of_text(message.format(statement.rstrip(".")))
    place = next(number for number, each in enumerate(own) if each.text.rstrip(".") == statement.rstrip("."))

    assert judge.judge_sentence(own, place, judge.MessageContext("opening")) is not None
