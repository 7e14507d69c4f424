"""A memory that somebody else wrote is kept: only what changed beneath it is touched.

A model may have written `MEMORY.md` in words and an order of its own. Then nothing is written anew. What rested only on
sessions that are gone goes, what a person asked to forget goes, and what new sessions taught comes after it in blocks
of its own, unless it is there already. Tasks that go take their numbers along, and those after them move up.
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

_FILE: Final = re.compile(r"^- ((?:rollout_summaries|extensions)/[^ ()]+)")
_UPDATED: Final = re.compile(r"updated_at=([^,)]+)")
_MARK: Final = re.compile(r"\[Task (\d+)\]")
_NUMBER: Final = re.compile(r"^## Task \d+:")
_KIND: Final[dict[str, Kind]] = {
    "User preferences": "preference",
    "Reusable knowledge": "environment",
    "Failures and how to do differently": "failure",
}
_TRIM: Final = re.compile(r"(?:(?<!\s)\s+)?(?:\[Task \d+\]|\(\d+ sessions\)|\[ad-hoc note\])")

Gone = Callable[[str], bool]


def without_unsupported(text: str, is_there: Gone, is_forgotten: Gone) -> str:
    """Return MEMORY.md without what rests only on files that are gone, and without what was forgotten."""
    blocks, _ = reader.parse(text)
    lines = text.split("\n")
    drop: set[int] = set()
    marks: dict[int, dict[int, int]] = {}
    for place, block in enumerate(blocks):
        end = blocks[place + 1].first if place + 1 < len(blocks) else len(lines) + 1
        left = _block(block, lines, end, drop, is_there, is_forgotten)
        marks.update(dict.fromkeys(range(block.first, end), left))
    kept = [_renumbered(line, marks.get(number, {})) for number, line in enumerate(lines, 1) if number not in drop]
    return "\n".join(kept)


def _block(
    block: HandbookBlock, lines: list[str], end: int, drop: set[int], is_there: Gone, is_forgotten: Gone
) -> dict[int, int]:
    """Mark the lines of a block that go; return the numbers that its tasks have then."""
    left: dict[int, int] = {}
    gone: set[int] = set()
    for task in block.tasks:
        sources = [line for name in (reader.FILES, reader.RESOURCES) for line in task.parts.get(name, ())]
        lost = [line for line in sources if (found := _FILE.match(line.text)) and not is_there(found[1])]
        drop.update(line.number for line in lost)
        if sources and len(lost) == len(sources):
            gone.add(task.number)
            drop.update(_lines_of(task.number, lines, block.first, end))
        else:
            left[task.number] = len(left) + 1
    if block.tasks and not left:
        drop.update(range(block.first, end))
    for line in (line for section in block.lessons.values() for line in section):
        named = {int(number) for number in _MARK.findall(line.text)}
        if (named and named <= gone) or is_forgotten(bullet_words(line.text)):
            drop.add(line.number)
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
    """Return what a bullet says."""
    return _TRIM.sub("", line.strip().removeprefix("- ")).strip().strip('"')


def bullet_text(line: str) -> str:
    """Return what a bullet says, as an entry has it: with its quotes."""
    return _TRIM.sub("", line.strip().removeprefix("- ")).strip()


def file_of(line: str) -> str | None:
    """Return the file that a line of a task names as its source."""
    found = _FILE.match(line)
    return found[1] if found else None


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
    """Return a summary with what is new put where it belongs, as far as it fits; all else keeps its words."""
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
