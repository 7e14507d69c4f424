"""What several people taught: a crowd makes a rule of a project, nobody's wish takes the place of another's."""

from __future__ import annotations

import msgspec
import pytest
from taught import lesson

from commonplace.learning.consolidate import learned_lessons, merge
from commonplace.memory.entries import Entry, Kind, Source
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


def test_a_habit_is_one_persons() -> None:
    """What three people asked for once each is nobody's habit; what one of them asked for three times is theirs."""
    people = {name: Person(name) for name in ("ana", "ben", "cam")}

    def habit(*asked: str) -> str | None:
        sources = [Source(SAME, "said by the user", f"t{place}", person=people[who]) for place, who in enumerate(asked)]
        found = learned_lessons.habit(Entry("m1", ONE, "preference", SAME, len(asked), sources, 0, 0, confidence=0.1))
        return found.text if found is not None else None

    assert habit("ana", "ben", "cam") is None
    assert habit("ana", "ben", "ana", "ana") == f"asked for in 3 sessions: {SAME}"


@pytest.mark.parametrize(("lessons", "expected"), CASES.values(), ids=CASES)
def test_what_people_taught(lessons: list[SessionLesson], expected: list[tuple[str, str, list[str]]]) -> None:
    assert merged(*lessons) == expected
    assert merged(*reversed(lessons)) == expected
