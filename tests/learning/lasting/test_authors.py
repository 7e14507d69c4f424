"""Each stretch of a user record has an author, and only what a person typed becomes a sentence of theirs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.learning.lasting.authors import Author, RecordMarks, stretches
from commonplace.learning.lasting.own_sentences import own_sentences
from commonplace.learning.reading.question_tools import ReplyAnswer

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


Row = tuple[Author, str]


@pytest.mark.parametrize(
    ("text", "marks", "rows"),
    [
        pytest.param("use tabs here", RecordMarks(), [(Author.TYPED, "use tabs here")], id="typed"),
        pytest.param(
            "read this: we always squash. ok?",
            RecordMarks(pasted=((11, 28),)),
            [(Author.TYPED, "read this: "), (Author.PASTED, "we always squash."), (Author.TYPED, " ok?")],
            id="pasted by field or history",
        ),
        pytest.param(
            "<bash-input>never do this</bash-input>",
            RecordMarks(pasted=((0, 38),)),
            [(Author.PASTED, "<bash-input>never do this</bash-input>")],
            id="pasted outranks a mark of a program",
        ),
        pytest.param(
            "look\n$ make test\nFAIL cart",
            RecordMarks(),
            [(Author.TYPED, "look\n"), (Author.PASTED, "$ make test\nFAIL cart")],
            id="pasted by shape",
        ),
        pytest.param(
            "intro\n$ make test\nlines of a log\nthen tell me",
            RecordMarks(pasted=((18, 33),)),
            [
                (Author.TYPED, "intro\n"),
                (Author.PASTED, "$ make test\n"),
                (Author.PASTED, "lines of a log\n"),
                (Author.TYPED, "then tell me"),
            ],
            id="the shape still counts beside a noted paste",
        ),
        pytest.param(
            "Split the parser.",
            RecordMarks(author=Author.PLAN),
            [(Author.PLAN, "Split the parser.")],
            id="plan by field",
        ),
        pytest.param(
            "Implement the following plan:\n\n# Split",
            RecordMarks(),
            [(Author.PLAN, "Implement the following plan:\n\n# Split")],
            id="plan by text",
        ),
        pytest.param(
            "Implement the following plan:\n\n# Split\n\nUser feedback on this plan: keep the lexer",
            RecordMarks(author=Author.PLAN),
            [
                (Author.PLAN, "Implement the following plan:\n\n# Split\n\nUser feedback on this plan: "),
                (Author.TYPED, "keep the lexer"),
            ],
            id="plan with what the person added",
        ),
        pytest.param(
            "Check the nightly run.",
            RecordMarks(author=Author.HARNESS),
            [(Author.HARNESS, "Check the nightly run.")],
            id="harness by history",
        ),
        pytest.param(
            "<task-notification>done</task-notification>",
            RecordMarks(),
            [(Author.HARNESS, "<task-notification>done</task-notification>")],
            id="harness by text",
        ),
        pytest.param(
            f"{REFUSAL}I review first",
            RecordMarks(is_refusal=True),
            [(Author.HARNESS, REFUSAL), (Author.REFUSAL, "I review first")],
            id="refusal with its reason",
        ),
        pytest.param(
            "Which port? 8080",
            RecordMarks(answers=(ReplyAnswer(12, 16, "Which port?"),)),
            [(Author.HARNESS, "Which port? "), (Author.ANSWER, "8080")],
            id="answer",
        ),
        pytest.param(
            "[Request interrupted by user]",
            RecordMarks(),
            [(Author.INTERRUPTION, "[Request interrupted by user]")],
            id="interruption in Claude Code",
        ),
        pytest.param(
            "<turn_aborted>\nstopped\n</turn_aborted>",
            RecordMarks(),
            [(Author.INTERRUPTION, "<turn_aborted>\nstopped\n</turn_aborted>")],
            id="interruption in Codex",
        ),
    ],
)
def test_every_author_has_a_row(text: str, marks: RecordMarks, rows: list[Row]) -> None:
    assert rows == [(part.author, text[part.start : part.end]) for part in stretches(text, marks=marks)]


def test_only_typed_words_refusals_and_answers_are_the_persons_own() -> None:
    assert {Author.TYPED, Author.REFUSAL, Author.ANSWER} == {author for author in Author if author.is_own}


def test_an_answer_is_read_with_its_question() -> None:
    asked = (ReplyAnswer(12, 18, "Which store? / SQLite: one file"), ReplyAnswer(31, 35, "Which port?"))
    text = "Which store? SQLite\nWhich port? 8080"
    quoted = f'{REFUSAL}The user wants to clarify these questions.\n- "Which store?"\n  Answer: SQLite'

    noted = [part.question for part in stretches(text, marks=RecordMarks(answers=asked)) if part.question]
    read = [part.question for part in stretches(quoted, is_refusal=True) if part.author is Author.ANSWER]

    assert ["Which store? / SQLite: one file", "Which port?"] == noted
    assert ["Which store?"] == read


_spans = st.lists(st.integers(0, 330), max_size=6).map(
    lambda places: tuple(zip(sorted(places)[::2], sorted(places)[1::2], strict=False))
)


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["we use tabs", "```", "$ ls", REFUSAL, "<file>", "</file>", "see:"])).map("\n".join),
    st.booleans(),
    st.sampled_from([None, *Author]),
    _spans,
)
def test_stretches_cover_any_text_without_gaps(
    text: str, is_refusal: bool, author: Author | None, pasted: tuple[tuple[int, int], ...]
) -> None:
    found = stretches(text, marks=RecordMarks(is_refusal, author, pasted))

    assert "".join(text[part.start : part.end] for part in found) == text
    assert all(one.end == two.start for one, two in itertools.pairwise(found))
    for sentence in own_sentences(text, found):
        assert sentence.text == text[sentence.start : sentence.end]
        assert any(part.author.is_own and part.start <= sentence.start < part.end for part in found)
    if author is None and not is_refusal:
        noted = {place for start, end in pasted for place in range(start, min(end, len(text)))}
        own = {place for part in found if part.author.is_own for place in range(part.start, part.end)}
        assert not noted & own
