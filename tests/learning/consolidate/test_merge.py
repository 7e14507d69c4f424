"""Lessons become entries, whatever the order they arrive in."""

from __future__ import annotations

import random

import msgspec
import pytest
from taught import START, lesson

from commonplace.learning.consolidate import merge
from commonplace.memory.lessons import JudgeInput, JudgeSums, WritingSample


def test_a_wish_said_again_is_one_entry_with_all_its_sources() -> None:
    found = merge.merge([lesson("never push to main directly", day=2), lesson("don't push straight to main", day=5)])

    (entry,) = found.entries
    assert (entry.support, len(entry.sources)) == (2, 2)
    assert (entry.first_seen_s, entry.last_seen_s) == (START + 2 * 86_400, START + 5 * 86_400)


@pytest.mark.parametrize(
    ("is_request", "told"), [(True, "open a draft pr please"), (False, "leave the cart as it is. open a draft pr")]
)
def test_what_stood_around_a_request_that_was_made_again_is_not_told(is_request: bool, told: str) -> None:
    judge = JudgeInput(JudgeSums((0.0, 0.0, 0.0), 0.0), WritingSample(-2.0, 1.6, ("draft",), is_request))
    around = lesson("leave the cart as it is. open a draft pr", day=1)
    lessons = [
        msgspec.structs.replace(around, sentence="open a draft pr", judged=judge),
        msgspec.structs.replace(lesson("open a draft pr please", day=2), judged=judge),
    ]

    (entry,) = merge.merge(lessons).entries

    assert (entry.text, entry.support) == (f'"{told}"', 2)


def test_an_entry_keeps_its_id_while_more_sessions_teach_it() -> None:
    first, again = lesson("never push to main directly", day=2), lesson("don't push straight to main", day=5)

    assert merge.merge([first]).entries[0].id == merge.merge([again, first]).entries[0].id


def test_the_newest_of_two_that_contradict_holds() -> None:
    old, new = lesson("use tabs for indentation", day=1), lesson("indent with 4 spaces please", day=3)

    found = merge.merge([new, old])

    assert [entry.text for entry in found.entries] == ['"indent with 4 spaces please"']
    assert [(before.text, after.text) for before, after in found.replaced] == [
        ('"use tabs for indentation"', '"indent with 4 spaces please"')
    ]


def test_who_goes_back_to_the_old_way_has_the_old_way() -> None:
    said = ["use tabs for indentation", "indent with 4 spaces please", "use tabs for indentation again"]

    found = merge.merge([lesson(words, day=day) for day, words in enumerate(said)])

    assert [entry.support for entry in found.entries] == [2]
    assert "tabs" in found.entries[0].text


def test_rules_of_two_projects_may_contradict() -> None:
    one = lesson("use tabs for indentation", kind="rule", project="a/one", day=1)
    two = lesson("indent with 4 spaces please", kind="rule", project="b/two", day=2)

    found = merge.merge([one, two])

    assert {entry.scope for entry in found.entries} == {"a/one", "b/two"}
    assert not found.replaced


def test_a_wish_of_two_projects_is_the_persons_own() -> None:
    one = lesson("never push to main directly", project="a/one", day=1)
    two = lesson("don't push straight to main", project="b/two", day=2)

    assert [entry.scope for entry in merge.merge([one, two]).entries] == ["global"]


@pytest.mark.parametrize(
    ("words", "scope"),
    [
        ("keep your answers short", "global"),
        ("no long explanations please", "global"),
        ("in general, ask me before you delete things", "global"),
        ("I want to explain the error and then give the cure in general", "a/one"),
        ("put the question on its own line in the dialog", "a/one"),
        ("the summary of an order goes below the list", "a/one"),
    ],
)
def test_one_wish_is_for_everything_only_if_it_says_so_or_is_about_answers(words: str, scope: str) -> None:
    assert [entry.scope for entry in merge.merge([lesson(words, project="a/one", day=1)]).entries] == [scope]


def test_a_wish_for_all_projects_is_global_at_once() -> None:
    found = merge.merge([lesson("in all my projects: imperative commit messages")])

    assert [entry.scope for entry in found.entries] == ["global"]


def test_a_rule_stays_in_its_project_even_if_it_sounds_general() -> None:
    found = merge.merge([lesson("everywhere in this repo amounts are cents", kind="rule", project="a/one")])

    assert [entry.scope for entry in found.entries] == ["a/one"]


def test_checks_are_one_by_their_commands() -> None:
    one = lesson("verify with `pytest -q` (exit 0 here)", kind="verify", day=1)
    two = lesson("verify with `pytest -q` (exit 0)", kind="verify", day=2)
    other = lesson("verify with `npm test` (exit 0 here)", kind="verify", day=3)

    assert sorted(entry.support for entry in merge.merge([one, two, other]).entries) == [1, 2]


def test_a_fix_that_helped_twice_is_one() -> None:
    text = "`make e2e` failed (Error: no browser found); `CHROME=/usr/bin/chromium make e2e` worked (exit 0)"

    found = merge.merge([lesson(text, kind="fix", day=1), lesson(text, kind="fix", day=2)])

    assert [entry.support for entry in found.entries] == [2]


def test_the_same_lessons_make_the_same_entries_in_any_order() -> None:
    said = [
        "never push to main directly", "use tabs for indentation", "don't push straight to main", "answers in German",
        "indent with 4 spaces please", "keep answers short", "short replies please", "no new dependencies, ever",
    ]  # fmt: skip
    lessons = [lesson(words, day=day, project=f"p/{day % 3}") for day, words in enumerate(said)]
    expected = merge.merge(lessons)

    for seed in range(20):
        random.Random(seed).shuffle(lessons)
        assert merge.merge(lessons) == expected


def test_facts_about_two_things_stand_beside_each_other() -> None:
    one = lesson("the api listens on port 8080", kind="environment", day=1)
    two = lesson("the web server listens on port 3000", kind="environment", day=2)

    assert len(merge.merge([one, two]).entries) == 2


def test_two_rules_of_one_session_do_not_take_each_others_place() -> None:
    first = lesson("commit messages in English", day=1)
    second = msgspec.structs.replace(lesson("comments are in German, commit messages too", day=1), place=1)

    assert len(merge.merge([first, second]).entries) == 2
