"""One session: read from its ledger, extracted, and without secrets and what a person asked to forget.

What a person asked to forget is taken out before a session is read, and once more out of what an extractor says; so are
secrets.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Protocol, runtime_checkable

import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError
from commonplace.learning.extract import rules
from commonplace.learning.reading.project_evidence import evidence_of
from commonplace.learning.reading.session_view import ModelText, SessionView, UserText, read
from commonplace.memory.edits import removal
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.files import lesson_text
from commonplace.projects.evidence import FolderEvidence
from commonplace.state.outputs import Output


class Extractor(Protocol):
    """Reads a session and returns what it taught."""

    name: str

    async def extract(self, view: SessionView) -> Output:
        """Return what a session taught; empty texts if nothing."""
        ...


@runtime_checkable
class LastTryExtractor(Protocol):
    """An extractor that behaves differently in the last try of a session."""

    async def extract_last(self, view: SessionView) -> Output:
        """Return what a session taught, knowing that there will be no other try."""
        ...


class SessionReading(msgspec.Struct, frozen=True):
    """What came of reading a session."""

    output: Output
    """What it taught."""
    evidence: FolderEvidence
    """What it tells about the project of its folder."""


def extract_embedded(path: Path, project: str, forgotten: Forgotten) -> SessionReading | str:
    """Return what the embedded extractor makes of a session, or why it cannot; errors do not travel well.

    Its many small values hold no cycles worth a search while it runs; the collector of cycles comes in after it.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        view = _read(path, forgotten, quotes_tools=False)
        view.project = project
        found = removal.output(lesson_text.redacted(rules.extract(view)), forgotten)
        return SessionReading(found, evidence_of(view))
    except CommonplaceError as error:
        return error.sentence()
    except OSError as error:
        return f"{path}: {error.strerror}."
    finally:
        if collects:
            gc.enable()


async def extract_session(
    extractor: Extractor, path: Path, project: str, forgotten: Forgotten, *, is_last: bool = False
) -> Output:
    """Return what a session taught, without secrets and without what a person asked to forget."""
    return (await read_session(extractor, path, project, forgotten, is_last=is_last)).output


async def read_session(
    extractor: Extractor, path: Path, project: str, forgotten: Forgotten, *, is_last: bool
) -> SessionReading:
    """Return what a session taught, and what it tells about its folder; `is_last` says that there is no other try."""
    view = await anyio.to_thread.run_sync(_read, path, forgotten)
    view.project = project
    last = extractor.extract_last if is_last and isinstance(extractor, LastTryExtractor) else None
    found = removal.output(lesson_text.redacted(await (last or extractor.extract)(view)), forgotten)
    return SessionReading(found, await anyio.to_thread.run_sync(evidence_of, view))


def _read(path: Path, forgotten: Forgotten, *, quotes_tools: bool = True) -> SessionView:
    view = read(path, quotes_tools=quotes_tools)
    _mask(view, forgotten)
    return view


def _mask(view: SessionView, forgotten: Forgotten) -> None:
    """Take forgotten sentences out of a session before an extractor reads it."""
    if not forgotten:
        return
    for turn in view.turns:
        for event in turn.events:
            if isinstance(event, UserText | ModelText):
                event.text = forgotten.without_forgotten(event.text)
        words = [event for event in turn.events if isinstance(event, UserText | ModelText)]
        is_only_talk = len(words) == len(turn.events)
        if is_only_talk and not any(isinstance(event, UserText) and event.text for event in words):
            turn.events = []  # an answer to nothing would be taken for the beginning of something
        turn.events = [event for event in turn.events if not isinstance(event, UserText | ModelText) or event.text]
