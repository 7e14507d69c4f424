"""A kept memory within its budget: sources told more briefly first, then without the least useful bullets.

Tasks stay, since they tell which sessions the memory knows; what is left out is still known, and `memory list` has it.
What a person pinned or noted is never left out.
"""

from __future__ import annotations

from typing import Final

from commonplace.learning.consolidate import bullet_sources, handbook
from commonplace.learning.consolidate.bullet_sources import Key
from commonplace.memory.entries import Entry
from commonplace.patterns import regex

_SOURCE: Final = regex(
    r"^(- rollout_summaries/[^ ()]+ \(cwd=(?>(?:(?!, rollout_path=).)*), rollout_path=)"
    r"(?>(?:(?>(?:(?!, updated_at=)[^/])*)/)*)"
    r"((?>(?:(?!\.jsonl)[^/])+)\.jsonl(?:\.zst)?, updated_at=[^,)]++)(?>(?:, thread_id=[^,)]++)?)(.*\))$"
)
_KEYWORDS: Final = "### keywords"
_MOST_KEYWORDS: Final = 4


def fit(text: str, entries: dict[Key, Entry], *, wanted: int, most: int) -> tuple[str, list[Entry]]:
    """Return `MEMORY.md` within `most` bytes, as far as that can be, and what is left out of it.

    Args:
        text: the file.
        entries: what its bullets are.
        wanted: beyond this, sources are told more briefly.
        most: beyond this, bullets are left out.
    """
    if len(text.encode()) <= wanted:
        return text, []
    text = _briefly(text)
    over = len(text.encode()) - most
    if over <= 0:
        return text, []
    found = [(entries[each.key], each) for each in bullet_sources.bullets(text) if each.key in entries]
    dropped: dict[int, Entry] = {}
    for entry, bullet in sorted(found, key=lambda one: handbook.rank(one[0]), reverse=True):
        if over <= 0:
            break
        if not entry.pinned and not any(source.note for source in entry.sources):
            dropped[bullet.line] = entry
            over -= len(bullet.text.encode()) + 1
    lines = [line for number, line in enumerate(text.split("\n"), 1) if number not in dropped]
    return "\n".join(lines), list(dropped.values())


def _briefly(text: str) -> str:
    """Tell sources by the names of their files, and tasks by a few words."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and lines[-1] == _KEYWORDS:
            words = line.removeprefix("- ").split(", ")
            lines.append(f"- {', '.join(words[:_MOST_KEYWORDS])}")
        else:
            lines.append(_SOURCE.sub(r"\1\2\3", line))
    return "\n".join(lines)
