"""Each stretch of a user record has an author, and only what a person typed becomes a sentence of theirs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learning.lasting.authors import Author, stretches
from commonplace.learning.lasting.own_sentences import own_sentences

REFUSAL = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"


def typed(text: str, *, is_refusal: bool = False, is_plan: bool = False) -> list[str]:
    """Return the sentences that the person wrote."""
    parts = stretches(text, is_refusal=is_refusal, is_plan=is_plan)
    return [sentence.text for sentence in own_sentences(text, parts)]


@pytest.mark.parametrize(
    "text",
    [
        "Implement the following plan:\n\n# Split the parser\n\nWe always keep the lexer apart.",
        "please implement this plan: never touch the lexer",
        "<task-notification>the build is done</task-notification>",
        "<system-reminder>always answer in English</system-reminder>",
        "[Request interrupted by user]",
        "This session is being continued from an earlier one. Always use tabs.",
        "Caveat: The messages below were made by the user while running local commands.",
        "# AGENTS.md instructions for /srv/shop\nAlways run the tests.",
    ],
)
def test_plans_and_texts_of_programs_hold_nothing_typed(text: str) -> None:
    assert [] == typed(text)


def test_the_record_says_that_it_is_a_plan() -> None:
    assert [] == typed("Rename the module, then always sort imports.", is_plan=True)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (
            "why does this fail?\n```\nError: boom\n```\nwe never retry here",
            ["why does this fail?", "we never retry here"],
        ),
        ("got this error:\nTypeError: x is undefined\nstack of the thing", ["got this error:"]),
        ("look\n2026-01-02 10:00:01 started\nloading things\n2026-01-02 10:00:02 stopped", ["look"]),
        ("review says:\nConsider extracting the retry logic into a helper so that callers share it.", ["review says:"]),
        ("$ make test\nFAIL shop.cart\nwe use make here, not npm", ["we use make here, not npm"]),
        ("<ide_selection>const a = 1</ide_selection>\nrename it please", ["rename it please"]),
        ("- we deploy on Mondays\n- never force push", ["we deploy on Mondays", "never force push"]),
        ("## Design\nThe cart owns its totals.\n## Risks\nNone known.", []),
    ],
)
def test_what_is_pasted_is_told_from_what_is_typed(text: str, own: list[str]) -> None:
    assert own == typed(text)


def test_a_refusal_quotes_the_person() -> None:
    assert ["don't push, I review first"] == typed(f"{REFUSAL}don't push, I review first", is_refusal=True)


def test_answers_are_typed_and_their_questions_are_not() -> None:
    text = (
        f"{REFUSAL}The user wants to clarify these questions.\n"
        "Question: Which database?\nAnswer: SQLite, we have no server\nQuestion: Which port?\nAnswer: 8080"
    )

    assert ["SQLite, we have no server", "8080"] == typed(text, is_refusal=True)


@given(st.text(max_size=300), st.booleans(), st.booleans())
def test_stretches_cover_any_text_without_gaps(text: str, is_refusal: bool, is_plan: bool) -> None:
    found = stretches(text, is_refusal=is_refusal, is_plan=is_plan)

    assert "".join(text[part.start : part.end] for part in found) == text
    for sentence in own_sentences(text, found):
        assert sentence.text == text[sentence.start : sentence.end]
        assert any(part.author is Author.TYPED and part.start <= sentence.start < part.end for part in found)
