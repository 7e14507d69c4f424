"""What a model may not do to the memory, checked on what it wrote.

* Every bullet that it changed rests on what sessions taught for the same project: in its words and in its names.
* A preference or a rule rests on a person's own words. What a tool or a page said never becomes an instruction.
* What a person asked to forget does not come back; what they pinned or noted does not go.
* What the model was not shown stays; no project and no source goes.

The sources of a bullet are found among the learned entries (`bullet_sources`), so that it keeps its sources to the
byte, and its id.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from commonplace.learning.consolidate import bullet_sources
from commonplace.learning.consolidate.bullet_sources import SourcedBullet
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, by_file
from commonplace.learning.consolidate.curator import grounding, summary_checks
from commonplace.learning.consolidate.curator.changes import CurationBase
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory.entries import Entry
from commonplace.memory.files import existing_handbook
from commonplace.memory.files import handbook as reader
from commonplace.memory.workspace import layout

_SHOWN = 100
"""How many characters of a bullet a problem quotes."""


class CurationReview(msgspec.Struct):
    """The memory that a model left, and the problems with it."""

    consolidated: ConsolidatedMemory
    problems: list[str]
    found: list[SourcedBullet] = []
    """What each bullet of it is."""


def review(material: ConsolidationInput, base: CurationBase, shown: set[str]) -> CurationReview:
    """Read the memory back, with what each bullet rests on; `shown` are the entries that may be changed."""
    memory = _text(material, layout.MEMORY)
    before = base.settled
    bullets = bullet_sources.bullets(memory)
    files = by_file(material)
    found = bullet_sources.trace(bullets, base.learned, existing_handbook.by_key(memory, files), before)
    wrong: list[str] = []
    origins = _origins(memory, {file: each.thread_id for file, each in files.items()})
    for each in found:
        if each.bullet.key not in before:
            wrong += _bullet(material, each, origins)
    wrong += _twice(found)
    wrong += _missing(material, base, found, shown)
    wrong += _sources(base, memory)
    entries = [each.entry for each in found] + base.loose
    wrong += summary_checks.problems(material, base, entries, memory)
    return CurationReview(_consolidated(material, base, found), wrong, found)


def _text(material: ConsolidationInput, name: str) -> str:
    place = material.root / name
    return place.read_text("utf-8", "replace") if place.is_file() else ""


def _bullet(
    material: ConsolidationInput, one: SourcedBullet, origins: dict[tuple[int, int], set[str]]
) -> Iterator[str]:
    """Yield what is wrong with a bullet that a model wrote."""
    told = one.bullet.statement
    if (
        told in material.forgotten or material.forgotten.forgotten_within(told) is not None
    ):  # its words are repeated nowhere
        yield f"MEMORY.md: line {one.bullet.line} says what the person asked to forget."
        return
    why = _ungrounded(material, one) or _mismarked(one, origins)
    if why is not None:
        yield f"MEMORY.md: {_cut(one.bullet.text)!r} {why}."


def _ungrounded(material: ConsolidationInput, one: SourcedBullet) -> str | None:
    """Return why a bullet does not rest on what its sessions taught."""
    is_wish = one.bullet.section == "User preferences"
    rests = grounding.wishes(one.rests) if is_wish else one.rests
    if not rests:
        who = "that the person said" if is_wish and one.rests else "that its sessions taught"
        return f"rests on nothing {who} for {one.bullet.scope}"
    words = grounding.of_entries(rests, only_persons=is_wish)
    threads = {source.thread_id for each in rests for source in each.sources}
    taught = "" if is_wish else "\n".join(each.raw_memory for each in material.inputs if each.thread_id in threads)
    why = grounding.problem(one.bullet.statement, words, taught, may_order=is_wish or bool(grounding.wishes(rests)))
    return why or (grounding.reversal(one.bullet.statement, rests) if is_wish else None)


def _mismarked(one: SourcedBullet, origins: dict[tuple[int, int], set[str]]) -> str | None:
    """Return why not, if a bullet names only tasks that did not teach it, though the block has one that did."""
    own = {source.note or source.thread_id or "" for each in one.rests for source in each.sources}
    block, marks = one.bullet.block, one.bullet.marks
    here = set[str]().union(*(found for (place, _), found in origins.items() if place == block))
    named = set[str]().union(*(origins.get((block, mark), set()) for mark in marks))
    return "names tasks that did not teach it" if marks and own & here and not own & named else None


def _origins(memory: str, threads: dict[str, str]) -> dict[tuple[int, int], set[str]]:
    """Return the sessions and notes of each task, by its block and its number."""
    found: dict[tuple[int, int], set[str]] = {}
    for place, block in enumerate(reader.parse(memory)[0]):
        for task in block.tasks:
            lines = (line.text for part in task.parts.values() for line in part)
            named = {file for line in lines if (file := existing_handbook.file_of(line))}
            found[(place, task.number)] = {threads.get(file, file) for file in named}
    return found


def _twice(bullets: list[SourcedBullet]) -> Iterator[str]:
    seen: set[tuple[str, str, str]] = set()
    for each in bullets:
        if each.bullet.key in seen:
            yield f"MEMORY.md: {_cut(each.bullet.text)!r} stands there twice."
        seen.add(each.bullet.key)


def _missing(
    material: ConsolidationInput, base: CurationBase, bullets: list[SourcedBullet], shown: set[str]
) -> Iterator[str]:
    """Yield what is no longer there and must be."""
    covered = {each.id for one in bullets for each in (one.entry, *one.rests)}
    for one in base.resting:
        entry = one.entry
        if covered & {entry.id, *(each.id for each in one.rests)}:
            continue
        if entry.id in material.pinned or any(source.note for source in entry.sources):
            yield f"MEMORY.md: {_cut(one.bullet.text)!r} is what the person pinned or noted, and is gone."
        elif entry.id not in shown:
            yield f"MEMORY.md: {_cut(one.bullet.text)!r} was not yours to remove, and is gone."
    pinned = {one.entry.id for one in base.resting if one.entry.id in material.pinned}
    for lost in sorted(pinned & covered - {each.entry.id for each in bullets}):
        yield f"MEMORY.md: the pinned entry {lost} was merged into another; it must stay a bullet of its own."
    scopes = {each.bullet.scope for each in bullets}
    for scope in sorted({one.bullet.scope for one in base.resting} - scopes):
        yield f"MEMORY.md: nothing is left for {scope}."


def _sources(base: CurationBase, memory: str) -> Iterator[str]:
    """Yield the sources and frames that a model touched: they are not its to change."""
    files = existing_handbook.files(memory)
    for file in existing_handbook.files(base.memory):
        if file not in files:
            yield f"MEMORY.md: {file} is no longer named as a source."
    if _frame(memory) != _frame(base.memory):
        yield "MEMORY.md: a heading, a scope, a task or its files were changed; only bullets may be."


def _frame(memory: str) -> list[str]:
    """Return the lines of a `MEMORY.md` that are no bullets of lessons; sections that hold nothing do not count."""
    lines: list[str] = []
    for block in reader.parse(memory)[0]:
        lines += [block.title, *(line.text for line in (*block.head, *block.strays))]
        for task in block.tasks:
            lines.append(f"{task.number}: {task.name}")
            lines += [f"{name}: {line.text}" for name, part in task.parts.items() for line in part]
    return lines


def _consolidated(material: ConsolidationInput, base: CurationBase, bullets: list[SourcedBullet]) -> ConsolidatedMemory:
    """Return what the memory holds now."""
    entries: dict[str, Entry] = {}
    for one in bullets:
        entries.setdefault(one.entry.id, one.entry)
    taken = {each.id: one.entry for one in bullets for each in one.rests if each.id != one.entry.id}
    for entry in base.loose:
        if entry.id not in taken:
            entries.setdefault(entry.id, entry)
    for entry in entries.values():
        entry.pinned = entry.id in material.pinned
    made = base.made
    merged = [(each, taken[each.id]) for each in made.entries if each.id in taken and each.id not in entries]
    replaced = [(old, new) for old, new in made.replaced if new.id in entries and old.id not in entries]
    left_out, unlisted = (
        [entries[each.id] for each in listed if each.id in entries] for listed in (made.left_out, made.unlisted)
    )
    return ConsolidatedMemory(list(entries.values()), [*replaced, *merged], left_out, unlisted)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
