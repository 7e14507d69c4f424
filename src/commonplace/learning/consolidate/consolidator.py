"""The consolidator that needs no model: lessons and notes in, the memory's files out, always the same for the same.

lessons of the inputs, less what was forgotten, and notes → merged → entries → MEMORY.md, memory_summary.md, skills/
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from typing import Final

import msgspec

from commonplace.config import MemorySettings
from commonplace.learning.consolidate import (
    bullet_sources,
    entry_edits,
    handbook,
    handbook_budget,
    handbook_join,
    merge,
    repeated_steps,
    skills,
    summary,
)
from commonplace.learning.consolidate.bullet_sources import LearnedEntries, SourcedBullet
from commonplace.learning.consolidate.entry_edits import EditedEntries
from commonplace.learning.consolidate.handbook import BlockTitle, SessionFacts
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput, lessons_of
from commonplace.learning.consolidate.skills import LearnedSkill
from commonplace.memory import audience, similarity
from commonplace.memory.entries import SECTION_OF, Entry
from commonplace.memory.files import existing_handbook as kept
from commonplace.memory.files import lesson_parser, validation
from commonplace.memory.files.raw_memories import RawMemory, stems
from commonplace.memory.injection import is_injection
from commonplace.memory.lessons import SessionLesson
from commonplace.memory.workspace import layout
from commonplace.memory.workspace.staging import put
from commonplace.projects.scope import short_names
from commonplace.protocol.ids import wire_second
from commonplace.redact import redact

MIN_BUDGET: Final = 6_000
"""The memory may always have this many bytes."""
MIN_PER_SESSION: Final = 600
"""The memory may always have this many bytes for each session."""
_SUMMARY_SHARE: Final = 0.3
"""The share of the budget for `memory_summary.md`."""


class ConsolidatedMemory(msgspec.Struct):
    """The entries that the memory holds after a consolidation."""

    entries: list[Entry]
    replaced: list[tuple[Entry, Entry]]
    left_out: list[Entry]
    """What did not fit into MEMORY.md."""
    unlisted: list[Entry]
    """What did not fit into the summary."""
    candidates: list[Entry] = []
    """What waits for another session or for a person: no part of any file."""
    warnings: list[str] = []
    """What a person should know about how it was made."""


class MergeConsolidator:
    """The embedded consolidator: it merges lessons by rules and needs no model."""

    name = "embedded"

    def consolidate(self, material: ConsolidationInput) -> ConsolidatedMemory:
        """Write the memory's files; return what they hold."""
        merged, learned = lessons_of(material)
        edited = entry_edits.apply(merged.entries, () if material.is_kept else material.edits.kept, material.forgotten)
        merged.entries, merged.replaced = edited.entries, [*merged.replaced, *edited.joined]
        candidates = [entry for entry in merged.entries if not entry.is_listed]
        merged.entries = [entry for entry in merged.entries if entry.is_listed]
        sessions = sessions_of(material, learned)
        made = _write(material, merged, sessions, edited) if not material.is_kept else _add(material, merged, sessions)
        made.candidates = sorted(candidates, key=handbook.rank)
        return made


def entries_of(material: ConsolidationInput) -> list[Entry]:
    """Return what the memory holds, the most useful first, without writing anything."""
    merged, _ = lessons_of(material)
    edited = entry_edits.apply(merged.entries, material.edits.kept, material.forgotten)
    return sorted((entry for entry in edited.entries if entry.is_listed), key=handbook.rank)


def sessions_of(material: ConsolidationInput, learned: list[SessionLesson]) -> dict[str, SessionFacts]:
    """Return the sessions that taught something."""
    taught = {lesson.thread_id: lesson.project for lesson in learned}
    names = stems(material.filed)
    found: dict[str, SessionFacts] = {}
    for source in material.filed:
        if source.thread_id in taught:
            session = lesson_parser.session_of(source)
            task = next((each for each in session.tasks if any(lesson.is_listed for lesson in each.lessons)), None)
            title = session.title or (task.name if task else "")
            found[source.thread_id] = SessionFacts(
                source,
                f"{layout.SUMMARIES}/{names[source.thread_id]}.md",
                taught[source.thread_id],
                "" if is_injection(title) else validation.plain(title),
                task.outcome if task else "",
                list(session.keywords),
            )
    return found


class SizeBudget(msgspec.Struct, frozen=True):
    """The allowed size of the memory, in bytes."""

    most: int
    """Above this size, entries are left out."""
    wanted: int
    """Above this size, sources are told more briefly."""


def budget(inputs: list[RawMemory], percent: int = MemorySettings().percent_of_dialogue) -> SizeBudget:
    """Return how large `MEMORY.md` and the summary may be together.

    That is a share of the dialogue that they were learned from, but never less than a few entries need.
    """
    whole = spoken = 0
    for each in inputs:
        session = lesson_parser.session_of(each)
        size = session.dialogue_bytes or 8 * len(each.rollout_summary.encode())
        whole += size
        spoken += session.spoken_bytes or size
    least = max(MIN_BUDGET, MIN_PER_SESSION * len(inputs))
    return SizeBudget(max(least, whole * percent // 100), max(MIN_BUDGET, spoken * percent // 100))


def _write(
    material: ConsolidationInput,
    merged: merge.MergedLessons,
    sessions: dict[str, SessionFacts],
    edited: EditedEntries,
) -> ConsolidatedMemory:
    allowed = budget(material.inputs, material.memory.percent_of_dialogue)
    entries = sorted(merged.entries, key=handbook.rank)
    found = _skills(material, edited)
    titles = {scope: BlockTitle(each.title, each.keywords) for scope, each in edited.titles.items()}
    share = max(MIN_BUDGET // 3, int(allowed.wanted * _SUMMARY_SHARE))
    common = audience.common(entries)  # agents put this file into anybody's prompt
    digest, unlisted = summary.write(common, sessions, budget=min(material.memory.summary_bytes, share))
    rest = SizeBudget(allowed.most - len(digest.encode()), allowed.wanted - len(digest.encode()))
    chosen = handbook.within_lines(entries, material.memory.lines_per_project)
    text, shown = _fit(chosen, sessions, found, rest, titles)
    _write_skills(material, found)
    put(material.root / layout.MEMORY, clean(text))
    put(material.root / layout.SUMMARY, clean(digest))
    ids = {entry.id for entry in shown}
    return ConsolidatedMemory(entries, merged.replaced, [each for each in entries if each.id not in ids], unlisted)


def _add(
    material: ConsolidationInput, merged: merge.MergedLessons, known: dict[str, SessionFacts]
) -> ConsolidatedMemory:
    """Keep the memory that is there, without what nothing supports or holds any more, and add what is new."""
    root = material.root
    memory = (root / layout.MEMORY).read_text("utf-8", "replace")
    left, resting = _kept_memory(material, memory, merged)
    told, covered = kept.files(left), {each.id for one in resting for each in (one.entry, *one.rests)}
    old = [one.entry for one in resting]
    news = _new_sources(material, told)
    new = [
        each
        for each in sorted(merged.entries, key=handbook.rank)
        if each.id not in covered
        and (each.id in material.reviews or any((source.note or source.thread_id) in news for source in each.sources))
        and not kept.is_known(each, old)
    ]
    for entry in (*old, *new):
        entry.pinned = entry.id in material.pinned
    place, most = root / layout.SUMMARY, material.memory.summary_bytes
    if place.is_file() and not list(validation.summary(place.read_text("utf-8", "replace"), most)):
        wishes, topics = [each for each in new if each.is_global], summary.topics(new, known, budget=most)
        digest = kept.summary(place.read_text("utf-8"), wishes, topics, budget=most)
    else:
        digest, _ = summary.write(audience.common([*old, *new]), known, budget=most)
    put(place, clean(digest))
    by_key = {one.bullet.key: one.entry for one in resting}
    by_key |= {(each.scope, SECTION_OF[each.kind], each.text): each for each in new}
    allowed = budget(material.inputs, material.memory.percent_of_dialogue)
    size = len(digest.encode())
    text = handbook_join.join(left, handbook.write(new, known, {}))
    text, left_out = handbook_budget.fit(text, by_key, wanted=allowed.wanted - size, most=allowed.most - size)
    put(root / layout.MEMORY, clean(text))
    here = {entry.id for entry in (*old, *new)}
    untold = [each for each in merged.entries if each.id in material.hidden and each.id not in covered | here]
    replaced = [(was, now) for was, now in merged.replaced if now.id in here and was.id not in here]
    return ConsolidatedMemory(_unique_entries([*old, *new, *untold]), replaced, [*left_out, *untold], [])


def _kept_memory(
    material: ConsolidationInput, memory: str, merged: merge.MergedLessons
) -> tuple[str, list[SourcedBullet]]:
    """Return what of a memory stays, and what its bullets rest on."""
    asked = [note for note in material.notes if note.action != "remember" and not note.by_model]
    gone = [similarity.words(note.target or note.text) for note in asked]

    def is_gone(said: str) -> bool:
        return said in material.forgotten or any(similarity.is_same(similarity.words(said), words) for words in gone)

    left = kept.without_unsupported(memory, lambda path: (material.root / path).is_file(), is_gone)
    known = LearnedEntries(merged)
    over = {each.line for each in bullet_sources.bullets(left) if known.is_over(each)}
    over |= _dropped(material, left, merged)
    left = "\n".join(line for number, line in enumerate(left.split("\n"), 1) if number not in over)
    return left, bullet_sources.trace(bullet_sources.bullets(left), known, kept.by_key(left, by_file(material)))


def _dropped(material: ConsolidationInput, memory: str, merged: merge.MergedLessons) -> set[int]:
    """Return the lines of a memory that tell entries which a person dropped."""
    if not material.dropped:
        return set()
    known = LearnedEntries(merged, merged.dropped)
    traced = bullet_sources.trace(bullet_sources.bullets(memory), known, kept.by_key(memory, by_file(material)))
    return {one.bullet.line for one in traced if one.entry.id in material.dropped and not one.entry.is_by_hand}


def _new_sources(material: ConsolidationInput, told: dict[str, str]) -> set[str]:
    """Return the sessions and notes that a memory does not name, or that taught something since it named them."""
    sessions = {
        each.thread_id
        for file, each in by_file(material).items()
        if each.thread_id not in material.settled and told.get(file, "")[:19] < wire_second(each.updated_s)[:19]
    }
    return sessions | {note.path for note in material.notes if note.path not in told}


def _unique_entries(entries: list[Entry]) -> list[Entry]:
    """Return entries, each id once."""
    return list({entry.id: entry for entry in reversed(entries)}.values())[::-1]


def by_file(material: ConsolidationInput) -> dict[str, RawMemory]:
    """Return the sessions by the files of their summaries."""
    sessions = {each.thread_id: each for each in material.filed}
    return {f"{layout.SUMMARIES}/{name}.md": sessions[thread] for thread, name in stems(material.filed).items()}


def _skills(material: ConsolidationInput, edited: EditedEntries) -> list[LearnedSkill]:
    """Return what worked again and again or a model wrote down, and nobody asked to forget or removed by hand."""
    found = [
        each
        for each in repeated_steps.procedures(material.inputs, material.projects)
        if not any(_steps_text(run) in material.forgotten for run in each.runs)
        and not any(is_injection(step) for run in each.runs for step in run.steps)
    ]
    made = skills.of_procedures(found, short_names(sorted(set(material.projects.values()))))
    known = {skill.name for skill in made}
    made += [skills.of_edit(edit, entries) for edit, entries in edited.skills if edit.name not in known]
    files = {skill.name: f"{layout.SKILLS}/{skill.name}/SKILL.md" for skill in made}
    return [
        skill
        for skill in made
        if files[skill.name] not in material.owned or (material.root / files[skill.name]).is_file()
    ]


def _steps_text(run: repeated_steps.SuccessfulCommands) -> str:
    """Return steps as a lesson tells them."""
    return f"steps to {run.task}: " + " -> ".join(f"`{step}`" for step in run.steps)


def _fit(
    entries: list[Entry],
    sessions: dict[str, SessionFacts],
    learned_skills: list[LearnedSkill],
    allowed: SizeBudget,
    titles: dict[str, BlockTitle],
) -> tuple[str, list[Entry]]:
    """Return MEMORY.md within its budget: told more briefly first, then without the least useful entries."""
    pointers: dict[str, list[str]] = defaultdict(list)
    for skill in learned_skills:
        pointers[skill.project].append(f"{layout.SKILLS}/{skill.name}/SKILL.md")
    text = ""
    for brevity in handbook.LEVELS:
        text = handbook.write(entries, sessions, pointers, brevity, titles)
        if len(text.encode()) <= allowed.wanted:
            return text, entries
    if len(text.encode()) <= allowed.most:
        return text, entries
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high + 1) // 2
        size = len(handbook.write(entries[:middle], sessions, pointers, handbook.LEVELS[-1], titles).encode())
        low, high = (middle, high) if size <= allowed.most else (low, middle - 1)
    return handbook.write(entries[:low], sessions, pointers, handbook.LEVELS[-1], titles), entries[:low]


def _write_skills(material: ConsolidationInput, learned_skills: list[LearnedSkill]) -> None:
    """Write the skills, and remove those of ours that nothing supports; a person's own stay."""
    folder = material.root / layout.SKILLS
    wanted = {skill.name for skill in learned_skills}
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_theirs = validation.is_owned(place.name, material.owned)
        if place.name not in wanted and not is_theirs and place.is_dir():
            shutil.rmtree(place)
    for skill in learned_skills:
        path = f"{layout.SKILLS}/{skill.name}/SKILL.md"
        if path not in material.owned:
            put(material.root / path, clean(skill.text))


def clean(text: str) -> str:
    """Take secrets out once more: words that were harmless apart may look like one beside each other."""
    cleaned = redact(text)
    return cleaned if cleaned == text else redact(cleaned)
