"""Validating what a consolidator wrote, before it is used.

The checks: schema, budgets, references, scope and sources, no secrets, no links, no unexpected files, and no
instruction that rests only on the output of a tool or a page. A memory with a problem never replaces the old one,
whichever program wrote it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from commonplace.config import MemorySettings
from commonplace.memory.entries import Entry
from commonplace.memory.files import handbook as reader
from commonplace.memory.files.handbook import HandbookBlock, HandbookTask
from commonplace.memory.injection import is_injection
from commonplace.memory.workspace import baseline, layout
from commonplace.patterns import regex
from commonplace.redact import find

SUMMARY_BYTES: Final = MemorySettings().summary_bytes
LEAST_SUMMARY_BYTES: Final = 256
"""The headings of `memory_summary.md` stand in the smallest one, too."""
MAX_SKILL_LINES: Final = 500
"""A skill's file must have fewer lines."""
_HEADINGS: Final = ["## User Profile", "## User preferences", "## General Tips", "## What's in Memory"]
_TASK_PARTS: Final = (
    [reader.FILES, reader.KEYWORDS],
    [reader.RESOURCES, reader.KEYWORDS],
    [reader.FILES, reader.RESOURCES, reader.KEYWORDS],
)
_SCOPE: Final = regex(r"^scope: (?:global|project \S.*|(?!general$|misc$)\S.*)$")
_APPLIES: Final = regex(r"^applies_to: cwd=[^;]+; reuse_rule=\S.*$")
_SUMMARY_FILE: Final = regex(
    r"^- (rollout_summaries/[^ ()]+\.md) \(cwd=(?>(?:(?!, rollout_path=).)*), rollout_path=(?=[^,])"
    r"(?>(?:(?!, updated_at=).)*), updated_at=[^,)].*\)$"
)
_RESOURCE: Final = regex(r"^- (extensions/[^()]+\.md) \(cwd=[^,]+, source=[^)]+\)$")
_SKILL: Final = regex(r"^- Related skill: (\S+)")
_MARKS: Final = regex(r"((?:\[Task \d{1,9}\]){1,99})\s*$")
_QUOTED: Final = regex(r"`[^`]*`|\"[^\"]*\"")
_BOLD: Final = regex(r"\*\*[^\s*][^*]*\*\*")
_NAME: Final = regex(r"[a-z0-9][a-z0-9-]{0,63}")
_PLACEHOLDER: Final = regex(r"^(?:misc|general|task|todo|tbd|untitled|example)$", re.IGNORECASE)
_LINK: Final = regex(r"\]\(\s*(?:https?|file|ftp)://|<https?://", re.IGNORECASE)
_LINKED: Final = regex(r"\]\(\s*(?=(?:https?|file|ftp)://)|<(?=https?://)", re.IGNORECASE)
_WRITTEN: Final = (layout.MEMORY, layout.SUMMARY)


def problems(
    root: Path,
    *,
    against: Path | None = None,
    given: frozenset[str] = frozenset(),
    owned: Collection[str] = frozenset(),
    summary_bytes: int = SUMMARY_BYTES,
) -> list[str]:
    """Return what is wrong with a memory; nothing if it may be used.

    Args:
        root: the workspace.
        against: the workspace whose baseline it is compared with, for what may have changed.
        given: files that were put there for the consolidator, which it may not have touched.
        owned: files that a person made theirs; they are as the person wants them.
        summary_bytes: how large `memory_summary.md` may be.
    """
    found = [f"{path} is a link." for path in _links(root)]
    found += [f"{name} is missing." for name in _WRITTEN if not (root / name).is_file()]
    if found:
        return found
    try:
        memory = (root / layout.MEMORY).read_bytes().decode("utf-8")
        digest = (root / layout.SUMMARY).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"A file of the memory is not text: {error.reason}."]
    found += [f"MEMORY.md: {each}" for each in handbook(memory, root)]
    found += [f"memory_summary.md: {each}" for each in summary(digest, summary_bytes)]
    found += list(_skills(root, owned))
    for name, text in ((layout.MEMORY, memory), (layout.SUMMARY, digest)):
        found += [f"{name} {each}" for each in _unfit(text)]
    if against is not None:
        found += list(_outside(root, against, given))
    return found


def entries(found: Iterable[Entry]) -> Iterator[str]:
    """Yield what is wrong with entries: each needs a scope and a source, and a wish needs somebody who said it."""
    for entry in found:
        if not entry.scope or not entry.sources:
            yield f"entry {entry.id} has no scope or no source."
        elif entry.kind in ("preference", "rule") and not any(source.is_by_person for source in entry.sources):
            yield f"entry {entry.id} tells what to do, and nobody said it: {entry.text[:60]!r}."


def _links(root: Path) -> list[str]:
    return [
        os.path.relpath(os.path.join(folder, name), root)  # noqa: PTH118
        for folder, folders, files in os.walk(root)
        for name in (*folders, *files)
        if os.path.islink(os.path.join(folder, name))  # noqa: PTH114, PTH118
    ]


def handbook(text: str, root: Path) -> Iterator[str]:
    """Yield what is wrong with MEMORY.md; an empty one is allowed."""
    blocks, outside = reader.parse(text)
    yield from (f"line {line.number} stands in no block: {line.text[:60]!r}." for line in outside)
    for block in blocks:
        for problem in _block(block, root):
            yield f"block {block.title!r} {problem}"


def _block(block: HandbookBlock, root: Path) -> Iterator[str]:
    if not block.title or _PLACEHOLDER.match(block.title):
        yield "has no name."
    if not block.head or not _SCOPE.match(block.head[0].text):
        yield "has no scope."
    if len(block.head) < 2 or not _APPLIES.match(block.head[1].text):
        yield "does not say what it applies to."
    yield from (f"has a line in no place: {line.text[:60]!r}." for line in (*block.head[2:], *block.strays))
    numbers = [task.number for task in block.tasks]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        yield "has tasks that are not numbered from 1."
    seen: set[str] = set()
    for task in block.tasks:
        yield from _task(task, root, seen)
    order = [reader.CLOSING.index(name) for name in block.lessons]
    if order != sorted(order):
        yield "has sections that are not in order."
    for line in (line for lines in block.lessons.values() for line in lines):
        yield from _lesson(line.text, numbers, root)


def _task(task: HandbookTask, root: Path, seen: set[str]) -> Iterator[str]:
    if not task.name or _PLACEHOLDER.match(task.name.partition(",")[0].strip()):
        yield f"has a task {task.number} without a name."
    parts = list(task.parts)
    if not parts or parts[-1] != reader.KEYWORDS or parts not in _TASK_PARTS:
        yield f"has a task {task.number} without its sources and then its keywords."
    if len(task.parts.get(reader.KEYWORDS, ())) != 1:
        yield f"has a task {task.number} whose keywords are not one line."
    for line in task.parts.get(reader.FILES, ()):
        found = _SUMMARY_FILE.match(line.text)
        if not found:
            yield f"has a source without cwd, rollout_path and updated_at: {line.text[:80]!r}."
        elif not (root / found[1]).is_file():
            yield f"names {found[1]}, which is not there."
        elif found[1] in seen:
            yield f"names {found[1]} twice."
        else:
            seen.add(found[1])
    for line in task.parts.get(reader.RESOURCES, ()):
        found = _RESOURCE.match(line.text)
        if not found or ".." in found[1] or not (root / found[1]).is_file():
            yield f"names a resource that is not there: {line.text[:80]!r}."


def _lesson(text: str, numbers: list[int], root: Path) -> Iterator[str]:
    if not text.lstrip().startswith("- ") or _BOLD.search(_QUOTED.sub("", text)):
        yield f"has a line that is no plain bullet: {text[:60]!r}."
    marks = _MARKS.search(text)
    for mark in re.findall(r"\d+", marks[1]) if marks else ():
        if int(mark) not in numbers:
            yield f"names a task {mark} that it does not have."
    pointer = _SKILL.match(text)
    if pointer and (".." in pointer[1] or not (root / pointer[1]).is_file()):
        yield f"names {pointer[1]}, which is not there."


def summary(text: str, most: int = SUMMARY_BYTES) -> Iterator[str]:
    """Yield what is wrong with memory_summary.md, which may have so many bytes."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0] != "v1":
        yield "the first line is not v1."
    if [line for line in lines if line.startswith("## ")] != _HEADINGS:
        yield f"the sections are not {', '.join(_HEADINGS)}."
    elif lines[1:3] != ["", _HEADINGS[0]]:
        yield "the profile does not come right after v1 and an empty line."
    if len(text.encode()) > max(most, LEAST_SUMMARY_BYTES):
        yield f"it has {len(text.encode())} bytes, and {most} is the most."


def is_owned(name: str, owned: Collection[str]) -> bool:
    """Say whether a person made a skill theirs, or a part of it."""
    path = f"{layout.SKILLS}/{name}"
    return any(own == path or own.startswith(f"{path}/") for own in owned)


def _skills(root: Path, owned: Collection[str]) -> Iterator[str]:
    folder = root / layout.SKILLS
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        entry = place / "SKILL.md"
        if is_owned(place.name, owned):
            continue
        if not place.is_dir() or not _NAME.fullmatch(place.name):
            yield f"skills/{place.name} is no name of a skill."
        elif not entry.is_file():
            yield f"skills/{place.name} has no SKILL.md."
        else:
            text = entry.read_text("utf-8", "replace")
            if text.count("\n") >= MAX_SKILL_LINES:
                yield f"skills/{place.name}/SKILL.md has {MAX_SKILL_LINES} lines or more."
            head = text.removeprefix("---\n").partition("\n---\n")[0]
            if not text.startswith("---\n") or "name:" not in head or "description:" not in head:
                yield f"skills/{place.name}/SKILL.md does not say its name and when to use it."
            yield from (f"skills/{place.name}/SKILL.md {each}" for each in _unfit(text))


def _unfit(text: str) -> Iterator[str]:
    """Yield what no memory may contain: secrets, links to follow, injected instructions."""
    secrets = find(text)
    if secrets:
        yield f"holds {len(secrets)} secret(s)."
    bad = next((line for line in text.split("\n") if is_unfit(line)), None)
    if bad is not None:
        yield f"holds a link or an order to whoever reads it: {bad[:60]!r}."


def is_unfit(line: str) -> bool:
    """Say whether a line contains a link to follow, or an instruction to the reader."""
    return bool(_LINK.search(line)) or is_injection(line)


def plain(line: str) -> str:
    """Return a line without bold and with links spelt out, as a memory may have it."""
    return _LINKED.sub(" ", line).replace("**", "")


def _outside(root: Path, against: Path, given: frozenset[str]) -> Iterator[str]:
    """Yield what a consolidator changed and may not: only the memory's own files are its to write."""
    for change in baseline.status(root, against=against):
        own = change.path in (*_WRITTEN, layout.EDITS) or change.path.startswith(f"{layout.SKILLS}/")
        if not own and change.path not in given:
            yield f"{change.path} is not part of the memory, and was changed."
