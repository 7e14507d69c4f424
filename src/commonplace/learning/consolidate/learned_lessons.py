"""What consolidation works with: the lessons of all sessions, less what was forgotten or dropped, and notes, merged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from commonplace.config import MemorySettings
from commonplace.learning.consolidate import judged, merge
from commonplace.learning.consolidate.command_lessons import command_lessons, decoded
from commonplace.learning.consolidate.entry_edits import EntryEdits
from commonplace.learning.consolidate.judged import TaughtSession
from commonplace.memory import similarity
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.edits.notes import Note
from commonplace.memory.entries import CANDIDATE, GLOBAL, LISTED, MODEL_NOTE, TOLD, Entry, Source
from commonplace.memory.files import lesson_parser, validation
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.injection import is_injection
from commonplace.memory.lessons import SessionLesson, session_lessons
from commonplace.patterns import regex
from commonplace.projects.people import Person
from commonplace.redact import redact
from commonplace.rollout.decisions import Review

_DAY: Final = 86_400
_HABIT: Final = 3
"""What was asked for in so many sessions is a habit."""
_PRIOR: Final = 4
"""So many reviews of each kind are supposed to have been made before the first one."""
_LINKED: Final = regex(r"!?\[([^\[\]]*)\]\(\s*([^)\s]{1,500}+)[^)]{0,500}\)")
_ADDRESS: Final = regex(r"<(https?://[^<>\s]+)>")
_TASK_MARK: Final = regex(r"\[Task (\d+)\]")
_SKILL_FILE: Final = regex(r"skills/([\w./-]{1,200})/SKILL\.md")


class ConsolidationInput(msgspec.Struct):
    """The input of a consolidator: a staged workspace, and what is known besides its files."""

    root: Path
    inputs: list[RawMemory]
    projects: dict[str, str]
    """The project of each thread."""
    notes: list[Note]
    forgotten: Forgotten
    pinned: set[str]
    owned: set[str]
    """Files that a person made theirs."""
    is_kept: bool = False
    """Somebody else wrote the memory that is there: only what changed beneath it is touched."""
    accepted: Path | None = None
    """The workspace as people read it now."""
    settled: set[str] = set()
    """Threads whose last consolidation had what they taught, just as it is: of a kept memory they are part."""
    hidden: set[str] = set()
    """Entries that the memory holds and its file had no room for."""
    reviews: dict[str, Review] = {}
    """What a person decided about single entries."""
    edits: EntryEdits = EntryEdits()
    """What a model changed in entries before."""
    memory: MemorySettings = MemorySettings()
    """The settings of the memory: how large its files may be."""
    people: Mapping[str, Person] = {}
    """Whose each session (by its thread) and each note (by its path) is, in a memory that several homes share."""

    @property
    def dropped(self) -> set[str]:
        """The entries that a person dropped when they reviewed them; a note that says the same counts more."""
        return {name for name, review in self.reviews.items() if not review.is_kept}

    @property
    def filed(self) -> list[RawMemory]:
        """The inputs whose texts are files of the workspace."""
        return [each for each in self.inputs if each.has_text]


def lessons_of(material: ConsolidationInput) -> tuple[merge.MergedLessons, list[SessionLesson]]:
    """Return what lessons and notes make, and the lessons of sessions."""
    sessions = list(_sessions(material))
    learned = [
        lesson
        for lesson in (*judged.judged(sessions), *command_lessons(each.runs for each in sessions if each.runs))
        if (lesson.confidence >= CANDIDATE or lesson.is_request)
        and not _is_forgotten(lesson, material.forgotten)
        and not validation.is_unfit(lesson.text)
        and _is_somebodys(lesson)
    ]
    noted = [_lesson(note) for note in material.notes if note.action != "forget" and _holds(note, material.forgotten)]
    usable = [lesson for lesson in noted if lesson.words and not validation.is_unfit(lesson.text)]
    merged = merge.merge(_unchanged(learned + usable, material.notes), people=material.people)
    merged.entries = [each for entry in merged.entries if (each := habit(entry)) is not None]
    dropped = material.dropped - {entry.id for entry in merged.entries if entry.is_by_hand}
    merged.dropped = [entry for entry in merged.entries if entry.id in dropped]
    merged.entries = [entry for entry in merged.entries if entry.id not in dropped]
    newest = max((entry.last_seen_s for entry in merged.entries), default=0)
    odds = _odds(material.reviews.values())
    told = {each.thread_id for each in material.filed} | {note.path for note in material.notes}
    for entry in merged.entries:
        entry.pinned = entry.id in material.pinned
        entry.is_stale = entry.last_seen_s < newest - material.memory.max_unused_days * _DAY
        entry.odds = odds.get(entry.kind, 0.0)
        if entry.id in material.reviews:
            entry.confidence = 1.0
        elif not entry.is_by_hand and told.isdisjoint(source.note or source.thread_id for source in entry.sources):
            entry.confidence = min(entry.confidence, CANDIDATE)  # no file tells of a session that it rests on
        elif material.memory.review and not entry.is_by_hand:
            entry.confidence = min(entry.confidence, CANDIDATE)
    return merged, learned


def habit(entry: Entry) -> Entry | None:
    """Return an entry; what is likely of the moment only if it was asked for in several sessions, as a candidate."""
    if entry.confidence >= CANDIDATE or entry.is_by_hand:
        return entry
    sessions = _sessions_of_one(entry)
    if sessions < _HABIT:
        return None
    return msgspec.structs.replace(entry, text=f"asked for in {sessions} sessions: {entry.text}", confidence=CANDIDATE)


def _sessions_of_one(entry: Entry) -> int:
    """Return in how many sessions one person taught it; where nobody is known, in how many there were."""
    if not entry.people:
        return entry.support
    taught: dict[str, set[str]] = {}
    for source in entry.sources:
        if source.person is not None:
            taught.setdefault(source.person.key, set()).add(source.note or source.thread_id or "")
    return max(len(sessions) for sessions in taught.values())


def _odds(reviews: Iterable[Review]) -> dict[str, float]:
    """Return how much likelier entries of each kind were kept than dropped, as log odds."""
    kept, dropped = Counter[str](), Counter[str]()
    for review in reviews:
        (kept if review.is_kept else dropped)[review.entry_kind] += 1
    return {kind: math.log((kept[kind] + _PRIOR) / (dropped[kind] + _PRIOR)) for kind in {*kept, *dropped}}


def _sessions(material: ConsolidationInput) -> Iterator[TaughtSession]:
    """Yield what each session taught, how the person wrote in it, and the commands that ran."""
    for each in material.inputs:
        project = material.projects.get(each.thread_id) or each.cwd
        session = lesson_parser.session_of(each)
        runs = decoded(project, each.thread_id, session.runs)
        own = session_lessons(session, project=project, thread_id=each.thread_id, updated_s=each.updated_s)
        if runs is not None:  # lessons about commands are chosen anew from all sessions
            own = [lesson for lesson in own if not lesson.role]
        known = material.people.get(each.thread_id)
        yield TaughtSession(each.thread_id, each.cwd, own, session.sentences, runs, known)


def _is_somebodys(lesson: SessionLesson) -> bool:
    """Say whether somebody is known to have said what a lesson asks for; others' extractors may not tell."""
    if lesson.kind not in ("preference", "rule"):
        return True
    said = [source.how for source in lesson.sources] or [lesson.lead]
    return any("user" in how.lower() for how in said)


def _is_forgotten(lesson: SessionLesson, forgotten: Forgotten) -> bool:
    if not forgotten:
        return False
    return lesson.words in forgotten or any(source.quote in forgotten for source in lesson.sources[:1])


def _holds(note: Note, forgotten: Forgotten) -> bool:
    """Say whether a note still counts: it was not forgotten since it was written."""
    when = forgotten.forgotten_at(note.text)
    return (when is None or when < note.seconds) and not is_injection(note.text)


def _unchanged(lessons: list[SessionLesson], notes: list[Note]) -> list[SessionLesson]:
    """Return the lessons that no note changed or asked to forget; what means the same as one of those goes with it."""
    gone = [(similarity.words(note.target or note.text), note) for note in notes if note.action != "remember"]
    if not gone:
        return lessons
    kept: list[SessionLesson] = []
    for together in merge.clusters(lessons):
        meant = [note for words, note in gone if any(_may_take(note, each, words) for each in together)]
        kept += [each for each in together if not any(_is_older(each, note) for note in meant)]
    return kept


def _may_take(note: Note, lesson: SessionLesson, words: similarity.ComparedWords) -> bool:
    return _is_older(lesson, note) and _is_meant(lesson, words, note.target or note.text)


def _is_older(lesson: SessionLesson, note: Note) -> bool:
    """Say whether a lesson is one that a note may take away: learned before it, where it holds, and not its own."""
    is_own = lesson.thread_id == note.path
    if note.by_model and any(source.how != MODEL_NOTE for source in lesson.sources):
        return False  # a model has no say about what a person wants
    return not is_own and lesson.updated_s <= note.seconds and note.scope in (GLOBAL, lesson.project)


def _is_meant(lesson: SessionLesson, words: similarity.ComparedWords, text: str) -> bool:
    """Say whether a note names a lesson: by its words, or by most of them."""
    return text.lower() in lesson.text.lower() or similarity.is_same(similarity.words(lesson.words), words)


def _fitting(text: str) -> str:
    """Return a person's words as the memory's files may hold them, without marks that could be taken for structure."""
    text = _TASK_MARK.sub(r"Task \1", _ADDRESS.sub(r"\1", _LINKED.sub(r"\1: \2", text)))
    return _SKILL_FILE.sub(r"skills/\1", text.replace("**", "")).strip(" -*")


def _lesson(note: Note) -> SessionLesson:
    text = _fitting(redact(note.text))
    if note.by_model:
        source = Source(text, MODEL_NOTE, None, updated_s=note.seconds, note=note.path)
        noted = 'noted by a model: "{}"'.format(text.replace('"', "'"))  # quotes in it could seem to end what it says
        return SessionLesson(
            "environment",
            noted,
            noted,
            "",
            "",
            note.scope.replace(";", ","),
            note.path,
            note.seconds,
            0,
            "",
            "",
            (source,),
            confidence=TOLD if note.is_allowed else LISTED,
        )
    source = Source(text, "written by the user", None, updated_s=note.seconds, note=note.path)
    scope = note.scope.replace(";", ",")
    kind = "rule" if scope != GLOBAL else "preference"
    said = f'said by the user: "{text}"'
    return SessionLesson(kind, said, text, "", "said by the user", scope, note.path, note.seconds, 0, "", "", (source,))
