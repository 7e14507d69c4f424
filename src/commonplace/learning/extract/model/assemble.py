"""From what a model told and the checks left to what is stored of a session."""

from __future__ import annotations

import msgspec

from commonplace.learning.commands.runs import runs_of
from commonplace.learning.extract.model.trust import VerifiedSession
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory.lessons import SessionLessons


def session_lessons(view: SessionView, session: VerifiedSession, reader: str) -> SessionLessons:
    """Return what a session taught, as `reader` told it; without a task if that is nothing."""
    if session.is_empty:
        return SessionLessons(tasks=(), reader=reader, refused=session.refused)
    return SessionLessons(
        tasks=session.tasks,
        project=view.project,
        cwd=view.cwd,
        branch=view.branch or "",
        started=view.started,
        source=view.source,
        reader=reader,
        title=session.title,
        keywords=session.keywords,
        slug=session.slug,
        runs=msgspec.to_builtins(runs_of(view)),
        dialogue_bytes=view.dialogue_bytes(),
        spoken_bytes=view.spoken_bytes(),
        refused=session.refused,
    )
