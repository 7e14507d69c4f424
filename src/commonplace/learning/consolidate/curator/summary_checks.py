"""The rails for `memory_summary.md` and `skills/`: what every later agent reads first says nothing that is not known.

A preference or a tip of the summary is an entry that holds everywhere; a line of its index says what `MEMORY.md` says
for that project. A line of a skill names no command, path or number that no session had. Lines that a model left as the
program wrote them are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.learning.consolidate import bullet_sources
from commonplace.learning.consolidate.curator import grounding
from commonplace.learning.consolidate.curator.changes import CurationBase, skills
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.memory.entries import GLOBAL, Entry, normal
from commonplace.memory.files import handbook as reader
from commonplace.memory.workspace import layout

_PROFILE: Final = "## User Profile"
_PROFILE_WORDS: Final = 350
"""The most words of the profile."""
_EVERYWHERE: Final = {"## User preferences": True, "## General Tips": False}
"""The sections of what holds everywhere, and whether only a person's wishes stand there."""
_HEADING: Final = re.compile(r"^#{2,4} (.+)$")
_NEAR: Final = 0.6
"""A line of the summary this close to an entry says what the entry says."""
_SHOWN: Final = 100


def problems(material: ConsolidationInput, base: CurationBase, entries: list[Entry], memory: str) -> Iterator[str]:
    """Yield what is wrong with what a model wrote beside `MEMORY.md`."""
    place = material.root / layout.SUMMARY
    text = place.read_text("utf-8", "replace") if place.is_file() else ""
    if text != base.summary:
        yield from (f"memory_summary.md: {each}" for each in _summary(material, base, entries, memory, text))
    everything = "\n".join([memory, *(each.raw_memory for each in material.inputs)])
    for path, skill in skills(material.root).items():
        if skill != base.skills.get(path):
            yield from (f"{path}: {each}" for each in _skill(material, skill, base.skills.get(path, ""), everything))


def _summary(
    material: ConsolidationInput, base: CurationBase, entries: list[Entry], memory: str, text: str
) -> Iterator[str]:
    before, known = set(base.summary.split("\n")), _by_scope(memory)
    section, scope, profile = "", GLOBAL, 0
    for number, line in enumerate(text.split("\n"), 1):
        heading = _HEADING.match(line)
        if heading:
            section = line if line.startswith("## ") else section
            is_day = line.startswith("#### ") and heading[1] not in known
            scope = scope if is_day else heading[1] if heading[1] in known else GLOBAL
            if line not in before:
                yield f"{_cut(line)!r} is a heading that was not there."
            continue
        profile += len(line.split()) if section == _PROFILE else 0
        if not line.strip() or line in before:
            continue
        if material.forgotten.forgotten_within(line) is not None:
            yield f"line {number} says what the person asked to forget."
            continue
        names = "\n".join([_profile(base.summary), *known]) if section == _PROFILE else ""
        why = _everywhere(line, section, entries) if section in _EVERYWHERE else _indexed(line, scope, known, names)
        if why is not None:
            yield f"{_cut(line)!r} {why}."
    if profile > _PROFILE_WORDS:
        yield f"the profile has {profile} words, and {_PROFILE_WORDS} is the most."
    gone = [line for line in base.summary.split("\n") if _HEADING.match(line) and line not in text.split("\n")]
    yield from (f"the heading {_cut(line)!r} is gone." for line in gone)


def _everywhere(line: str, section: str, entries: list[Entry]) -> str | None:
    """Return what is wrong with a line that is said to hold in every project."""
    is_wish = _EVERYWHERE[section]
    told = line.removeprefix("- ")
    own = [each for each in entries if each.scope == GLOBAL]
    own = grounding.wishes(own) if is_wish else own
    near = [each for each in own if normal(each.text) == normal(line) or bullet_sources.closeness(told, each) >= _NEAR]
    if not near:
        return "is nothing that the person wants everywhere" if is_wish else "is nothing that holds in every project"
    words = grounding.of_entries(near, only_persons=is_wish)
    return grounding.problem(line, words, "", may_order=is_wish or bool(grounding.wishes(near)))


def _indexed(line: str, scope: str, known: dict[str, str], names: str) -> str | None:
    """Return what is wrong with a line of the profile, or of the index of a project: it says what others' do not."""
    words = "\n".join([known.get(scope, ""), known.get(GLOBAL, ""), scope, names])
    return grounding.problem(line, words, "", may_order=False)


def _profile(summary: str) -> str:
    return summary.partition(_PROFILE)[2].partition("\n## ")[0]


def _by_scope(memory: str) -> dict[str, str]:
    """Return the text of `MEMORY.md` by the scopes of its blocks."""
    lines, found = memory.split("\n"), dict[str, str]()
    blocks, _ = reader.parse(memory)
    ends = [*(block.first - 1 for block in blocks[1:]), len(lines)]
    for block, end in zip(blocks, ends, strict=True):
        scope = block.scope or GLOBAL
        found[scope] = "\n".join([found.get(scope, ""), *lines[block.first - 1 : end]])
    return found


def _skill(material: ConsolidationInput, text: str, before: str, everything: str) -> Iterator[str]:
    known = set(before.split("\n"))
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line in known or line == "---" or line.startswith(("name:", "#")):
            continue
        if material.forgotten.forgotten_within(line) is not None:
            yield f"line {number} says what the person asked to forget."
            continue
        why = grounding.problem(line, everything, "")
        if why is not None:
            yield f"{_cut(line)!r} {why}."


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
