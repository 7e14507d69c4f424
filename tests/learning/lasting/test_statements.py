"""Of each message the best sentence is kept with its neighbours, and every sentence that states what lasts."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, refused, session, stop, user

from commonplace.learning.lasting.judge import STATED
from commonplace.learning.lasting.statements import LEAST, PersonStatement, messages, spoken
from commonplace.learning.reading.session_view import EventSpan, UserText, ViewEvent

COMMITS = "In this repo we use conventional commits."
RETURNS = "I prefer early returns over nested ifs."


def statements(*events: ViewEvent) -> list[PersonStatement]:
    return spoken(session(*events)).statements


def test_the_best_sentence_comes_with_the_sentences_around_it() -> None:
    text = f"it works now. {COMMITS} The last one was not."
    (found,) = statements(user("fix it"), edit(), user(text))

    assert (COMMITS, text) == (found.text, found.stretch)


def test_every_sentence_that_states_something_is_a_statement() -> None:
    found = statements(user(f"{COMMITS} fix the total in the cart. {RETURNS}"))

    assert [COMMITS, RETURNS] == [each.text for each in found]
    assert all(each.judged.stated >= STATED for each in found)


def test_only_the_best_sentence_has_a_stretch() -> None:
    found = statements(user(f"{COMMITS} fix the total in the cart. {RETURNS}"))

    assert 1 == sum(each.stretch != each.text for each in found)


def test_a_stretch_is_words_of_the_message_and_not_too_long() -> None:
    filler = "the importer reads one row after the other and then writes it into the table of the week."
    text = " ".join([*[filler] * 6, COMMITS, *[filler] * 6])
    found = statements(user(text))

    assert COMMITS in {each.text for each in found}
    assert all(each.stretch in text and len(each.stretch.split()) <= 60 for each in found)


def test_a_stretch_does_not_reach_over_a_pasted_block() -> None:
    pasted = "```\nTraceback: always call init\n```"
    found = statements(user(f"look at this please\n{pasted}\n{COMMITS}"))

    assert [COMMITS] == [each.stretch for each in found]


def test_a_statement_stands_at_the_bytes_of_its_message() -> None:
    (found,) = statements(user("fix it"), edit(), user(COMMITS))

    assert (200, 299) == (found.at.start, found.at.end)


@pytest.mark.parametrize(
    "text",
    [
        f'translate this into French: "{COMMITS}"',
        "write a page of house rules: we never use tabs, we always use spaces",
        f"correct the grammar: {COMMITS} {RETURNS}",
        "übersetze das bitte ins Englische: wir verwenden hier immer uv",
    ],
)
def test_a_message_that_asks_for_work_on_a_text_says_nothing(text: str) -> None:
    assert [] == statements(user(text))


@pytest.mark.parametrize("text", ["", "ok", "no tabs", "?!", "push it", "😂😂😂"])
def test_a_word_or_two_are_no_statement(text: str) -> None:
    assert [] == statements(user("fix it"), edit(), user(text))


def test_a_short_sentence_without_blanks_between_words_is_a_statement() -> None:
    (found,) = statements(user("以后都用中文回答我。"))

    assert "以后都用中文回答我。" == found.text


def test_every_sentence_of_the_person_tells_how_they_write() -> None:
    found = spoken(session(user("fix it please. the total is wrong"), edit(), user("thanks, now push it")))

    assert 3 == len(found.sentences)


def test_what_is_too_unlikely_to_last_is_not_stored() -> None:
    found = statements(user(f"{COMMITS} then push it"), edit(), user("now rename the column to total"))

    assert all(
        each.probability >= LEAST or each.judged.stated >= STATED or each.judged.sample.is_request for each in found
    )


def test_what_a_program_wrote_says_nothing() -> None:
    written = UserText(EventSpan(0, 0, 0), COMMITS, author="plan")

    assert [] == statements(written)
    assert [] == spoken(session(written)).sentences


def test_what_was_pasted_says_nothing() -> None:
    text = f"what is this?\n{COMMITS}"
    start = text.index(COMMITS)
    pasted = UserText(EventSpan(0, 0, 0), text, pasted=((start, len(text)),))

    assert all(COMMITS not in each.text for each in statements(pasted))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([refused("git push", "open a pull request")], ["git push"]),
        ([refused("git push"), user("open a pull request")], ["git push"]),
        ([refused("git push"), model("I stop."), user("open a pull request")], ["git push"]),
        ([refused("git push", "open a pull request"), user("and rebase it")], ["git push", ""]),
        ([refused("git push"), edit(), user("open a pull request")], [""]),
        ([edit(), user("open a pull request")], [""]),
    ],
)
def test_words_name_the_command_that_they_refuse(events: list[ViewEvent], expected: list[str]) -> None:
    assert ["", *expected] == [message.refused for message in messages(session(user("go on"), *events))]


def test_a_message_knows_what_stood_around_it() -> None:
    first, second = messages(session(user("go on"), stop(), user("not that file"), edit(), model("Sorry.")))

    assert (0, 2, "") == (first.around.position, first.around.count, first.around.previous)
    assert (True, "go on", True) == (second.around.was_stopped, second.around.previous, second.around.has_edited)
    assert "Sorry." in second.around.reply
