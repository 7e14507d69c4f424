"""New blocks of `MEMORY.md` join those that are there already: tasks get the next numbers, bullets their sections.

What stands there keeps its words and its place. A session that a block names already, and that taught more since, keeps
its task; only the line that tells when it was updated becomes the new one.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.memory.files import handbook as reader
from commonplace.memory.files.handbook import HandbookBlock
from commonplace.patterns import regex

_MARK: Final = regex(r"\[Task (\d+)\]")
_FILE: Final = regex(r"^- ((?:rollout_summaries|extensions)/[^ ()]+)")


class _BlockLines(msgspec.Struct):
    """A block, and its lines."""

    block: HandbookBlock
    lines: list[str]
    """Without empty ones at the end."""


def join(text: str, added: str) -> str:
    """Return a `MEMORY.md` with the blocks of another put where they belong; blocks of new scopes come last."""
    if not added.strip():
        return text.rstrip("\n") + "\n"
    parts, news = _parts(text), _parts(added)
    if not parts:
        return "\n\n".join(each.rstrip("\n") for each in (text, added) if each.strip()) + "\n"
    head = text.split("\n")[: parts[0].block.first - 1]
    for new in news:
        place = next((at for at, each in enumerate(parts) if each.block.scope == new.block.scope), None)
        if place is None or not new.block.scope or not parts[place].block.tasks:
            parts.append(new)
        else:
            parts[place] = _part("\n".join(_joined(parts[place], new)))
    return "\n".join([*head, "\n\n".join("\n".join(each.lines) for each in parts)]) + "\n"


def _parts(text: str) -> list[_BlockLines]:
    lines = text.split("\n")
    blocks, _ = reader.parse(text)
    ends = [*(block.first - 1 for block in blocks[1:]), len(lines)]
    return [_BlockLines(block, _trimmed(lines[block.first - 1 : end])) for block, end in zip(blocks, ends, strict=True)]


def _part(text: str) -> _BlockLines:
    return _parts(text)[0]


def _joined(old: _BlockLines, new: _BlockLines) -> list[str]:
    """Return the lines of a block with those of another in their places."""
    known = {file: task.number for task in old.block.tasks for file in _files(task.parts)}
    numbers: dict[int, int] = {}
    tasks: list[str] = []
    lines, last = list(old.lines), len(old.block.tasks)
    for task in new.block.tasks:
        named = _files(task.parts)
        if named and all(file in known for file in named):
            numbers[task.number] = known[next(iter(named))]
            lines = [_renewed(line, named) for line in lines]
            continue
        last += 1
        numbers[task.number] = last
        tasks += ["", *_renumbered(_task_lines(new, task.first), numbers[task.number])]
    first = _first_section(lines)
    lines = [*_trimmed(lines[:first]), *tasks, *([""] if lines[first:] else []), *lines[first:]]
    for section in reader.CLOSING:
        bullets = [line.text for line in new.block.lessons.get(section, ())]
        marked = [_MARK.sub(lambda found: f"[Task {numbers[int(found[1])]}]", line) for line in bullets]
        lines = _with_bullets(lines, section, marked)
    return lines


def _files(parts: dict[str, list[reader.NumberedLine]]) -> dict[str, str]:
    """Return the sources of a task: their files, and the lines that name them."""
    lines = [line for name in (reader.FILES, reader.RESOURCES) for line in parts.get(name, ())]
    return {found[1]: line.text for line in lines if (found := _FILE.match(line.text))}


def _renewed(line: str, named: dict[str, str]) -> str:
    found = _FILE.match(line)
    return named[found[1]] if found and found[1] in named else line


def _task_lines(part: _BlockLines, first: int) -> list[str]:
    start = first - part.block.first
    after = (at for at in range(start + 1, len(part.lines)) if part.lines[at].startswith("## "))
    return _trimmed(part.lines[start : next(after, len(part.lines))])


def _renumbered(lines: list[str], number: int) -> list[str]:
    return [re.sub(r"^## Task \d+:", f"## Task {number}:", lines[0]), *lines[1:]]


def _first_section(lines: list[str]) -> int:
    headings = {f"## {name}" for name in reader.CLOSING}
    return next((at for at, line in enumerate(lines) if line in headings), len(lines))


def _with_bullets(lines: list[str], section: str, added: list[str]) -> list[str]:
    if not added:
        return lines
    heading = f"## {section}"
    if heading not in lines:
        later = {f"## {name}" for name in reader.CLOSING[reader.CLOSING.index(section) + 1 :]}
        at = next((at for at, line in enumerate(lines) if line in later), len(lines))
        between = [""] if lines[at:] else []
        return [*_trimmed(lines[:at]), "", heading, *added, *between, *lines[at:]]
    start = lines.index(heading) + 1
    end = next((at for at in range(start, len(lines)) if lines[at].startswith("## ")), len(lines))
    own = _trimmed(lines[start:end])
    return [*lines[:start], *own, *added, *([""] if lines[end:] else []), *lines[end:]]


def _trimmed(lines: list[str]) -> list[str]:
    """Return lines without the empty ones at their end."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]
