"""Updating a `MEMORY.md` that another program wrote: only what changed is touched.

A model may have written `MEMORY.md` in its own words and order. Then it is not rewritten. Bullets that rest only on
sessions that are gone are removed, forgotten ones are removed, and what new sessions taught is added in blocks of its
own, unless the file says it already. When a task is removed, later tasks are renumbered.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from commonplace.memory import similarity
from commonplace.memory.entries import GLOBAL, Entry, Kind, Source, entry_id
from commonplace.memory.files import handbook as reader
from commonplace.memory.files.handbook import HandbookBlock
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.patterns import regex

_FILE: Final = regex(r"^- ((?:rollout_summaries|extensions)/[^ ()]+)")
_UPDATED: Final = regex(r"updated_at=([^,)]+)")
_MARK: Final = regex(r"\[Task (\d+)\]")
_NUMBER: Final = regex(r"^## Task \d+:")
_KIND: Final[dict[str, Kind]] = {
    "User preferences": "preference",
    "Reusable knowledge": "environment",
    "Failures and how to do differently": "failure",
}
_TRIM: Final = regex(rf"(?:(?<!\s)\s+)?(?:{reader.MARK})")

Gone = Callable[[str], bool]


def without_unsupported(text: str, is_there: Gone, is_forgotten: Gone) -> str:
    """Return MEMORY.md without what rests only on files that are gone, and without what was forgotten."""
    blocks, _ = reader.parse(text)
    lines = text.split("\n")
    lost = _LostLines(lines, is_there, is_forgotten)
    marks: dict[int, dict[int, int]] = {}
    for place, block in enumerate(blocks):
        end = blocks[place + 1].first if place + 1 < len(blocks) else len(lines) + 1
        marks.update(dict.fromkeys(range(block.first, end), lost.add(block, end)))
    kept = [
        _renumbered(line, marks.get(number, {})) for number, line in enumerate(lines, 1) if number not in lost.numbers
    ]
    return "\n".join(kept)


class _LostLines:
    """The numbers of the lines of a memory that nothing supports any more."""

    def __init__(self, lines: list[str], is_there: Gone, is_forgotten: Gone) -> None:
        self.numbers: set[int] = set()
        self._lines = lines
        self._is_there = is_there
        self._is_forgotten = is_forgotten

    def add(self, block: HandbookBlock, end: int) -> dict[int, int]:
        """Add the lines of a block that go; return the numbers that its tasks have then."""
        left: dict[int, int] = {}
        gone: set[int] = set()
        for task in block.tasks:
            sources = [line for name in (reader.FILES, reader.RESOURCES) for line in task.parts.get(name, ())]
            lost = [line for line in sources if (found := _FILE.match(line.text)) and not self._is_there(found[1])]
            self.numbers.update(line.number for line in lost)
            if sources and len(lost) == len(sources):
                gone.add(task.number)
                self.numbers.update(_lines_of(task.number, self._lines, block.first, end))
            else:
                left[task.number] = len(left) + 1
        if block.tasks and not left:
            self.numbers.update(range(block.first, end))
        for line in (line for section in block.lessons.values() for line in section):
            named = {int(number) for number in _MARK.findall(line.text)}
            if (named and named <= gone) or self._is_forgotten(bullet_words(line.text)):
                self.numbers.add(line.number)
        return left


def _lines_of(task: int, lines: list[str], first: int, end: int) -> range:
    """Return the numbers of a task's lines."""
    start = next(number for number in range(first, end) if lines[number - 1].startswith(f"## Task {task}:"))
    after = next((number for number in range(start + 1, end) if lines[number - 1].startswith("## ")), end)
    return range(start, after)


def _renumbered(line: str, numbers: dict[int, int]) -> str:
    if not numbers:
        return line
    if _NUMBER.match(line):
        return re.sub(r"\d+", lambda found: str(numbers.get(int(found[0]), int(found[0]))), line, count=1)
    return _MARK.sub(lambda found: f"[Task {numbers[int(found[1])]}]" if int(found[1]) in numbers else "", line)


def bullet_words(line: str) -> str:
    """Return the words of a bullet."""
    return _TRIM.sub("", line.strip().removeprefix("- ")).strip().strip('"')


def bullet_text(line: str) -> str:
    """Return the text of a bullet as an entry has it: with its quotation marks."""
    return _TRIM.sub("", line.strip().removeprefix("- ")).strip()


def files(text: str) -> dict[str, str]:
    """Return the files that a memory names as its sources, each with the newest time that it tells of it."""
    blocks, _ = reader.parse(text)
    parts = (line for block in blocks for task in block.tasks for part in task.parts.values() for line in part)
    found: dict[str, str] = {}
    for line in parts:
        named = _FILE.match(line.text)
        if named:
            updated = _UPDATED.search(line.text)
            found[named[1]] = max(updated[1] if updated else "", found.get(named[1], ""))
    return found


def summary(text: str, wishes: list[Entry], topics: list[str], *, budget: int) -> str:
    """Return a summary with new lines in their sections, as far as they fit; existing lines keep their words."""
    lines = text.rstrip("\n").split("\n")
    known = {bullet_words(line) for line in lines}
    added = [f"- {wish.text}" for wish in wishes if bullet_words(wish.text) not in known]
    for heading, new in (("## General Tips", added), ("### Older Memory Topics", topics)):
        place = lines.index(heading) if heading in lines else len(lines)
        while heading.startswith("## ") and place and not lines[place - 1].strip():
            place -= 1
        fitting = [*lines[:place], *new, *lines[place:]]
        if len("\n".join(fitting).encode()) < budget:
            lines = fitting
    return "\n".join(lines) + "\n"


def entries(text: str, by_file: dict[str, RawMemory]) -> list[Entry]:
    """Return what a memory holds, each with the sessions of the tasks that it names."""
    found: dict[str, Entry] = {}
    for entry in by_key(text, by_file).values():
        found.setdefault(entry.id, entry)
    return list(found.values())


def by_key(text: str, by_file: dict[str, RawMemory]) -> dict[tuple[str, str, str], Entry]:
    """Return what a memory holds by scope, section and words."""
    found: dict[tuple[str, str, str], Entry] = {}
    for block in reader.parse(text)[0]:
        sources = {
            task.number: [
                match[1] for part in task.parts.values() for line in part if (match := _FILE.match(line.text))
            ]
            for task in block.tasks
        }
        for section, lines in block.lessons.items():
            for line in lines:
                if line.text.startswith("- ") and not line.text.startswith("- Related skill: "):
                    entry = _entry(block, section, line.text, sources, by_file)
                    found.setdefault((entry.scope, section, entry.text), entry)
    return found


def _entry(
    block: HandbookBlock, section: str, text: str, sources: dict[int, list[str]], by_file: dict[str, RawMemory]
) -> Entry:
    numbers = [int(number) for number in _MARK.findall(text)] or list(sources)
    named = list(dict.fromkeys(file for number in numbers for file in sources.get(number, ())))
    words = bullet_text(text)
    evidence = [
        Source(
            bullet_words(text),
            "told by the memory, said by the user",
            by_file[file].thread_id,
            updated_s=by_file[file].updated_s,
        )
        if file in by_file
        else Source(bullet_words(text), "told by the memory, said by the user", None, note=file)
        for file in named
    ] or [Source(bullet_words(text), "told by the memory, said by the user")]
    scope, times = block.scope or GLOBAL, [source.updated_s for source in evidence]
    kind = _KIND[section]
    return Entry(entry_id(scope, kind, words), scope, kind, words, len(evidence), evidence, min(times), max(times))


def is_known(entry: Entry, kept: list[Entry]) -> bool:
    """Say whether a memory says already what an entry does, for the same project or for all."""
    words = similarity.words(entry.text)
    near = (each for each in kept if each.scope in (entry.scope, GLOBAL))
    return any(similarity.is_same(similarity.words(each.text), words) for each in near)
