"""What people said is judged again when all their sessions are known."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, session, user

from commonplace.learning.consolidate.judged import FEW, TaughtSession, judged
from commonplace.learning.extract import rules
from commonplace.memory import lessons
from commonplace.memory.entries import LISTED, TOLD
from commonplace.memory.lessons import SessionLesson

HOME = "/home/ada/shop"
PLAIN = "on garde Postgres parce que l'équipe le connaît"
"""States something, without a word that says that it lasts."""
OUTRIGHT = "We never commit to main directly here."


def taught(*texts: str, thread: str = "a", cwd: str = HOME) -> TaughtSession:
    """Return what a session of some messages taught."""
    found = rules.extract(session(*(event for text in texts for event in (user(text), model(), edit()))))
    held = lessons.decode(found.lessons or "")
    own = lessons.session_lessons(held, project="shop", thread_id=thread, updated_s=1)
    return TaughtSession(thread, cwd, own, held.sentences)


def others(count: int, cwd: str = HOME) -> list[TaughtSession]:
    """Return sessions in which a person says nothing that lasts."""
    return [
        taught("fix the total in the cart, it is off by a cent", thread=f"o{number}", cwd=cwd)
        for number in range(count)
    ]


def judged_of(first: TaughtSession, *more: TaughtSession) -> list[SessionLesson]:
    return [lesson for lesson in judged([first, *more]) if lesson.thread_id == first.thread_id]


def confidence(first: TaughtSession, *more: TaughtSession) -> float:
    return max(lesson.confidence for lesson in judged_of(first, *more))


def test_what_a_new_person_states_is_listed_at_once() -> None:
    assert LISTED <= confidence(taught(PLAIN)) < TOLD


def test_what_a_new_person_states_outright_is_told_at_once() -> None:
    assert confidence(taught(OUTRIGHT)) >= TOLD


def test_what_a_known_person_states_is_judged_by_how_they_write() -> None:
    assert confidence(taught(PLAIN), *others(FEW - 1)) < LISTED


def test_what_a_known_person_states_outright_is_still_told() -> None:
    assert confidence(taught(OUTRIGHT), *others(FEW - 1)) >= TOLD


def test_a_person_is_new_up_to_their_sixth_session() -> None:
    assert confidence(taught(PLAIN), *others(FEW - 2)) >= LISTED


@pytest.mark.parametrize("cwd", ["/home/ben/shop", "/Users/ben/shop", "C:\\Users\\ben\\shop"])
def test_sessions_of_somebody_else_do_not_make_a_person_known(cwd: str) -> None:
    assert confidence(taught(PLAIN), *others(FEW, cwd=cwd)) >= LISTED


def test_sessions_in_which_nobody_wrote_do_not_make_a_person_known() -> None:
    silent = [TaughtSession(f"s{number}", HOME, [], ()) for number in range(FEW)]

    assert confidence(taught(PLAIN), *silent) >= LISTED


@pytest.mark.parametrize(
    ("cwd", "person"),
    [
        ("/home/ada/shop", "ada"),
        ("/Users/ada/src/shop", "ada"),
        ("C:\\Users\\ada\\shop", "ada"),
        ("/srv/shop", ""),
        ("", ""),
    ],
)
def test_people_are_told_apart_by_their_home_folders(cwd: str, person: str) -> None:
    assert person == TaughtSession("a", cwd, [], ()).person


def test_of_a_message_the_best_stretch_is_yielded_once() -> None:
    text = f"ok, that works now. {OUTRIGHT} The last one was not. I prefer early returns over nested ifs."
    found = judged_of(taught(text), *others(FEW - 1))

    assert len(found) == len({lesson.words for lesson in found})
    assert 1 >= sum("works now" in lesson.words for lesson in found)


def test_a_stretch_takes_the_place_of_the_best_sentence_and_is_quoted_so() -> None:
    text = "the export is slow. can we not use mocks for the database? they hide the real bugs"
    (found,) = judged_of(taught(text), *others(FEW - 1))

    assert found.words in text
    assert f'said by the user: "{found.words}"' == found.text
    assert len(found.words) > len("can we not use mocks for the database?")


def test_what_was_not_judged_passes_unchanged() -> None:
    first = taught(OUTRIGHT)
    plain = next(lesson for lesson in first.lessons if lesson.judged is not None)
    shown = SessionLesson(
        "verify", "Tests: `make test`", "Tests: `make test`", "", "", "shop", "a", 1, 0, "", "", plain.sources
    )

    assert shown in judged_of(first._replace(lessons=[shown]))


def test_a_request_that_comes_back_in_other_sessions_is_likelier_to_last() -> None:
    asked = ["open a draft PR", "push and open a draft PR please", "now create a draft PR", "open the PR as a draft"]
    again = [taught(text, thread=f"d{number}") for number, text in enumerate(asked)]
    first = taught("make a draft PR for it")

    assert confidence(first, *others(FEW - 1), *again) > confidence(first, *others(FEW - 1))


@pytest.mark.parametrize(
    "said",
    [
        "I said that I start the linter by hand. Never start it on your own. I go on with it until nothing is red.",
        "I prefer small commits. We review each of them with two people because the audit asks for it.",
        "Please ask me before you add a package. The build image has no network, so each new one breaks the build.",
    ],
)
def test_words_of_a_message_are_told_once(said: str) -> None:
    found = [lesson.words for lesson in judged_of(taught(said), *others(FEW - 1))]

    assert found
    assert [] == [(one, two) for one in found for two in found if one is not two and one in two]
