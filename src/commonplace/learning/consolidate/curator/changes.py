"""What the deterministic merge changed, and how it is cut into parts that each fit a short conversation.

The first time everything is new. After that a bullet is new if the memory that people read does not have it, for the
same project and in the same section; that its tasks have other numbers now does not count. Where nothing is new there
is no part, and nobody is asked.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from commonplace.learning.consolidate import bullet_sources
from commonplace.learning.consolidate.bullet_sources import HandbookBullet, Key, LearnedEntries, SourcedBullet
from commonplace.learning.consolidate.consolidator import ConsolidatedMemory, by_file
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput, lessons_of
from commonplace.memory import similarity
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.memory.files import existing_handbook
from commonplace.memory.workspace import layout

_NEAR = 0.25
"""Share of the shorter of two bullets that they must have in common for one to be shown beside the other."""
_MOST_NEAR = 8
"""How many of the nearest other bullets are shown."""


class CurationBase(msgspec.Struct):
    """The state that a model starts from: the staged workspace as the deterministic merge left it."""

    root: Path
    is_init: bool
    made: ConsolidatedMemory
    learned: LearnedEntries
    memory: str
    summary: str
    skills: dict[str, str]
    """By their paths."""
    resting: list[SourcedBullet]
    """What each bullet of `memory` is."""
    loose: list[Entry]
    """What the memory holds and its file does not show."""
    settled: dict[Key, SourcedBullet]
    """Bullets that need not be looked at: those of `memory`, and those of conversations that ended well."""
    accepted: str = ""
    """`MEMORY.md` as people read it now."""
    index: str = ""
    """`memory_summary.md` as people read it now."""


def base(material: ConsolidationInput, made: ConsolidatedMemory) -> CurationBase:
    """Return what a model starts from."""
    merged, _ = lessons_of(material)
    memory = (material.root / layout.MEMORY).read_text("utf-8", "replace")
    bullets, fallback = bullet_sources.bullets(memory), existing_handbook.by_key(memory, by_file(material))
    known = LearnedEntries(merged)
    untold = [fallback[each.key] for each in bullets if not known.entries_behind(each)]
    learned = LearnedEntries(merged, untold)
    resting = bullet_sources.trace(bullets, learned, fallback)
    covered = {each.id for one in resting for each in (one.entry, *one.rests)}
    return CurationBase(
        material.root,
        not material.is_kept,
        made,
        learned,
        memory,
        (material.root / layout.SUMMARY).read_text("utf-8", "replace"),
        skills(material.root),
        resting,
        [entry for entry in made.entries if entry.id not in covered],
        {each.bullet.key: each for each in resting},
        _text(material.accepted, layout.MEMORY),
        _text(material.accepted, layout.SUMMARY),
    )


def skills(root: Path) -> dict[str, str]:
    """Return the texts of skills, by their paths from the workspace."""
    found = sorted((root / layout.SKILLS).rglob("*")) if (root / layout.SKILLS).is_dir() else []
    return {
        path.relative_to(root).as_posix(): path.read_text("utf-8", "replace")
        for path in found
        if path.is_file() and not path.is_symlink()
    }


def _text(root: Path | None, name: str) -> str:
    place = root / name if root is not None else None
    return place.read_text("utf-8", "replace") if place is not None and place.is_file() else ""


class ConversationPart(msgspec.Struct):
    """The bullets that one conversation is about."""

    bullets: list[SourcedBullet]
    near: list[SourcedBullet]

    @property
    def ids(self) -> set[str]:
        """The entries that are shown."""
        return {each.entry.id for each in (*self.bullets, *self.near)}


def parts(curation_base: CurationBase, *, room: int, beside: int) -> list[ConversationPart]:
    """Return what is new, in parts of at most so many bytes, each with the nearest of what is not."""
    known = (
        set[Key]() if curation_base.is_init else {each.key for each in bullet_sources.bullets(curation_base.accepted)}
    )
    new = [each for each in curation_base.resting if each.bullet.key not in known]
    cut: list[list[SourcedBullet]] = []
    left = 0
    for each in new:
        size = len(each.bullet.text.encode()) + 200
        if size > left:
            cut.append([])
            left = room
        cut[-1].append(each)
        left -= size
    return [ConversationPart(each, _near(each, curation_base.resting, beside)) for each in cut]


def _near(chosen: list[SourcedBullet], everything: list[SourcedBullet], room: int) -> list[SourcedBullet]:
    """Return the bullets that share the most with some, for the same project or for all, the nearest first."""
    own = {each.bullet.line for each in chosen}
    scopes = {each.bullet.scope for each in chosen} | {GLOBAL}
    asked = [(each.bullet, similarity.words(each.bullet.statement)) for each in chosen]
    ranked: list[tuple[float, int, SourcedBullet]] = []
    for other in everything:
        if other.bullet.line in own or other.bullet.scope not in scopes:
            continue
        words = similarity.words(other.bullet.statement)
        score = max(_closeness(mine, words, bullet, other.bullet) for bullet, mine in asked)
        if score >= _NEAR:
            ranked.append((-score, other.bullet.line, other))
    near: list[SourcedBullet] = []
    for _, _, each in sorted(ranked, key=lambda one: one[:2])[:_MOST_NEAR]:
        room -= len(each.bullet.text.encode())
        if room < 0:
            break
        near.append(each)
    return near


def _closeness(
    one: similarity.ComparedWords, two: similarity.ComparedWords, bullet: HandbookBullet, other: HandbookBullet
) -> float:
    """Return how much two bullets have in common; what contradicts counts as much as what agrees."""
    if GLOBAL not in (bullet.scope, other.scope) and bullet.scope != other.scope:
        return 0.0
    shared, least = one.about & two.about, min(one.weight, two.weight)
    together = bool(one.concepts & two.concepts) or any(family in two.chosen for family in one.chosen)
    return max(similarity.weight(shared) / least if least and shared else 0.0, _NEAR if together else 0.0)
