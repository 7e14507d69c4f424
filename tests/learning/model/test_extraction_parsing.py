"""What of an answer is taken, and what is wrong with the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from taught_by_model import fields, lesson, text, wish

from commonplace.learning.extract.model import model_answer
from commonplace.learning.extract.model.model_answer import Draft, DraftLesson, DraftTask

OBJECT = text([wish("use tabs here", 2, scope="everywhere", what_to_do="indent with tabs")])
DRAFT = Draft(
    (DraftLesson("preference", "use tabs here", "use tabs here", 2, 1, "everywhere", "indent with tabs"),),
    (DraftTask("fix the build", "success"),),
    "The build was fixed",
    ("uv", "pip"),
    "a-slug",
)


@pytest.mark.parametrize(
    "answer",
    [
        OBJECT,
        f"\n  {OBJECT}\n",
        f"```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```",
        f"Here is what I found:\n\n{OBJECT}\n\nI hope that helps.",
        f"Sure {{as asked}}:\n```json\n{OBJECT}\n```\nDone.",
        json.dumps(json.loads(OBJECT), indent=2),
        json.dumps({**json.loads(OBJECT), "notes": "more", "reasoning": ["x"]}),
    ],
    ids=["bare", "blanks", "json fence", "fence", "prose", "prose and fence", "indented", "unknown keys"],
)
def test_one_object_is_found_in_its_usual_wrappings(answer: str) -> None:
    assert DRAFT == model_answer.read(answer)


def test_a_bare_list_of_lessons_is_an_answer() -> None:
    found = model_answer.read("The lessons:\n" + json.dumps([wish("use tabs here")]))

    assert isinstance(found, Draft)
    assert ["use tabs here"] == [each.text for each in found.lessons]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"section": "verify"}, "verify"),
        ({"section": "User preferences"}, "preference"),
        ({"section": "Preference signals:"}, "preference"),
        ({"section": "Reusable knowledge"}, "environment"),
        ({"section": "Failures and how to do differently"}, "failure"),
        ({"section": "Steps"}, "procedure"),
        ({"section": "FIXES"}, None),
        ({"section": "fixs"}, "fix"),
        ({"section": "decisions"}, "decision"),
        ({"section": "gossip"}, None),
        ({}, None),
    ],
)
def test_sections_are_known_by_their_usual_names(row: dict[str, Any], expected: str | None) -> None:
    found = model_answer.read(json.dumps({"lessons": [{**row, "text": "x"}]}))

    assert isinstance(found, Draft)
    assert expected == found.lessons[0].kind


def test_missing_and_odd_fields_are_taken_as_they_are_meant() -> None:
    row = {"section": "rule", "text": "no\n  tabs", "turn": "turn 7", "task": None, "scope": "GLOBAL", "quote": None}
    found = model_answer.read(json.dumps({"lessons": [row], "keywords": "a, b", "tasks": [{"outcome": "done"}]}))

    assert isinstance(found, Draft)
    assert DraftLesson("rule", "no tabs", "", 7, 1, "everywhere") == found.lessons[0]
    assert (("a", "b"), (DraftTask("", "uncertain"),)) == (found.keywords, found.tasks)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "It is empty"),
        ("I learned nothing.", "no JSON object"),
        ('"text"', "not a JSON object"),
        (OBJECT[:-20], "cannot be read"),
        (OBJECT + OBJECT, "more than one"),
        ("{}", "no list `lessons`"),
        (json.dumps({"title": "x"}), "no list `lessons`"),
        (json.dumps({"lessons": "none"}), "not a list of objects"),
        (json.dumps({"lessons": ["use tabs"]}), "not a list of objects"),
        ("x" * (model_answer.MAX_ANSWER + 1), "longer than"),
        ('{"a": ' * 5_000, "cannot be read"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(answer: str, problem: str) -> None:
    found = model_answer.read(answer)

    assert isinstance(found, str)
    assert problem in found


@pytest.mark.parametrize("answer", ['{"lessons": []}', "[]", text([])])
def test_an_empty_list_says_that_nothing_was_learned(answer: str) -> None:
    found = model_answer.read(answer)

    assert isinstance(found, Draft)
    assert () == found.lessons


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
    found = model_answer.read(json.dumps(fields(slug=slug)))

    assert isinstance(found, Draft)
    assert expected == found.slug


def test_what_is_read_is_bounded() -> None:
    many = [lesson("environment", "y" * 9_000, "z")] * 3
    found = model_answer.read(json.dumps({"lessons": [*many, *[lesson("environment", "y", "z")] * 300]}))

    assert isinstance(found, Draft)
    assert (model_answer.MAX_LESSONS, 4_000) == (len(found.lessons), len(found.lessons[0].text))


def test_halves_of_characters_and_secrets_do_not_get_in() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = model_answer.read(
        '{"lessons": [{"section": "rule", "text": "\\ud800x ' + token + '"}], "slug": "' + token + '"}'
    )

    assert isinstance(found, Draft)
    assert "?x" in found.lessons[0].text
    assert token not in str(found)
    assert token.lower() not in str(found)


@given(st.text() | st.text().map(lambda words: text([wish(words)])) | st.text().map(lambda words: OBJECT + words))
def test_any_text_is_a_draft_or_a_problem(answer: str) -> None:
    found = model_answer.read(answer)

    assert isinstance(found, Draft) or found
