"""Parsing raw memories that are there only as Markdown: of an older version, of another program, or after a repair.

Any extractor may have written them. What is not understood is passed over: a bullet without a section, a reference that
names no turn. The section and the beginning of a bullet tell its kind; a bullet that begins otherwise is of the
plainest kind of its section.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.memory import lessons
from commonplace.memory.entries import KINDS, Kind
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.memory.lessons import Evidence, Lesson, SessionLesson, SessionLessons, TaskLessons
from commonplace.patterns import regex

_TASK: Final = regex(r"^### Task \d+: (.*)$")
_REFERENCE: Final = regex(
    r"^- \[(?P<n>\d+)\] turn (?P<turn>\d+), bytes (?P<start>\d+)-(?P<end>\d+), "
    r'(?P<how>(?:[^:"`]|`[^`]*`)*): "(?P<quote>.*)"$'
)
_COMMAND: Final = regex(r"`([^`]+)`")
_NUMBERS: Final = regex(r"(?:(?<!\s)\s+)?((?:\[\d{1,9}\]){1,99})\s*$")
_PLAINEST: Final[dict[str, Kind]] = {
    "Preference signals:": "preference",
    "Reusable knowledge:": "environment",
    "Failures and how to do differently:": "failure",
}
_BEGINS: Final[tuple[tuple[str, str, Kind], ...]] = (
    ("Preference signals:", "rule stated by the user", "rule"),
    ("Reusable knowledge:", "verify with ", "verify"),
    ("Reusable knowledge:", "check named by the user", "verify"),
    ("Reusable knowledge:", "decided by the user", "decision"),
    ("Reusable knowledge:", "steps ", "procedure"),
)
_SAID: Final = regex(
    r'^(?P<lead>[^"`]{0,80}|[^"`]{0,60}`[^`]*`[^"`]{0,20}): "(?P<quote>.+?)"(?: -> (?P<default>(?s:.+)))?\Z'
)
_FIX: Final = regex(r"^`.+ worked \(exit 0\)$")


_JUDGED: Final = regex(r" \(([a-z]{2,20}), ([01]\.\d{2,3})(?:, (everywhere|project))?\)$")
"""What a reference says of a lesson that was judged: its kind, how likely it lasts, and whom it is for."""
_HEAD: Final = regex(r"^(cwd|keywords|task_group): (.*)$", re.MULTILINE)
_DIALOGUE: Final = regex(r"(?<![\d,])([\d,]+) bytes of dialogue(?: \(([\d,]+) spoken\))?")
_SUMMARY_TASK: Final = regex(r"^## Task \d+: (.*)$")
_STEP: Final = regex(r"^- `(.+)` \(exit 0\)$")


def of_input(source: RawMemory, project: str) -> list[SessionLesson]:
    """Return what a session taught: the lessons that its row stores, else those that its raw memory tells."""
    return lessons.session_lessons(
        session_of(source), project=project, thread_id=source.thread_id, updated_s=source.updated_s
    )


def session_of(source: RawMemory) -> SessionLessons:
    """Return what is stored of a session, as values."""
    if source.lessons is not None:
        try:
            return lessons.decode(source.lessons)
        except (msgspec.DecodeError, msgspec.ValidationError):
            pass  # a newer version wrote it; its text is read as anybody's
    return parse(source.raw_memory, source.rollout_summary)


def parse(raw_memory: str, rollout_summary: str = "") -> SessionLessons:
    """Return what the Markdown of a session tells."""
    head = dict(_HEAD.findall(raw_memory.partition("\n### ")[0]))
    sizes = _DIALOGUE.search(rollout_summary)
    return SessionLessons(
        tasks=(*_tasks(raw_memory), *_steps(rollout_summary)),
        cwd=head.get("cwd", ""),
        project=head.get("task_group", ""),
        keywords=tuple(word.strip() for word in head.get("keywords", "").split(",") if word.strip()),
        dialogue_bytes=_number(sizes[1]) if sizes else 0,
        spoken_bytes=_number(sizes[2] or sizes[1]) if sizes else 0,
    )


def _number(text: str) -> int:
    return int(text.replace(",", ""))


class _Bullet(msgspec.Struct):
    section: str
    text: str
    numbers: list[int]


class _Task(msgspec.Struct):
    name: str = ""
    outcome: str = ""
    bullets: list[_Bullet] = []


def _tasks(raw_memory: str) -> list[TaskLessons]:
    """Return the tasks of a raw memory, each with its lessons."""
    tasks = [_Task()]
    references: dict[int, Evidence] = {}
    section = ""
    for line in raw_memory.split("\n"):
        heading = _TASK.match(line)
        if heading:
            tasks.append(_Task(heading[1]))
            section = ""
        elif line.startswith("task_outcome: "):
            tasks[-1].outcome = line.removeprefix("task_outcome: ")
        elif line in _PLAINEST or line == "References:":
            section = line
        elif line.startswith("- ") and section in _PLAINEST:
            tasks[-1].bullets.append(_bullet(line[2:], section))
        elif section == "References:" and (found := _REFERENCE.match(line)):
            references[int(found["n"])] = Evidence(
                int(found["turn"]), int(found["start"]), int(found["end"]), found["quote"], found["how"]
            )
    return [
        TaskLessons(task.name, task.outcome, tuple(_lesson(each, references) for each in task.bullets))
        for task in tasks
        if task.bullets
    ]


def _bullet(text: str, section: str) -> _Bullet:
    tail = _NUMBERS.search(text)
    numbers = [int(number) for number in re.findall(r"\d+", tail[1])] if tail else []
    return _Bullet(section, text[: tail.start()] if tail else text, numbers)


def _lesson(bullet: _Bullet, references: dict[int, Evidence]) -> Lesson:
    evidence = tuple(references[number] for number in bullet.numbers if number in references)
    mark = next((found for each in evidence if (found := _JUDGED.search(each.how))), None)
    bare = tuple(msgspec.structs.replace(each, how=_JUDGED.sub("", each.how)) for each in evidence)
    lesson = lesson_of(bullet.section, bullet.text, bare)
    if mark is None or mark[1] not in KINDS:
        return lesson
    return msgspec.structs.replace(lesson, kind=mark[1], confidence=float(mark[2]), scope=mark[3] or "")


def lesson_of(section: str, text: str, evidence: tuple[Evidence, ...] = ()) -> Lesson:
    """Return the lesson that a bullet of a section tells."""
    kind = _kind(section, text)
    said = _SAID.match(text)
    if said:
        words, lead, default = said["quote"], said["lead"], said["default"] or ""
        return Lesson(kind=kind, words=words, lead=lead, default=default, evidence=evidence)
    return Lesson(kind=kind, shown=text, commands=tuple(_COMMAND.findall(text)), evidence=evidence)


def _kind(section: str, text: str) -> Kind:
    for title, begins, kind in _BEGINS:
        if section == title and text.startswith(begins):
            return kind
    if section.startswith("Failures") and _FIX.match(text):
        return "fix"
    return _PLAINEST[section]


def _steps(rollout_summary: str) -> list[TaskLessons]:
    """Return the tasks of a summary with the commands that worked in them."""
    tasks: list[tuple[str, list[str]]] = [("", [])]
    for line in rollout_summary.split("\n"):
        heading, step = _SUMMARY_TASK.match(line), _STEP.match(line)
        if heading:
            tasks.append((heading[1], []))
        elif step and step[1] not in tasks[-1][1]:
            tasks[-1][1].append(step[1])
    return [TaskLessons(name, "", steps=tuple(steps)) for name, steps in tasks if steps]
