"""Resolving citations: which entries and sessions some lines of a workspace file stand for.

    MEMORY.md              a lesson's line is its entry; a task's lines are the sessions that it names
    memory_summary.md      a line is the global entry that it says, or those of its project that it mentions
    raw_memories.md        a line belongs to the session whose block it stands in
    rollout_summaries/…    a file is its session; the entries that rest on it are those whose words the lines hold
    skills/…               a skill is the procedure that it was made from
    extensions/…/notes/…   a note is the entry that rests on it

A place that is not there (no such file, lines beyond its end, nothing but blanks) is told as that: a model may cite
anything. Files are opened step by step below the workspace, without following links.
"""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from commonplace.memory.entries import GLOBAL, Entry, normal
from commonplace.memory.files import handbook
from commonplace.memory.workspace import layout
from commonplace.patterns import regex

MAX_FILE_BYTES: Final = 64 * 2**20
"""Larger files are not read."""
Problem = Literal["no_such_file", "no_such_lines", "blank_lines"]
_TAIL: Final = regex(rf"(?:\s{{0,8}}(?:{handbook.MARK})){{1,64}}$")
_UUID: Final = regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_THREAD: Final = regex(r"\bthread_id[=:] ?([0-9a-f-]{36})\b")
_RAW_BLOCK: Final = regex(r"^## Thread `([^`\n]+)`$")
_TASK: Final = regex(r"^## Task (\d+):")
_NOTE: Final = regex(r"^- (extensions/[^ ()]+)")
_LAST_RUN: Final = regex(r"^- last run: (.+)$", re.MULTILINE)
_TITLE: Final = regex(r"^#{3,4} (.+)$")
_LEAST: Final = 12
"""Words shorter than this are found in too many places to tell an entry by."""
_SHORTENED: Final = 139
"""How much of an entry a summary's line tells at least."""


class LineRange(msgspec.Struct, frozen=True):
    """A range of lines of a file below the workspace, counted from 1, with the last one included."""

    path: str
    first: int
    last: int


class ResolvedCitation(msgspec.Struct):
    """The entries and threads that a range of lines stands for, or the problem with it."""

    entries: list[str] = []
    threads: list[str] = []
    problem: Problem | None = None


class WorkspaceFiles:
    """The workspace's files and the entries in them; each file is read once."""

    def __init__(self, root: Path, entries: Iterable[Entry]) -> None:
        self.root = root
        self._entries = list(entries)
        self._by_words: dict[str, list[Entry]] = defaultdict(list)
        for entry in self._entries:
            self._by_words[normal(entry.text)].append(entry)
        self._texts: dict[str, str | None] = {}
        self._lessons: dict[int, list[str]] | None = None

    def resolve(self, place: LineRange) -> ResolvedCitation:
        """Return the entries and threads that a range of lines stands for."""
        path = self._below(place.path)
        text = self.text(path)
        if text is None:
            return ResolvedCitation(problem="no_such_file")
        lines = text.removesuffix("\n").split("\n")
        if not 1 <= place.first <= place.last <= len(lines) or not text:
            return ResolvedCitation(problem="no_such_lines")
        if not any(line.strip() for line in lines[place.first - 1 : place.last]):
            return ResolvedCitation(problem="blank_lines")
        entries, threads = self._tell(path, lines, range(place.first, place.last + 1))
        return ResolvedCitation(list(dict.fromkeys(entries)), list(dict.fromkeys(threads)))

    def text(self, path: str) -> str | None:
        """Return a file's text; None if there is no such file, or none that may be read."""
        if path not in self._texts:
            self._texts[path] = read(self.root, path)
        return self._texts[path]

    def lessons(self) -> dict[int, list[str]]:
        """Return the entries that the lines of `MEMORY.md` say, by the numbers of the lines."""
        if self._lessons is None:
            self._lessons = dict(self._lessons_of(self.text(layout.MEMORY) or ""))
        return self._lessons

    def _below(self, path: str) -> str:
        """Return a path as it is below the workspace: models write it whole, too."""
        prefix = f"{self.root}/"
        return path.removeprefix(prefix).removeprefix("./")

    def _tell(self, path: str, lines: list[str], numbers: range) -> tuple[list[str], list[str]]:
        cited = [lines[number - 1] for number in numbers]
        if path == layout.MEMORY:
            lessons = self.lessons()
            entries = [name for number in numbers for name in lessons.get(number, ())]
            return entries + self._noted(cited), list(task_threads(lines, numbers))
        if path == layout.SUMMARY:
            return list(self._mentioned(lines, numbers)), []
        if path == layout.RAW:
            threads = list(dict.fromkeys(_raw_threads(lines, numbers)))
            return self._resting(threads, cited), threads
        if path.startswith(f"{layout.SUMMARIES}/"):
            named = _THREAD.search("\n".join(lines[:8]))
            threads = [named[1]] if named else []
            return self._resting(threads, cited), threads
        if path.startswith(f"{layout.SKILLS}/"):
            return self._practised(path), []
        return [entry.id for entry in self._entries if any(source.note == path for source in entry.sources)], []

    def _lessons_of(self, text: str) -> Iterator[tuple[int, list[str]]]:
        for block in handbook.parse(text)[0]:
            for section in block.lessons.values():
                found: list[str] = []
                for line in section:
                    if line.text.startswith("- "):
                        found = [entry.id for entry in self._saying(lesson_words(line.text), block.scope)]
                    if found:
                        yield line.number, found

    def _saying(self, text: str, scope: str) -> list[Entry]:
        """Return the entries that say just this: those of a scope if there are any, else the only one there is."""
        same = self._by_words.get(normal(text), [])
        own = [entry for entry in same if entry.scope == (scope or GLOBAL)]
        return own or (same if len(same) == 1 else [])

    def _noted(self, cited: list[str]) -> list[str]:
        notes = {found[1] for line in cited if (found := _NOTE.match(line))}
        return [entry.id for entry in self._entries if any(source.note in notes for source in entry.sources)]

    def _mentioned(self, lines: list[str], numbers: range) -> Iterator[str]:
        """Yield the entries that lines of the summary mention, by the project whose heading they stand under."""
        scope = GLOBAL
        for number, line in enumerate(lines[: numbers[-1]], 1):
            heading = _TITLE.match(line)
            if line.startswith("## "):
                scope = GLOBAL
            elif heading and any(entry.scope == heading[1] for entry in self._entries):
                scope = heading[1]
            if number in numbers and line.strip():
                told = normal(line)
                yield from (entry.id for entry in self._entries if entry.scope == scope and _mentions(told, entry))

    def _resting(self, threads: list[str], cited: list[str]) -> list[str]:
        """Return the entries that rest on sessions and whose words stand in the lines."""
        told = normal(" ".join(cited))
        return [
            entry.id
            for entry in self._entries
            if any(
                source.thread_id in threads and len(words := normal(each)) >= _LEAST and words in told
                for source in entry.sources
                for each in (source.quote, entry.text)
            )
        ]

    def _practised(self, path: str) -> list[str]:
        """Return the procedures that a skill was made from."""
        name = path.split("/")[1]
        text = self.text(f"{layout.SKILLS}/{name}/SKILL.md") or ""
        run = _LAST_RUN.search(text)
        if run is None:
            return []
        return [
            entry.id
            for entry in self._entries
            if entry.kind == "procedure"
            and any(run[1] in each for each in (entry.text, *(source.quote for source in entry.sources)))
        ]


def lesson_words(line: str) -> str:
    """Return the words of a lesson's line, without its sources."""
    return _TAIL.sub("", line.strip().removeprefix("- ").rstrip()).strip()


def task_threads(lines: list[str], numbers: range) -> Iterator[str]:
    """Yield the sessions that the task lines of `MEMORY.md` name; a task's heading names all of the task's."""
    task: list[tuple[int, str | None]] = []
    for number, line in enumerate([*lines, "# "], 1):
        if line.startswith(("# ", "## ")):
            yield from _of_task(task, numbers)
            task = [(number, None)] if _TASK.match(line) else []
        elif task:
            task.append((number, _thread_in(line)))


def _of_task(task: list[tuple[int, str | None]], numbers: range) -> Iterator[str]:
    cited = [thread for number, thread in task if number in numbers]
    named = [thread for thread in cited if thread is not None]
    if cited and not named:
        named = [thread for _, thread in task if thread is not None]
    yield from named


def _thread_in(line: str) -> str | None:
    """Return the session that a line of sources names: outright, or by the name of its ledger."""
    if not line.startswith("- "):
        return None
    told = _THREAD.search(line)
    return told[1] if told else next(reversed(_UUID.findall(line)), None)


def _raw_threads(lines: list[str], numbers: range) -> Iterator[str]:
    thread = ""
    for number, line in enumerate(lines[: numbers[-1]], 1):
        if found := _RAW_BLOCK.match(line):
            thread = found[1]
        if number in numbers and thread:
            yield thread


def _mentions(told: str, entry: Entry) -> bool:
    words = normal(entry.text)
    if len(words) < _LEAST:
        return told.removeprefix("- ").strip() == words
    return words in told or (len(entry.text) > _SHORTENED and normal(entry.text[:_SHORTENED].rstrip()) in told)


def read(root: Path, path: str) -> str | None:
    """Return the text of a file below a folder; None for links, hidden names, and what is no file or no text."""
    parts = path.split("/")
    if any(not part or part.startswith(".") for part in parts):
        return None
    folder = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    opened: list[int] = []
    try:
        opened.append(os.open(root, folder))
        for part in parts[:-1]:
            opened.append(os.open(part, folder, dir_fd=opened[-1]))
        leaf = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened.append(os.open(parts[-1], leaf, dir_fd=opened[-1]))
        status = os.fstat(opened[-1])
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        with os.fdopen(opened.pop(), "rb") as file:
            return file.read().decode("utf-8")
    except (OSError, ValueError):  # also a name with a zero in it, and bytes that are no text
        return None
    finally:
        for descriptor in opened:
            os.close(descriptor)
