"""Lessons about commands are chosen from all sessions of a project, and each session that shows one teaches it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from made_sessions import edit, ran, session, user

from commonplace.learning.commands.runs import runs_of
from commonplace.learning.consolidate.command_lessons import ProjectRuns, command_lessons, decoded, roots_of
from commonplace.memory.lessons import SessionLesson

PROJECT = "example.org/acme/shop"


def stored(*commands: str) -> dict[str, Any]:
    """Return what a row stores of a session that ran some commands."""
    return msgspec.to_builtins(runs_of(session(user("go on"), edit(), *map(ran, commands))))


def runs(thread: str, *commands: str, project: str = PROJECT) -> ProjectRuns:
    found = decoded(project, thread, stored(*commands))
    assert found is not None
    return found


def taught(*sessions: ProjectRuns) -> list[SessionLesson]:
    return list(command_lessons(sessions))


def test_each_session_that_shows_a_command_teaches_it() -> None:
    found = taught(runs("a", "make test"), runs("b", "make lint"), runs("c", "make test"))

    assert [("a", "Tests: `make test`"), ("c", "Tests: `make test`")] == [
        (each.thread_id, each.text) for each in found if "make test" in each.text
    ]


def test_a_lesson_has_the_source_of_its_session_alone() -> None:
    for each in taught(runs("a", "make test"), runs("b", "make test")):
        (source,) = each.sources
        assert each.thread_id == source.thread_id
        assert ("make test", "shown by a command") == (source.quote, source.how)
        assert (200, 299) == (source.byte_start, source.byte_end)


def test_what_is_told_is_likely_and_the_rest_a_candidate() -> None:
    found = {each.text: each.confidence for each in taught(runs("a", "make test", "make deploy"))}

    assert {"Tests: `make test`": 0.9, "Deploy: `make deploy`": 0.3} == found


def test_projects_do_not_mix() -> None:
    found = taught(runs("a", "make test"), runs("b", "npm test", project="example.org/acme/site"))

    assert [("example.org/acme/shop", "make test"), ("example.org/acme/site", "npm test")] == [
        (each.project, *each.commands) for each in found
    ]


def test_the_order_of_sessions_does_not_change_the_lessons() -> None:
    sessions = [runs("a", "make test", "make lint"), runs("b", "pytest"), runs("c", "make test")]

    assert taught(*sessions) == taught(*sessions[::-1])


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ([], []),
        (["/home/ada/shop"], ["/home/ada/shop"]),
        (["/home/ada/shop/api", "/home/ada/shop", "/home/ada/shop"], ["/home/ada/shop"]),
        (["/home/ada/shop", "/home/ada/shop-two"], ["/home/ada/shop", "/home/ada/shop-two"]),
        (["", "/srv/b", "/srv/a"], ["/srv/a", "/srv/b"]),
    ],
)
def test_roots_are_the_folders_that_lie_in_no_other(folders: list[str], expected: list[str]) -> None:
    assert expected == roots_of(folders)


def test_runs_are_those_of_the_thread_that_stores_them() -> None:
    assert "b" == runs("b", "make test").runs.thread_id


@pytest.mark.parametrize(
    "changes",
    [{"runs": [{"role": "quantum"}]}, {"calls": "many"}, {"troubles": [{"sort": 1}]}, {"cwd": None}],
    ids=["a role of tomorrow", "another type", "another shape", "no folder"],
)
def test_runs_of_a_newer_version_are_passed_over(changes: dict[str, Any]) -> None:
    assert decoded(PROJECT, "a", {**stored("make test"), **changes}) is None


def test_fields_of_a_newer_version_are_passed_over() -> None:
    found = decoded(PROJECT, "a", {**stored("make test"), "weather": "fine"})

    assert found == decoded(PROJECT, "a", stored("make test"))


def test_a_session_without_commands_has_no_runs() -> None:
    assert decoded(PROJECT, "a", {}) is None
