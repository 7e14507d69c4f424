"""Lessons: what a session taught, as values from extraction to entry.

An extractor returns `SessionLessons`. Its JSON is stored in the session's row; `raw_memory` and `rollout_summary` are
rendered from it (`memory.files.lesson_text`), and consolidation reads the JSON back. Rows without it come from an older
version or from somebody else; `memory.files.lesson_parser` parses their Markdown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, cast

import msgspec

from commonplace.memory.entries import CANDIDATE, LISTED, SECTION_OF, SECTIONS, Kind, Source, normal

SaidScope = Literal["", "project", "everywhere"]
"""Whom something is for by what the person said, as a model understood it; empty if nobody read that."""


class Evidence(msgspec.Struct, frozen=True):
    """Where something was said or done in a session's ledger, and the exact words."""

    turn: int
    start: int
    end: int
    quote: str
    how: str
    """`said by the user`, `verified by exit status`, …: how far it can be trusted."""


class JudgeSums(msgspec.Struct, frozen=True, array_like=True):
    """What the models of a judge add up to for a sentence. Sums of parts of its features can be added."""

    heads: tuple[float, float, float] = (0.0, 0.0, 0.0)
    words: float = 0.0
    about: tuple[float, ...] = (0.0,) * 8
    """Whose it is (the person's above zero), then each kind."""

    def __add__(self, other: JudgeSums) -> JudgeSums:
        """Return the sums of both."""
        first, second, third = (one + two for one, two in zip(self.heads, other.heads, strict=True))
        about = tuple(one + two for one, two in zip(self.about, other.about, strict=True))
        return JudgeSums((first, second, third), self.words + other.words, about)


class WritingSample(msgspec.Struct, frozen=True, array_like=True):
    """How one sentence of a person is written; all of theirs together tell how they write and what they ask for."""

    hand: float
    """How much it looks like the prose of a machine."""
    size: float
    """Its length, as the judge sees it."""
    extras: tuple[str, ...] = ()
    """Stems of what it says beyond the bare words of requests about the flow of work."""
    is_request: bool = False


class JudgeInput(msgspec.Struct, frozen=True, array_like=True):
    """What a judge knows of a sentence before it knows the person: it is judged again when their sessions are known."""

    sums: JudgeSums
    sample: WritingSample
    stated: float = -3.0
    """The log odds that the sentence states in so many words what lasts."""
    outright: int = 0
    """How clearly its words say that it lasts: 2 for always and never, 1 for I prefer and we do not, 0 for neither."""


class Lesson(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a session taught: what somebody said (`words`), or what commands showed (`shown`)."""

    kind: Kind
    words: str = ""
    """What somebody said, in their own words."""
    stretch: str = ""
    """The words with the sentences around them."""
    lead: str = ""
    """How the words are known: `said by the user`, `decided by the user`, `said by the user after refusing …`."""
    default: str = ""
    """What to do by default because of it."""
    scope: SaidScope = ""
    shown: str = ""
    """What commands showed, as one sentence."""
    commands: tuple[str, ...] = ()
    """The commands that `shown` tells of, in order."""
    role: str = ""
    """The role of the command that it tells of; such lessons are chosen anew from all sessions of a project."""
    evidence: tuple[Evidence, ...] = ()
    confidence: float = 1.0
    """How likely it lasts, by what its session tells."""
    judged: JudgeInput | None = None
    """What it is judged by again when all sessions of the person are known."""

    @property
    def is_listed(self) -> bool:
        """Whether it is likely to last, by what its session tells."""
        return self.confidence >= LISTED

    @property
    def text(self) -> str:
        """The lesson as one line."""
        told = self.shown or f'{self.lead}: "{self.words}"'
        return told + (f" -> {self.default}" if self.default else "")


class RefusedLesson(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a model that its session does not bear out: a person may look at it."""

    kind: Kind
    text: str
    reason: str
    quote: str = ""
    turn: int = 0
    is_default: bool = False
    """Only what to do by default was refused; the lesson itself was kept."""


class TaskLessons(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task of a session, how it ended, and what it taught."""

    name: str
    outcome: str
    lessons: tuple[Lesson, ...] = ()
    steps: tuple[str, ...] = ()
    """The commands that worked, in order."""
    reason: str = ""
    """What the outcome rests on."""


class SessionLessons(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one session taught, and what its texts say about the session."""

    tasks: tuple[TaskLessons, ...]
    project: str = ""
    cwd: str = ""
    branch: str = ""
    started: str = ""
    source: str = ""
    reader: str = ""
    """Who read the session, if that was a model."""
    title: str = ""
    keywords: tuple[str, ...] = ()
    slug: str | None = None
    sentences: tuple[WritingSample, ...] = ()
    """Every sentence that the person wrote: the measure of how they write."""
    runs: dict[str, Any] = {}
    """The commands that ran (`learning.commands.runs`)."""
    dialogue_bytes: int = 0
    spoken_bytes: int = 0
    refused: tuple[RefusedLesson, ...] = ()
    """What a model said and the session does not bear out."""

    @property
    def has_text(self) -> bool:
        """Whether it may have taught something: it holds a candidate or more, or commands ran that others may run, too.

        Only such sessions have texts: they are what entries can rest on.
        """
        ran = any(self.runs.get(name) for name in ("runs", "landmarks", "troubles"))
        likely = any(lesson.confidence >= CANDIDATE for task in self.tasks for lesson in task.lessons)
        return bool(self.tasks) and (ran or likely)

    @property
    def is_empty(self) -> bool:
        """Whether it taught nothing at all."""
        return not self.runs and not self.refused and not any(task.lessons for task in self.tasks)

    def mapped(self, change: Callable[[list[str]], list[str]]) -> SessionLessons:
        """Return a copy with every text changed by a function that takes them all, each once."""
        plain = msgspec.to_builtins(self)
        texts: dict[str, str] = {}
        _mapped(plain, lambda text: texts.setdefault(text, text))
        changed = dict(zip(texts, change(list(texts)), strict=True))
        return msgspec.convert(_mapped(plain, changed.__getitem__), SessionLessons)


_NAMES: Final = frozenset({"kind", "role", "scope"})
"""Fields whose values are one of a few words."""


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {change(key): each if key in _NAMES else _mapped(each, change) for key, each in held.items()}
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


_DECODER: Final = msgspec.json.Decoder(SessionLessons)


def encode(session: SessionLessons) -> str:
    """Return the JSON that a row stores."""
    return msgspec.json.encode(session).decode()


def decode(text: str) -> SessionLessons:
    """Return what a row stores (raises msgspec.DecodeError, msgspec.ValidationError: a newer version wrote it)."""
    return _DECODER.decode(text)


class SessionLesson(msgspec.Struct, frozen=True):
    """A lesson, and the session and project that taught it."""

    kind: Kind
    text: str
    """The lesson as one line."""
    words: str
    """What it says: the person's words, or what commands showed."""
    stretch: str
    """The person's words with the sentences around them, if they are known."""
    lead: str
    """How the words are known; empty for what commands showed."""
    project: str
    thread_id: str
    updated_s: int
    place: int
    """Its place in its session."""
    task: str
    outcome: str
    sources: tuple[Source, ...]
    commands: tuple[str, ...] = ()
    """The commands that showed it."""
    role: str = ""
    """The role of the command that it tells of."""
    confidence: float = 1.0
    """How likely it lasts."""
    judged: JudgeInput | None = None
    sentence: str = ""
    """Of several sentences the one that carries the lesson; lessons are compared by it."""
    default: str = ""
    """What to do by default because of it."""
    scope: SaidScope = ""

    @property
    def compared(self) -> str:
        """What it is compared with others by."""
        return self.sentence or self.words

    @property
    def is_request(self) -> bool:
        """A person asked for it in a short request about the flow of work."""
        return self.judged is not None and self.judged.sample.is_request

    @property
    def entry_text(self) -> str:
        """How an entry says it: the words, and how they are known unless somebody just said them."""
        default = f" -> {self.default}" if self.default and normal(self.default) != normal(self.words) else ""
        if not self.lead:
            return self.words.removesuffix(" (exit 0)").removesuffix(" (exit 0 here)") + default
        lead = (
            self.lead.replace(" by the user", "")
            .replace("rule stated", "rule")
            .replace("steps stated", "steps")
            .replace("check named", "check")
        )
        quoted = f'"{self.words}"'
        return (quoted if lead == "said" else f"{lead.removeprefix('said ')}: {quoted}") + default

    @property
    def order(self) -> tuple[int, str, int]:
        """When it was learned, and a tie-breaker: the same whatever the order of arrival."""
        return (self.updated_s, self.thread_id, self.place)


def in_sections(task: TaskLessons) -> list[Lesson]:
    """Return the lessons of a task in the order in which texts tell them: wishes, knowledge, failures."""
    return [lesson for section in SECTIONS for lesson in task.lessons if SECTION_OF[lesson.kind] == section]


def session_lessons(session: SessionLessons, *, project: str, thread_id: str, updated_s: int) -> list[SessionLesson]:
    """Return the lessons of a session, each with the session and project that taught it."""
    told = [(task, lesson) for task in session.tasks for lesson in in_sections(task)]
    return [
        SessionLesson(
            kind=lesson.kind,
            text=lesson.text,
            words=lesson.words or lesson.shown,
            stretch=lesson.stretch,
            lead=lesson.lead if lesson.words else "",
            project=project,
            thread_id=thread_id,
            updated_s=updated_s,
            place=place,
            task=task.name,
            outcome=task.outcome,
            sources=tuple(
                Source(each.quote, each.how, thread_id, each.turn, each.start, each.end, updated_s)
                for each in lesson.evidence
            ),
            default=lesson.default,
            scope=lesson.scope,
            commands=lesson.commands,
            role=lesson.role,
            confidence=lesson.confidence,
            judged=lesson.judged,
        )
        for place, (task, lesson) in enumerate(told)
    ]
