"""What the slices of one session taught, as one: tasks that go on are one task, a thing is told once, the later holds.

Slices are in the order of the session. Lessons of different slices are compared as consolidation compares them: what
means the same becomes one lesson with the evidence of both, where it was first told; of two wishes of the person that
contradict each other the later one stays. What one slice says is left as it is.
"""

from __future__ import annotations

import msgspec

from commonplace.learning.consolidate import command_similarity
from commonplace.learning.extract.model.trust import VerifiedSession
from commonplace.memory import lessons, similarity
from commonplace.memory.entries import SECTION_OF
from commonplace.memory.lessons import Lesson, SessionLesson, SessionLessons, TaskLessons


def merge(slices: list[VerifiedSession]) -> VerifiedSession:
    """Return what the slices of a session taught together."""
    refused = tuple(line for each in slices for line in each.refused)
    told = [each for each in slices if not each.is_empty]
    if len(told) <= 1:
        return msgspec.structs.replace(told[0] if told else VerifiedSession(), refused=refused)
    kept = _once([[task.lessons for task in each.tasks] for each in told])
    tasks: dict[str, TaskLessons] = {}
    for number, each in enumerate(told):
        for place, task in enumerate(each.tasks):
            _join(tasks, msgspec.structs.replace(task, lessons=kept[number][place]))
    return VerifiedSession(
        title="; ".join(dict.fromkeys(each.title for each in told if each.title)),
        keywords=tuple(dict.fromkeys(word for each in told for word in each.keywords)),
        slug=next((each.slug for each in told if each.slug), None),
        tasks=tuple(tasks.values()),
        refused=refused,
    )


def _join(tasks: dict[str, TaskLessons], task: TaskLessons) -> None:
    """Add a task, or let one that was begun in an earlier slice go on: how it ended is told by the later one."""
    key = " ".join(task.name.lower().split())
    known = tasks.get(key)
    if known is not None:
        task = msgspec.structs.replace(known, outcome=task.outcome, lessons=(*known.lessons, *task.lessons))
    tasks[key] = task


class _KeptLesson(msgspec.Struct):
    number: int
    place: int
    lesson: Lesson
    compared: SessionLesson


def _once(slices: list[list[tuple[Lesson, ...]]]) -> list[list[tuple[Lesson, ...]]]:
    """Return the lessons of each task of each slice, without those that another slice says again or otherwise."""
    kept: list[_KeptLesson] = []
    for number, tasks in enumerate(slices):
        fresh = [_KeptLesson(number, place, each, _compared(each)) for place, own in enumerate(tasks) for each in own]
        for new in fresh:
            same = next((old for old in kept if old.number != number and _is_same(old, new)), None)
            if same is not None:
                same.lesson = _with_evidence(same.lesson, new.lesson)
                continue
            kept = [old for old in kept if old.number == number or not _is_otherwise(old, new)]
            kept.append(new)
    return [
        [
            tuple(each.lesson for each in kept if (each.number, each.place) == (number, place))
            for place in range(len(tasks))
        ]
        for number, tasks in enumerate(slices)
    ]


def _compared(lesson: Lesson) -> SessionLesson:
    """Return a lesson as consolidation would read it."""
    session = SessionLessons(tasks=(TaskLessons("", "", (lesson,)),))
    return lessons.session_lessons(session, project="", thread_id="", updated_s=0)[0]


def _is_same(old: _KeptLesson, new: _KeptLesson) -> bool:
    one, two = old.compared, new.compared
    if SECTION_OF[one.kind] != SECTION_OF[two.kind]:
        return False
    if one.text == two.text:
        return True
    if bool(one.lead) != bool(two.lead):
        return False
    if one.lead:
        return similarity.is_same(similarity.words(one.words), similarity.words(two.words))
    return command_similarity.is_same(one, two)


def _is_otherwise(old: _KeptLesson, new: _KeptLesson) -> bool:
    """Say whether the person took back what they said before."""
    one, two = old.compared, new.compared
    if not one.lead or not two.lead:
        return False
    return similarity.clash(similarity.words(one.words), similarity.words(two.words))


def _with_evidence(old: Lesson, new: Lesson) -> Lesson:
    return msgspec.structs.replace(old, evidence=tuple(dict.fromkeys((*old.evidence, *new.evidence))))
