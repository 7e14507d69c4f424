"""What of an answer is taken, and what is wrong with the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from taught_by_model import fields, raw, summary, text

from commonplace.learning.extract.model import model_answer
from commonplace.memory.files import output_shape
from commonplace.state.outputs import Output

OBJECT = text()


@pytest.mark.parametrize(
    "answer",
    [
        OBJECT,
        f"\n  {OBJECT}\n",
        f"```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```",
        f"Here is what I found:\n\n{OBJECT}\n\nI hope that helps.",
        f"Sure {{as asked}}:\n```json\n{OBJECT}\n```\nDone.",
        json.dumps(fields(), indent=2),
    ],
    ids=["bare", "blanks", "json fence", "fence", "prose", "prose and fence", "indented"],
)
def test_one_object_is_found_in_its_usual_wrappings(answer: str) -> None:
    assert Output(raw(), summary(), "a-slug") == model_answer.read(answer)


@pytest.mark.parametrize(
    "keys",
    [
        {"raw_memory": "rawMemory", "rollout_summary": "summary", "rollout_slug": "slug"},
        {"raw_memory": "rawMemory", "rollout_summary": "rolloutSummary", "rollout_slug": "rolloutSlug"},
    ],
)
def test_older_keys_mean_the_same(keys: dict[str, str]) -> None:
    older = {keys[key]: value for key, value in fields().items()}

    assert Output(raw(), summary(), "a-slug") == model_answer.read(json.dumps(older))


def changed(**changes: Any) -> str:
    return json.dumps({**fields(), **changes})


def without(key: str) -> str:
    return json.dumps({name: value for name, value in fields().items() if name != key})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "It is empty"),
        ("I learned nothing.", "no JSON object"),
        ("[]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        (OBJECT[:-20], "cannot be read"),
        (OBJECT + OBJECT, "more than one"),
        (changed(notes="x"), "unknown key 'notes'"),
        (changed(summary="x"), "rollout_summary twice"),
        (without("raw_memory"), "no raw_memory"),
        (without("rollout_summary"), "no rollout_summary"),
        (changed(raw_memory=None), "raw_memory is not a string"),
        (changed(rollout_summary=["x"]), "rollout_summary is not a string"),
        (changed(rollout_slug=7), "rollout_slug is not a string"),
        (changed(raw_memory="no head"), "no front matter"),
        (changed(raw_memory=raw(head={"task_outcome": "done"})), "task_outcome is 'done'"),
        (changed(raw_memory=raw().replace("### Task 1", "### Task 2")), "not numbered from 1"),
        (changed(rollout_summary="no heading"), "does not begin with a sentence"),
        (changed(rollout_summary=summary().replace("Outcome: success", "")), "needs one outcome"),
        (changed(raw_memory="x" * model_answer.MAX_ANSWER), "longer than"),
        ('{"raw_memory": "\\ud800", "rollout_summary": "x", "rollout_slug": null}', "characters that no text has"),
        ('{"a": ' * 5_000, "cannot be read"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(answer: str, problem: str) -> None:
    found = model_answer.read(answer)

    assert isinstance(found, str)
    assert problem in found


@pytest.mark.parametrize("empty", ["", " ", "\n\n"])
@pytest.mark.parametrize("key", ["raw_memory", "rollout_summary"])
def test_an_empty_text_says_that_nothing_was_learned(key: str, empty: str) -> None:
    assert Output("", "") == model_answer.read(changed(**{key: empty}))
    assert Output("", "") == model_answer.read(changed(raw_memory="", rollout_summary="", rollout_slug=""))


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("a-slug_2", "a-slug_2"),
        ("Fix The Build!", "fix-the-build"),
        ("a" * 100, "a" * 80),
        ("", None),
        ("???", None),
        (None, None),
    ],
)
def test_a_slug_becomes_a_name_for_a_file_or_none(slug: str | None, expected: str | None) -> None:
    found = model_answer.read(changed(rollout_slug=slug))

    assert isinstance(found, Output)
    assert expected == found.rollout_slug
    assert model_answer.read(without("rollout_slug")) == Output(raw(), summary(), None)


def test_line_ends_and_spaces_are_put_right() -> None:
    messy = changed(raw_memory=raw().replace("\n", " \r\n"), rollout_summary="\n" + summary() + "\n\n")

    assert Output(raw(), summary(), "a-slug") == model_answer.read(messy)


@given(st.text() | st.text().map(lambda words: changed(raw_memory=words)) | st.text().map(lambda words: OBJECT + words))
def test_any_text_is_an_output_of_the_right_shape_or_a_problem(answer: str) -> None:
    found = model_answer.read(answer)

    assert found if isinstance(found, str) else output_shape.problem(found) is None
