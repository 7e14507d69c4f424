"""From what a model told and the checks left to lessons; a bullet's words are read once, here."""

from __future__ import annotations

import msgspec

from commonplace.learning.commands.runs import runs_of
from commonplace.learning.extract.model.verified import VerifiedBullet, VerifiedSession, VerifiedTask
from commonplace.learning.reading.findings import FindingEvidence
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory import lessons
from commonplace.memory.files.lesson_parser import lesson_of
from commonplace.memory.lessons import Lesson, SessionLessons, SummaryLine, TaskLessons


def session_lessons(view: SessionView, session: VerifiedSession, reader: str) -> SessionLessons:
    """Return what a session taught, as `reader` told it; without a task if that is nothing."""
    if not any(task.memory_bullets for task in session.tasks):
        return SessionLessons(tasks=())
    return SessionLessons(
        tasks=tuple(_task(task) for task in session.tasks),
        project=view.project,
        cwd=session.cwd or view.cwd,
        branch=view.branch or "",
        started=view.started,
        source=view.source,
        reader=reader,
        title=session.title,
        context=session.context,
        description=session.description,
        keywords=tuple(session.keywords),
        slug=session.slug,
        runs=msgspec.to_builtins(runs_of(view)),
        dialogue_bytes=view.dialogue_bytes(),
        spoken_bytes=view.spoken_bytes(),
    )


def _task(task: VerifiedTask) -> TaskLessons:
    summary = tuple(SummaryLine(each.section, each.text, _evidence(each.evidence)) for each in task.summary_bullets)
    return TaskLessons(task.name, task.outcome, tuple(map(lesson, task.memory_bullets)), summary=summary)


def lesson(learned: VerifiedBullet) -> Lesson:
    """Return a bullet as a lesson."""
    return lesson_of(learned.section, learned.text, _evidence(learned.evidence))


def _evidence(evidence: tuple[FindingEvidence, ...]) -> tuple[lessons.Evidence, ...]:
    return tuple(lessons.Evidence(each.at.turn, each.at.start, each.at.end, each.quote, each.how) for each in evidence)
