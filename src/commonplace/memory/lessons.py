"""Lessons: what single sessions taught, read back from their raw memories (spec §5.3), one per bullet.

Any extractor may have written them. What is not understood is passed over: a bullet without a section, a reference that
names no turn. The kind is told by the section and by how a bullet begins; a bullet that begins otherwise is taken for
the plainest kind of its section.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.memory.entries import Kind, Source
from commonplace.memory.files.raw_memories import Input

_TASK: Final = re.compile(r"^### Task \d+: (.*)$")
_REFERENCE: Final = re.compile(
    r"^- \[(?P<n>\d+)\] turn (?P<turn>\d+), bytes (?P<start>\d+)-(?P<end>\d+), "
    r'(?P<how>(?:[^:"`]|`[^`]*`)*): "(?P<quote>.*)"$'
)
_NUMBERS: Final = re.compile(r"\s*((?:\[\d+\])+)\s*$")
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
_SAID: Final = re.compile(r'^(?P<lead>[^"`]{0,60}(?:`[^`]*`)?[^"`]{0,20}): "(?P<quote>.+?)"(?: -> (?P<default>.+))?$')
_FIX: Final = re.compile(r"^`.+ worked \(exit 0\)$")


class Lesson(msgspec.Struct, frozen=True):
    """One thing that one session taught."""

    kind: Kind
    text: str
    """The bullet, without the numbers of its references."""
    words: str
    """What it says: the person's words, or the commands."""
    lead: str
    """How it is known: said by the user, after refusing a command, …; empty for what commands showed."""
    project: str
    thread_id: str
    updated_s: int
    place: int
    """Its place in its session."""
    task: str
    outcome: str
    sources: tuple[Source, ...]

    @property
    def told(self) -> str:
        """How the memory says it: the words, and how they are known where that is not just that they were said."""
        if not self.lead:
            return self.text.removesuffix(" (exit 0)").removesuffix(" (exit 0 here)")
        lead = (
            self.lead.replace(" by the user", "")
            .replace("rule stated", "rule")
            .replace("steps stated", "steps")
            .replace("check named", "check")
        )
        quoted = f'"{self.words}"'
        return quoted if lead == "said" else f"{lead.removeprefix('said ')}: {quoted}"

    @property
    def order(self) -> tuple[int, str, int]:
        """When it was learned, and a tie-breaker: the same whatever the order of arrival."""
        return (self.updated_s, self.thread_id, self.place)


class _Parsed(msgspec.Struct):
    section: str
    text: str
    numbers: list[int]
    task: str
    outcome: str


def of_input(source: Input, project: str) -> list[Lesson]:
    """Return what a session taught, in its order."""
    bullets, references = _parse(source)
    found: list[Lesson] = []
    for place, bullet in enumerate(bullets):
        said = _SAID.match(bullet.text)
        found.append(
            Lesson(
                _kind(bullet),
                bullet.text,
                said["quote"] if said else bullet.text,
                said["lead"] if said else "",
                project,
                source.thread_id,
                source.updated_s,
                place,
                bullet.task,
                bullet.outcome,
                tuple(references[number] for number in bullet.numbers if number in references),
            )
        )
    return found


def _kind(bullet: _Parsed) -> Kind:
    for section, begins, kind in _BEGINS:
        if bullet.section == section and bullet.text.startswith(begins):
            return kind
    if bullet.section.startswith("Failures") and _FIX.match(bullet.text):
        return "fix"
    return _PLAINEST[bullet.section]


def _parse(source: Input) -> tuple[list[_Parsed], dict[int, Source]]:
    bullets: list[_Parsed] = []
    references: dict[int, Source] = {}
    section = task = outcome = ""
    for line in source.raw_memory.split("\n"):
        heading = _TASK.match(line)
        if heading:
            section, task, outcome = "", heading[1], ""
        elif line.startswith("task_outcome: "):
            outcome = line.removeprefix("task_outcome: ")
        elif line in _PLAINEST or line == "References:":
            section = line
        elif line.startswith("- ") and section in _PLAINEST:
            bullets.append(_bullet(line[2:], section, task, outcome))
        elif section == "References:" and (found := _REFERENCE.match(line)):
            references[int(found["n"])] = _reference(found, source)
    return bullets, references


def _bullet(text: str, section: str, task: str, outcome: str) -> _Parsed:
    tail = _NUMBERS.search(text)
    numbers = [int(number) for number in re.findall(r"\d+", tail[1])] if tail else []
    return _Parsed(section, text[: tail.start()] if tail else text, numbers, task, outcome)


def _reference(found: re.Match[str], source: Input) -> Source:
    return Source(
        found["quote"],
        found["how"],
        source.thread_id,
        int(found["turn"]),
        int(found["start"]),
        int(found["end"]),
        source.updated_s,
    )
