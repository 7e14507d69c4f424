"""Habits: an order of the moment that comes up in three sessions is a candidate that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.learning.consolidate import learned_lessons
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory import lessons
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import CANDIDATE, Entry
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.lessons import (
    Evidence,
    JudgeInput,
    JudgeSums,
    Lesson,
    SessionLessons,
    TaskLessons,
    WritingSample,
)

SAID = "open a draft pr"


def session(number: int) -> RawMemory:
    sample = WritingSample(-2.0, 1.6, ("draft",), is_request=True)
    order = Lesson(
        kind="preference",
        words=SAID,
        lead="said by the user",
        evidence=(Evidence(1, 10, 90, SAID, "said by the user"),),
        confidence=0.1,
        judged=JudgeInput(JudgeSums((-9.0, -9.0, -9.0), -9.0), sample),
    )
    stored = lessons.encode(SessionLessons(tasks=(TaskLessons("t", "success", (order,)),), sentences=(sample,)))
    thread = f"0198c0de-0000-7000-8000-{number:012}"
    return RawMemory(thread, 100 + number, "/home/ada/shop", "/p", None, "", "", None, stored)


def entries(tmp_path: Path, count: int) -> list[Entry]:
    found = [session(number) for number in range(count)]
    projects = {each.thread_id: "example.org/acme/shop" for each in found}
    material = ConsolidationInput(tmp_path, found, projects, [], Forgotten([]), set(), set())
    return learned_lessons.lessons_of(material)[0].entries


@pytest.mark.parametrize("count", [1, 2])
def test_an_order_of_one_or_two_sessions_is_nothing(tmp_path: Path, count: int) -> None:
    assert entries(tmp_path, count) == []


def test_an_order_of_three_sessions_is_a_candidate_that_says_so(tmp_path: Path) -> None:
    (habit,) = entries(tmp_path, 3)

    assert (habit.text, habit.confidence) == (f'asked for in 3 sessions: "{SAID}"', CANDIDATE)
    assert (habit.is_listed, habit.support) == (False, 3)
