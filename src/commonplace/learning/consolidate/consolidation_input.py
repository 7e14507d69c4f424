"""What a consolidator works with, from rows, notes and decisions; and what tells whether any of it changed."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Final

import msgspec

from commonplace.config import MemorySettings
from commonplace.learning.consolidate import entry_edits
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory import lessons
from commonplace.memory.edits import notes
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.files import lesson_parser
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.rollout import decisions
from commonplace.state.database import Row

_VERSION: Final = "2"
"""Changes when the same inputs are to give another memory."""


def from_rows(home: Path, root: Path, rows: list[Row], memory: MemorySettings) -> ConsolidationInput:
    """Return what a consolidator works with."""
    found = [_input(row) for row in rows]
    projects = {row["thread_id"]: row["project"] for row in rows}
    material = ConsolidationInput(
        root, found, projects, notes.read(root), Forgotten.load(home), decisions.pins(home), decisions.owned_files(home)
    )
    material.memory = memory
    material.reviews = decisions.reviews(home)
    material.edits = entry_edits.read(root)
    material.settled = {row["thread_id"] for row in rows if _is_settled(row)}
    return material


def _input(row: Row) -> RawMemory:
    """Return what a session taught; without its texts if others are ahead of it."""
    found = RawMemory(
        thread_id=row["thread_id"],
        updated_s=row["source_updated_at"],
        cwd=row["cwd"],
        rollout_path=row["path"],
        git_branch=row["git_branch"],
        raw_memory=row["raw_memory"],
        rollout_summary=row["rollout_summary"],
        rollout_slug=row["rollout_slug"],
        lessons=row["lessons"],
    )
    if row["is_filed"]:
        return found
    stored = found.lessons or lessons.encode(lesson_parser.session_of(found))
    return msgspec.structs.replace(found, raw_memory="", rollout_summary="", lessons=stored)


def _is_settled(row: Row) -> bool:
    """Say whether the last consolidation had what a session taught, just as it is."""
    return bool(row["is_selected"]) and row["selected_source_updated_at"] == row["source_updated_at"]


def fingerprint(home: Path, material: ConsolidationInput) -> str:
    """Return what tells whether anything changed that a memory is made of."""
    digest = hashlib.sha256(_VERSION.encode())
    for each in material.inputs:
        # Rows that were restored from files have no lessons; a session without texts has nothing else.
        told = msgspec.structs.replace(each, lessons=None) if each.has_text else each
        digest.update(msgspec.json.encode([told, material.projects.get(each.thread_id)]))
    digest.update(msgspec.json.encode([material.notes, sorted(material.pinned), sorted(material.owned)]))
    sizes = [material.memory.summary_bytes, material.memory.percent_of_dialogue, material.memory.lines_per_project]
    sizes += [material.memory.max_unused_days, material.memory.review]
    digest.update(msgspec.json.encode([*sizes, sorted(material.reviews.items())]))
    with contextlib.suppress(FileNotFoundError):
        for line in sorted(decisions.forgotten(home), key=lambda each: each.time):
            digest.update(msgspec.json.encode(line))
    if material.people:
        digest.update(msgspec.json.encode(sorted(material.people.items())))
    return digest.hexdigest()
