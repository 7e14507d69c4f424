"""What the slices of one session taught, as one: tasks that go on are one task, a thing is told once, the later holds.

Slices are in the order of the session. Bullets of different slices are compared as consolidation compares lessons: what
means the same becomes one bullet with the evidence of both, where it was first told; of two wishes of the person that
contradict each other the later one stays. What one slice says is left as it is.
"""

from __future__ import annotations

import msgspec

from commonplace.learning.consolidate import command_similarity
from commonplace.learning.extract.model import assemble
from commonplace.learning.extract.model.drafts import STEPS
from commonplace.learning.extract.model.verified import VerifiedBullet, VerifiedSession, VerifiedTask
from commonplace.memory import lessons, similarity
from commonplace.memory.lessons import SessionLesson, SessionLessons, TaskLessons


def merge(slices: list[VerifiedSession]) -> VerifiedSession:
    """Return what the slices of a session taught together."""
    told = [each for each in slices if not each.is_empty]
    if len(told) <= 1:
        return told[0] if told else VerifiedSession()
    learned = _once([[task.memory_bullets for task in each.tasks] for each in told])
    summed = _once([[task.summary_bullets for task in each.tasks] for each in told])
    tasks: dict[str, VerifiedTask] = {}
    for number, each in enumerate(told):
        for place, task in enumerate(each.tasks):
            _join(
                tasks,
                msgspec.structs.replace(
                    task, memory_bullets=learned[number][place], summary_bullets=summed[number][place]
                ),
            )
    return VerifiedSession(
        title="; ".join(dict.fromkeys(each.title for each in told if each.title)),
        context=" ".join(dict.fromkeys(each.context for each in told if each.context)),
        cwd=next((each.cwd for each in told if each.cwd), ""),
        keywords=list(dict.fromkeys(word for each in told for word in each.keywords)),
        slug=next((each.slug for each in told if each.slug), None),
        tasks=list(tasks.values()),
    )


def _join(tasks: dict[str, VerifiedTask], task: VerifiedTask) -> None:
    """Add a task, or let one that was begun in an earlier slice go on: how it ended is told by the later one."""
    key = " ".join(task.name.lower().split())
    known = tasks.get(key)
    if known is None:
        tasks[key] = task
        return
    known.outcome = task.outcome
    known.memory_bullets = [*known.memory_bullets, *task.memory_bullets]
    known.summary_bullets = [*known.summary_bullets, *task.summary_bullets]


class _KeptBullet(msgspec.Struct):
    number: int
    place: int
    learned: VerifiedBullet
    lesson: SessionLesson | None


def _once(slices: list[list[list[VerifiedBullet]]]) -> list[list[list[VerifiedBullet]]]:
    """Return the bullets of each task of each slice, without those that another slice says again or otherwise."""
    kept: list[_KeptBullet] = []
    for number, tasks in enumerate(slices):
        fresh: list[_KeptBullet] = []
        for place, bullets in enumerate(tasks):
            fresh += [_KeptBullet(number, place, each, _lesson(each)) for each in bullets]
        for new in fresh:
            same = next((old for old in kept if old.number != number and _is_same(old, new)), None)
            if same is not None:
                same.learned = _with_evidence(same.learned, new.learned)
                continue
            kept = [old for old in kept if old.number == number or not _is_otherwise(old, new)]
            kept.append(new)
    return [
        [[each.learned for each in kept if (each.number, each.place) == (number, place)] for place in range(len(tasks))]
        for number, tasks in enumerate(slices)
    ]


def _lesson(learned: VerifiedBullet) -> SessionLesson | None:
    """Return a bullet as consolidation would read it; steps are no lessons."""
    if learned.section == STEPS:
        return None
    task = TaskLessons("", "", (assemble.lesson(learned),))
    return lessons.session_lessons(SessionLessons(tasks=(task,)), project="", thread_id="", updated_s=0)[0]


def _is_same(old: _KeptBullet, new: _KeptBullet) -> bool:
    if old.learned.section != new.learned.section:
        return False
    if old.learned.text == new.learned.text:
        return True
    one, two = old.lesson, new.lesson
    if one is None or two is None or bool(one.lead) != bool(two.lead):
        return False
    if one.lead:
        return similarity.is_same(similarity.words(one.words), similarity.words(two.words))
    return command_similarity.is_same(one, two)


def _is_otherwise(old: _KeptBullet, new: _KeptBullet) -> bool:
    """Say whether the person took back what they said before."""
    one, two = old.lesson, new.lesson
    if one is None or two is None or not one.lead or not two.lead:
        return False
    return similarity.clash(similarity.words(one.words), similarity.words(two.words))


def _with_evidence(old: VerifiedBullet, new: VerifiedBullet) -> VerifiedBullet:
    return msgspec.structs.replace(old, evidence=tuple(dict.fromkeys((*old.evidence, *new.evidence))))
