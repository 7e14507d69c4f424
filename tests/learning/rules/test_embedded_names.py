"""Names of tasks: the clause that asks, or what was done; never small talk."""

from __future__ import annotations

import pytest
from made_sessions import edit, model, ran, session, user

from commonplace.learning.reading import tasks
from commonplace.learning.reading.session_view import ViewEvent


def name(*events: ViewEvent) -> str:
    return tasks.cut(session(*events))[0].name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add a retry to the uploader", "add a retry to the uploader"),
        ("hi! please add a retry, my boss is angry today", "add a retry"),
        ("restore yesterday's dump into my local db", "restore dump into my local db"),
        ("so the customer called again, totals are off by a cent", "totals are off by a cent"),
        ('add a field "reference" to the ticket', "add a field to the ticket"),
        ("the import fails since 11:40. I have three meetings", "the import fails"),
        ("kannst du bitte das Menü reparieren, ich hab nur 20 Minuten", "kannst du das Menü reparieren"),
        ("帮我把依赖装上，跑一下测试", "帮我把依赖装上"),
    ],
)
def test_a_name_is_the_clause_that_asks(text: str, expected: str) -> None:
    assert expected == name(user(text), edit())


@pytest.mark.parametrize("text", ["too cold", "ignore the noise, kids are home", "lovely, aunt Winnie is there twice"])
def test_where_nothing_asks_the_name_tells_what_was_done(text: str) -> None:
    assert "work on main.py" == name(user(text), edit())


def test_without_changes_the_name_tells_what_was_run() -> None:
    assert "run pytest" == name(user("hmm hmm hmm"), ran("pytest -q"))


def test_a_secret_is_in_no_name() -> None:
    found = name(user("use the api key: token is abcdefgh12345 and deploy it. then fix the footer"), edit())

    assert "abcdefgh12345" not in found
    assert "fix the footer" == found


@pytest.mark.parametrize(
    "text",
    ["ignore the noise, kids are home today", "too cold", "one sec, phone", "hm, lovely weather by the sea over here"],
)
def test_a_remark_that_asks_for_nothing_begins_no_task(text: str) -> None:
    found = tasks.cut(session(user("add a retry to the uploader"), edit(), model(), user(text), edit()))

    assert 1 == len(found)


def test_an_answer_to_a_question_begins_no_task() -> None:
    found = tasks.cut(
        session(
            user("add an alert for low disk space"),
            edit(),
            model("Should I write the tests with jest or with node:test?"),
            user("node:test. i keep out every package i can"),
            edit("test.js"),
        )
    )

    assert 1 == len(found)


def test_what_comes_after_praise_and_leads_to_work_is_a_new_task() -> None:
    found = tasks.cut(
        session(
            user("package the extension"),
            ran("vsce package"),
            user("works, thanks"),
            user("do the rest"),
            ran("./all.sh"),
        )
    )

    assert 2 == len(found)
