"""Parsing `MEMORY.md`: blocks with their scope, tasks with their sources, and lessons, line by line.

Any program may have written the file. Lines that belong to no known part are kept as strays, so that a reader can show
them and a checker can name them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.patterns import regex

CLOSING: Final = ("User preferences", "Reusable knowledge", "Failures and how to do differently")
FILES: Final = "rollout_summary_files"
RESOURCES: Final = "extension_resource_files"
KEYWORDS: Final = "keywords"
SHORT_ID: Final = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}(?=-7))?")
"""The beginning of a thread's id that tells it from others; in those that begin with the time, a longer one."""
MARK: Final = r"\[Task \d{1,9}\]|\(\d{1,9} sessions\)|\[ad-hoc note\]|\[[0-9a-f]{8}[0-9a-f, -]{0,60}\]"
"""What may stand at the end of a bullet: its tasks, how many sessions taught it, a note, the ids of sessions."""
_GROUP: Final = "# Task Group: "
_TASK: Final = regex(r"^## Task (\d{1,9}): (.*)$")
_SCOPE: Final = regex(r"^scope: (.*)$")


class NumberedLine(msgspec.Struct, frozen=True):
    """One line, and its number in the file."""

    number: int
    text: str


class HandbookTask(msgspec.Struct):
    """The sources of a block's lessons: one task and its sessions."""

    number: int
    name: str
    first: int = 0
    """The number of its heading's line."""
    parts: dict[str, list[NumberedLine]] = {}
    """By the names of its headings, in their order."""


class HandbookBlock(msgspec.Struct):
    """One block: the lessons of one project, or of all projects."""

    title: str
    first: int
    """The number of its first line."""
    head: list[NumberedLine] = []
    """What stands between its heading and its first task: scope and what it applies to."""
    tasks: list[HandbookTask] = []
    lessons: dict[str, list[NumberedLine]] = {}
    """By the names of the closing sections, in their order."""
    strays: list[NumberedLine] = []
    """Headings and lines that belong nowhere."""

    @property
    def scope(self) -> str:
        """`global`, or the project's identity; empty if it does not say."""
        found = next((match for line in self.head if (match := _SCOPE.match(line.text))), None)
        return found[1].strip().removeprefix("project ").strip() if found else ""


def parse(text: str) -> tuple[list[HandbookBlock], list[NumberedLine]]:
    """Return the blocks of a file, and the lines that stand outside of any."""
    blocks: list[HandbookBlock] = []
    outside: list[NumberedLine] = []
    reader: _BlockReader | None = None
    for number, content in enumerate(text.split("\n"), 1):
        line = NumberedLine(number, content)
        if content.startswith(_GROUP):
            blocks.append(HandbookBlock(content.removeprefix(_GROUP).strip(), number))
            reader = _BlockReader(blocks[-1])
        elif content.startswith("# ") or reader is None:
            if content.strip():
                (outside if reader is None else blocks[-1].strays).append(line)
        else:
            reader.take(line)
    return blocks, outside


class _BlockReader:
    """Assigns the lines of a block to its parts."""

    def __init__(self, block: HandbookBlock) -> None:
        self._block = block
        self._into: list[NumberedLine] = block.head
        self._in_task = False

    def take(self, line: NumberedLine) -> None:
        text = line.text
        task = _TASK.match(text)
        if task:
            if self._block.lessons:
                self._block.strays.append(line)
            self._block.tasks.append(HandbookTask(int(task[1]), task[2].strip(), line.number))
            self._in_task, self._into = True, self._block.strays
        elif text.startswith("## "):
            self._in_task = False
            self._open(line, text[3:].strip(), self._block.lessons, CLOSING)
        elif text.startswith("### "):
            parts = self._block.tasks[-1].parts if self._in_task else {}
            self._open(line, text[4:].strip(), parts, (FILES, RESOURCES, KEYWORDS) if self._in_task else ())
        elif text.strip():
            self._into.append(line)

    def _open(
        self, line: NumberedLine, name: str, parts: dict[str, list[NumberedLine]], known: tuple[str, ...]
    ) -> None:
        if name not in known or name in parts:
            self._block.strays.append(line)
            self._into = self._block.strays
        else:
            self._into = parts[name] = []
