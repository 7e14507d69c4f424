"""Rendering what a session taught: `raw_memory` and `rollout_summary`.

Every bullet names its evidence by number; References tell turn, bytes and words of each, and of what was judged its
kind and how likely it lasts. The raw memory keeps only what
changes what somebody does next; the summary also tells every task, how it ended and the steps that were taken. The same
lessons always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from commonplace.memory import lessons
from commonplace.memory.entries import SECTION_OF, Section
from commonplace.memory.lessons import Evidence, Lesson, SessionLessons, TaskLessons
from commonplace.redact import redact, redact_all
from commonplace.state.outputs import Output

TITLE_OF: Final[dict[Section, str]] = {
    "User preferences": "Preference signals:",
    "Reusable knowledge": "Reusable knowledge:",
    "Failures and how to do differently": "Failures and how to do differently:",
}
"""What the sections are called in the texts of single sessions."""
STEPS: Final = "Key steps:"
_MEMORY: Final = tuple(TITLE_OF.values())
_SUMMARY: Final = (_MEMORY[0], STEPS, _MEMORY[2], _MEMORY[1])
UNNAMED: Final = "session"
"""The name of a task without a name."""
_MAX_KEYWORDS: Final = 24
_MAX_TITLE: Final = 240
MAX_STEPS: Final = 12
"""How many steps of a task a summary tells, the last ones."""


class SummaryLine(msgspec.Struct, frozen=True):
    """One line of a text, and what it rests on."""

    section: str
    text: str
    evidence: tuple[Evidence, ...] = ()


def output(session: SessionLessons) -> Output:
    """Return what is stored of a session: the texts, and the lessons that they are rendered from.

    Texts tell what is likely to last, and what was done.
    """
    if session.is_empty:
        return Output("", "")
    if not session.has_text:
        return Output("", "", None, lessons.encode(session))
    return Output(raw_memory(session), rollout_summary(session), session.slug, lessons.encode(session))


def redacted(found: Output) -> Output:
    """Return an output without secrets.

    Secrets are taken out of each text of a lesson, and then out of the rendered texts. Where only the latter finds one,
    the lessons are not stored: their text is.
    """
    slug = redact(found.rollout_slug) if found.rollout_slug else None
    if found.lessons is not None:
        clean = output(lessons.decode(found.lessons).mapped(redact_all))
        if clean == Output(redact(clean.raw_memory), redact(clean.rollout_summary), clean.rollout_slug, clean.lessons):
            return clean
    return Output(redact(found.raw_memory), redact(found.rollout_summary), slug)


def raw_memory(session: SessionLessons) -> str:
    """Return the text of `raw_memory`; tasks that taught nothing are left out."""
    tasks = [task for task in session.tasks if any(lesson.is_listed for lesson in task.lessons)] or session.tasks[:1]
    group = flat(session.project or session.cwd) or "unknown"
    head = [
        "---",
        f"description: {_description(tasks)}",
        f"task: {_name(tasks[0])}",
        f"task_group: {group}",
        f"task_outcome: {tasks[0].outcome}",
        f"cwd: {flat(session.cwd) or 'unknown'}",
        f"keywords: {', '.join(session.keywords[:_MAX_KEYWORDS])}",
        "---",
    ]
    parts = ["\n".join(head)]
    numbers = _Numbers()
    for number, task in enumerate(tasks, 1):
        lines = [f"### Task {number}: {_name(task)}", "", f"task: {_name(task)}", f"task_group: {group}"]
        lines.append(f"task_outcome: {task.outcome}")
        bullets = [_line(lesson, session) for lesson in task.lessons if lesson.is_listed]
        lines += _sections(bullets, _MEMORY, numbers)
        parts.append("\n".join([*lines, *_references(bullets, numbers, "References:")]))
    return "\n\n".join(parts) + "\n"


def rollout_summary(session: SessionLessons) -> str:
    """Return the text of `rollout_summary`."""
    named = "; ".join(f"{quote(task.name, 60) or UNNAMED}: {task.outcome}" for task in session.tasks[:4])
    where = f"in {session.cwd or 'an unknown folder'}" + (f" on branch {session.branch}" if session.branch else "")
    size = f"{session.dialogue_bytes:,} bytes of dialogue ({session.spoken_bytes:,} spoken)"
    read = f", read by {session.reader}" if session.reader else ""
    facts = flat(f"{len(session.tasks)} task(s), {size}, {where}, {session.started[:10]}, {session.source}{read}.")
    title = quote(session.title, _MAX_TITLE) or flat(named)
    lines = [f"# {title}", "", f"Rollout context: {facts}"]
    numbers = _Numbers()
    for number, task in enumerate(session.tasks, 1):
        lines += ["", f"## Task {number}: {_name(task)}", f"Outcome: {task.outcome}"]
        told = [lesson for lesson in task.lessons if lesson.is_listed]
        bullets = [*(_line(lesson, session) for lesson in told), *_steps(task)]
        lines += _sections(bullets, _SUMMARY, numbers)
        lines += _references(bullets, numbers, "References")
    return "\n".join(lines) + "\n"


def _line(lesson: Lesson, session: SessionLessons) -> SummaryLine:
    is_marked = lesson.judged is not None or bool(lesson.role) or bool(session.reader)
    scope = f", {lesson.scope}" if lesson.scope else ""
    mark = f" ({lesson.kind}, {lesson.confidence:.3f}{scope})" if is_marked else ""
    evidence = tuple(msgspec.structs.replace(each, how=each.how + mark) for each in lesson.evidence)
    return SummaryLine(TITLE_OF[SECTION_OF[lesson.kind]], flat(lesson.text), evidence)


def _steps(task: TaskLessons) -> list[SummaryLine]:
    steps = [f"`{step}` (exit 0)" for step in task.steps]
    if task.reason:
        steps.append(f"outcome by evidence: {task.reason}")
    return [SummaryLine(STEPS, step) for step in steps[-MAX_STEPS:]]


def _sections(bullets: list[SummaryLine], titles: Iterable[str], numbers: _Numbers) -> list[str]:
    lines: list[str] = []
    for title in titles:
        own = [f"- {each.text} {numbers.of(each)}".rstrip() for each in bullets if each.section == title]
        lines += ["", title, *own] if own else []
    return lines


def _references(bullets: list[SummaryLine], numbers: _Numbers, title: str) -> list[str]:
    seen = {numbers.number(each): each for bullet in bullets for each in bullet.evidence}
    lines = [
        f'- [{number}] turn {each.turn}, bytes {each.start}-{each.end}, {each.how}: "{each.quote}"'
        for number, each in sorted(seen.items())
    ]
    return ["", title, *lines] if lines else []


class _Numbers:
    """The number of each piece of evidence, in the order in which bullets first name it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, str, str], int] = {}

    def number(self, evidence: Evidence) -> int:
        return self._known.setdefault(
            (evidence.start, evidence.end, evidence.quote, evidence.how), len(self._known) + 1
        )

    def of(self, bullet: SummaryLine) -> str:
        return "".join(f"[{number}]" for number in dict.fromkeys(map(self.number, bullet.evidence)))


def _description(tasks: Sequence[TaskLessons]) -> str:
    done = "; ".join(f"{quote(task.name, 80) or UNNAMED} ({task.outcome})" for task in tasks[:3])
    every = [lesson for task in tasks for lesson in task.lessons if lesson.is_listed]
    if not every:
        return flat(f"{done}.")
    best = next((each for each in every if SECTION_OF[each.kind] == "User preferences"), every[0])
    return flat(f"{done}. Best takeaway: {quote(best.text, 160)}")


def _name(task: TaskLessons) -> str:
    return flat(task.name) or UNNAMED


def flat(text: str) -> str:
    """Return a text on one line, with single blanks."""
    return " ".join(text.split())


def quote(text: str, size: int = 300) -> str:
    """Return words on one line, cut at the end if there are many."""
    line = flat(text)
    return line if len(line) <= size else line[: size - 1].rstrip() + "…"
