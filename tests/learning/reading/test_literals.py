"""A quick look at letters never shuts out an expression that would match."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learning.commands import calls, tables, trouble
from commonplace.learning.reading import cues
from commonplace.learning.reading.literals import LiteralGate, needed

KNOWN = [
    ("from (?:now|here) on", {"from "}),
    (r"\bby default\b", {"by default"}),
    (r"(?:every|any)where\b", {"where"}),
    (r"(?:keep|bear)s?\b", {"keep", "bear"}),
    (r"colou?r", {"colo"}),
    (r"ab+cd*e", {"ab"}),
    (r"x{2,3}yz", {"yz"}),
    (r"x{0,3}yz", {"yz"}),
    (r"(?=ahead)behind(?!not)", {"behind"}),
    (r"[abc\]]\.go:", {".go:"}),
    (r"(?P<name>not found)", {"not found"}),
    ("以后", {"以后"}),
]


@pytest.mark.parametrize(("expression", "literals"), KNOWN)
def test_letters_that_every_match_has_are_found(expression: str, literals: set[str]) -> None:
    assert needed(expression) == literals


@pytest.mark.parametrize(
    "expression", ["", r"\w+", "a", "one|", "(?:one)?", r"one|\d\d", "(?i)one", r"(one)\1", "(one", r"\x41b", "a{,2}b"]
)
def test_an_expression_without_such_letters_is_always_tried(expression: str) -> None:
    assert needed(expression) == frozenset()
    assert LiteralGate({"it": [expression]}).open_for("anything") == {"it"}


def test_only_the_expressions_are_tried_whose_letters_stand_in_a_text() -> None:
    gate = LiteralGate({"always": [r"\balways\b"], "never": ["never", "not ever"], "any": [r"\d"]})
    assert gate.open_for("we do not ever push") == {"never", "any"}
    assert gate.open_for("push") == {"any"}


def _matching(pattern: re.Pattern[str]) -> st.SearchStrategy[str]:
    return st.from_regex(re.compile(pattern.pattern, pattern.flags))


CUES = [(language, cue) for language in cues.LANGUAGES for cue in cues.table(language) if cue != "polite"]


@given(st.data())
def test_a_sentence_that_matches_a_cue_passes_the_quick_look(data: st.DataObject) -> None:
    language, cue = data.draw(st.sampled_from(CUES))
    text: str = data.draw(st.from_regex(cues.pattern(language, cue).pattern))
    assert cue in cues.gate(language).open_for(text)


@given(st.data())
def test_an_output_that_shows_a_failure_or_a_trouble_passes_the_quick_look(data: st.DataObject) -> None:
    failure = data.draw(st.sampled_from(tables.table("calls")["failures"]))
    assert failure in calls.gate().open_for(data.draw(_matching(calls.failure(failure))))
    kind = data.draw(st.sampled_from([kind for kind in trouble.KINDS.values() if kind.name != "other"]))
    assert kind.name in trouble.gate().open_for(data.draw(_matching(kind.signs)))
