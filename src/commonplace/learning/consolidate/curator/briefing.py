"""What a conversation begins with: the bullets it is about, what taught them, and the nearest that are there already.

Everything is cut to a size, and without secrets: whoever wrote it, it leaves this machine.
"""

from __future__ import annotations

from typing import Final

from commonplace.learning.consolidate import bullet_sources
from commonplace.learning.consolidate.bullet_sources import SourcedBullet
from commonplace.learning.consolidate.curator import prompts
from commonplace.learning.consolidate.curator.changes import ConversationPart, CurationBase
from commonplace.memory.entries import GLOBAL, Source, normal
from commonplace.protocol.ids import wire_second
from commonplace.redact import redact

_SOURCES: Final = 2
"""How many quotations a bullet is shown with."""
_QUOTE: Final = 240
"""How many characters of a quotation are shown."""
_GONE: Final = 6
"""How many removed bullets are shown."""
_INDEX_BYTES: Final = 2_000
"""How many bytes of new lines of the index are shown."""


def message(base: CurationBase, part: ConversationPart, number: int, total: int) -> str:
    """Return what a conversation about a part of the memory begins with."""
    values = {"number": str(number), "total": str(total)}
    said = [prompts.text("init" if base.is_init else "incremental", **values)]
    if not base.is_init and total > 1:
        said[0] += " " + prompts.text("part", **values)
    said.append(_bullets(part.bullets))
    if part.near:
        lines = [f"{each.bullet.line} ({each.bullet.scope}): {each.bullet.text}" for each in part.near]
        said.append("\n".join([prompts.text("near"), *lines]))
    if not base.is_init and number == total:
        said += _other_changes(base)
    return redact("\n\n".join([*said, prompts.text("end")]))


def first_page(summary: str, most: int) -> str:
    """Return what the conversation about the summary begins with; `most` is how many bytes it may have."""
    return redact("\n\n".join([prompts.text("summary", most=f"{most:,}"), summary.rstrip("\n"), prompts.text("end")]))


def _bullets(bullets: list[SourcedBullet]) -> str:
    lines: list[str] = []
    place: tuple[int, str] | None = None
    for each in bullets:
        bullet = each.bullet
        if place is None or place[0] != bullet.block:
            where = "scope: global" if bullet.scope == GLOBAL else f"scope: project {bullet.scope}"
            lines += ["", f"In the block with {where}, from line {bullet.line}:"]
        if place != (bullet.block, bullet.section):
            lines.append(f"## {bullet.section}")
        place = (bullet.block, bullet.section)
        lines += [bullet.text, *_evidence(each)]
    return "\n".join(lines).strip("\n")


def _evidence(one: SourcedBullet) -> list[str]:
    """Return the words that taught a bullet, where they say more than it does."""
    told, found = normal(one.bullet.statement), list[Source]()
    sources = sorted((source for each in one.rests for source in each.sources), key=lambda source: -source.updated_s)
    for source in sources:
        is_new = all(normal(source.quote) != normal(other.quote) for other in found)
        if normal(source.quote) not in told and is_new:
            found.append(source)
    shown = found[:_SOURCES] or sources[:1]
    return [f"    {_when(each)}, {each.how}" + (f': "{_cut(each.quote)}"' if each in found else "") for each in shown]


def _when(source: Source) -> str:
    return wire_second(source.updated_s)[:10]


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _QUOTE else flat[:_QUOTE] + "…"


def _other_changes(base: CurationBase) -> list[str]:
    """Return what else changed: what is gone, and the lines of the summary that are new."""
    here = {each.key for each in bullet_sources.bullets(base.memory)}
    gone = [each.text for each in bullet_sources.bullets(base.accepted) if each.key not in here][:_GONE]
    said = ["\n".join([prompts.text("gone"), *map(_cut, gone)])] if gone else []
    before, room, new = set(base.index.split("\n")), _INDEX_BYTES, list[str]()
    for line in base.summary.split("\n"):
        room -= len(line.encode()) if line not in before else 0
        if line.strip() and line not in before and room >= 0:
            new.append(line)
    return said + (["\n".join([prompts.text("index"), *new])] if new else [])
