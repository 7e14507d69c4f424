"""What several people taught: a crowd makes a rule of a project, nobody's wish takes the place of another's."""

from __future__ import annotations

import msgspec
import pytest
from taught import lesson

from commonplace.learning.consolidate import merge
from commonplace.memory.entries import Kind
from commonplace.memory.lessons import SessionLesson
from commonplace.projects.people import Person

SAME = "never push to main directly"
ONE, TWO = "a/one", "b/two"


def by(person: str, words: str = SAME, project: str = ONE, day: int = 1, kind: Kind = "preference") -> SessionLesson:
    made = lesson(words, kind=kind, project=project, day=day)
    return msgspec.structs.replace(
        made,
        thread_id=f"{person} {project} {day}",
        sources=tuple(msgspec.structs.replace(each, thread_id=f"{person} {project} {day}") for each in made.sources),
    )


def merged(*lessons: SessionLesson) -> list[tuple[str, str, list[str]]]:
    """Return scope, kind and people of each entry."""
    people = {each.thread_id: Person(each.thread_id.split()[0]) for each in lessons}
    found = merge.merge(lessons, people=people).entries
    return sorted((each.scope, each.kind, sorted(person.name for person in each.people)) for each in found)


CASES = {
    "one person in two projects has a wish for all": (
        [by("ana"), by("ana", project=TWO)],
        [("global", "preference", ["ana"])],
    ),
    "three people in one project make a rule of it": (
        [by("ana"), by("ben", day=2), by("cam", day=3)],
        [(ONE, "rule", ["ana", "ben", "cam"])],
    ),
    "one person in three sessions does not": (
        [by("ana", day=day) for day in (1, 2, 3)],
        [(ONE, "preference", ["ana"])],
    ),
    "a crowd in one project and one person elsewhere": (
        [by("ana"), by("ben", day=2), by("cam", day=3), by("dee", project=TWO, day=4)],
        [(ONE, "rule", ["ana", "ben", "cam"]), (TWO, "preference", ["dee"])],
    ),
    "wishes of two people that contradict both stay": (
        [by("ana", "use tabs for indentation"), by("ben", "indent with 4 spaces please", day=3)],
        [(ONE, "preference", ["ana"]), (ONE, "preference", ["ben"])],
    ),
    "of one person's wishes the newest holds": (
        [by("ana", "use tabs for indentation"), by("ana", "indent with 4 spaces please", day=3)],
        [(ONE, "preference", ["ana"])],
    ),
    "of two people's rules the newest holds": (
        [
            by("ana", "use tabs for indentation in this repo", kind="rule"),
            by("ben", "indent with 4 spaces in this repo", day=3, kind="rule"),
        ],
        [(ONE, "rule", ["ben"])],
    ),
}


@pytest.mark.parametrize(("lessons", "expected"), CASES.values(), ids=CASES)
def test_what_people_taught(lessons: list[SessionLesson], expected: list[tuple[str, str, list[str]]]) -> None:
    assert merged(*lessons) == expected
    assert merged(*reversed(lessons)) == expected
