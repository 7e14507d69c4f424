"""`memory_summary.md`: the short index that later prompts carry, packed under its budget.

Only what holds in every project stands in the preferences and tips, because whoever reads the file may be working on
anything; what holds in one project stands under its name. The most useful goes in first; what does not fit is counted
in the last line.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from commonplace.learning.consolidate.handbook import SessionFacts, rank
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.projects.scope import short_names
from commonplace.protocol.ids import wire_second

VERSION: Final = "v1"
RECENT_DAYS: Final = 3
"""For how many days topics are listed by day."""
_MAX_LEARNING: Final = 140
"""How many characters of an entry a topic shows."""
_MAX_LEARNINGS: Final = 4
"""How many entries a topic shows."""
_HEADINGS: Final = ("## User Profile", "## User preferences", "## General Tips", "## What's in Memory")
_TIPS: Final = ("verify", "environment", "decision", "procedure", "fix", "failure")
_ROOM: Final = 120
"""Kept free for the line that says what was left out."""


class _BudgetedPage:
    """Lines under a budget."""

    def __init__(self, budget: int) -> None:
        self._left = budget
        self.lines: list[str] = []

    def take(self, *lines: str) -> bool:
        """Add lines if they fit."""
        size = sum(len(line.encode()) + 1 for line in lines)
        if size > self._left:
            return False
        self.lines.extend(lines)
        self._left -= size
        return True


def write(entries: list[Entry], sessions: dict[str, SessionFacts], *, budget: int) -> tuple[str, list[Entry]]:
    """Return the file, and the entries that are not in it."""
    fixed = sum(len(heading) + 3 for heading in _HEADINGS) + len(VERSION) + 2 + _ROOM
    page = _BudgetedPage(max(0, budget - fixed))
    everywhere = sorted((entry for entry in entries if entry.is_global), key=rank)
    wishes = [entry for entry in everywhere if entry.kind not in _TIPS]
    tips = [entry for entry in everywhere if entry.kind in _TIPS]
    profile = _profile(entries, sessions)
    profile = profile if page.take(profile) else ""
    left_out: list[Entry] = []
    preferences, general = ([f"- {entry.text}" for entry in chosen] for chosen in (wishes, tips))
    preferences = [line for entry, line in zip(wishes, preferences, strict=True) if _fits(page, entry, line, left_out)]
    general = [line for entry, line in zip(tips, general, strict=True) if _fits(page, entry, line, left_out)]
    index, missed = _index(entries, sessions, page)
    left_out += missed
    more = [f"- {len(left_out)} more: read MEMORY.md"] if left_out else []
    text = [VERSION, "", _HEADINGS[0], profile, "", _HEADINGS[1], *preferences, "", _HEADINGS[2], *general, ""]
    return "\n".join([*text, _HEADINGS[3], *index, *more]) + "\n", left_out


def _fits(page: _BudgetedPage, entry: Entry, line: str, left_out: list[Entry]) -> bool:
    fits = page.take(line)
    if not fits:
        left_out.append(entry)
    return fits


def _profile(entries: list[Entry], sessions: dict[str, SessionFacts]) -> str:
    """Return what is known of the person: where they work."""
    scopes = sorted({each.project for each in sessions.values()})
    if not entries or not scopes:
        return "Nothing is known yet."
    newest: dict[str, int] = {}
    for each in sessions.values():
        newest[each.project] = max(newest.get(each.project, 0), each.input.updated_s)
    names = short_names(scopes, _folders(sessions))
    order = sorted(scopes, key=lambda scope: (-newest[scope], scope))
    shown = ", ".join(names[scope] for scope in order[:8])
    more = f" and {len(order) - 8} more" if len(order) > 8 else ""
    return f"Works on {shown}{more}."


def _folders(sessions: dict[str, SessionFacts]) -> dict[str, str]:
    """Return a folder of each project that sessions are about."""
    return {each.project: each.input.cwd for each in sessions.values()}


def topics(entries: list[Entry], sessions: dict[str, SessionFacts], *, budget: int) -> list[str]:
    """Return the lines that lead to entries, by project and day."""
    page = _BudgetedPage(budget)
    lines, _ = _index(entries, sessions, page)
    return [line for line in lines if line != "### Older Memory Topics"]


def _index(
    entries: list[Entry], sessions: dict[str, SessionFacts], page: _BudgetedPage
) -> tuple[list[str], list[Entry]]:
    """Return the topics: those of the last days by project and day, then the older ones."""
    by_scope: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_scope[entry.scope].append(entry)
    days = sorted({wire_second(entry.last_seen_s)[:10] for entry in entries}, reverse=True)[:RECENT_DAYS]
    names = short_names(sorted(by_scope), _folders(sessions))
    missed: list[Entry] = []
    recent: list[str] = []
    older: list[str] = []
    order = sorted(
        by_scope, key=lambda scope: (scope != GLOBAL, -max(each.last_seen_s for each in by_scope[scope]), scope)
    )
    for scope in order:
        own = sorted(by_scope[scope], key=rank)
        day = wire_second(max(entry.last_seen_s for entry in own))[:10]
        title = names[scope] if scope == GLOBAL else scope
        lines = _topic(scope, names[scope], own, sessions)
        if day in days:
            block = [f"### {title}", f"#### {day}", *lines]
            brief = block[:-1]
            taken = block if page.take(*block) else brief if page.take(*brief) else []
            recent += taken
        else:
            block = [f"#### {title}", lines[0], lines[1]]
            taken = block if page.take(*block) else []
            older += taken
        if len(taken) < len(block):
            missed += [entry for entry in own if scope != GLOBAL]
    heading = ["### Older Memory Topics"]
    return [*recent, *heading, *older], missed


def _topic(scope: str, name: str, entries: list[Entry], sessions: dict[str, SessionFacts]) -> list[str]:
    words = _keywords(scope, entries, sessions)
    counted = f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
    where = "holds everywhere" if scope == GLOBAL else f"only in {scope}"
    lines = [f"- {name}: {', '.join(words) or name}", f"  - desc: {counted}, {where}"]
    told = [] if scope == GLOBAL else [_short(entry.text) for entry in entries[:_MAX_LEARNINGS]]
    return [*lines, *([f"  - learnings: {'; '.join(told)}"] if told else [])]


def _keywords(scope: str, entries: list[Entry], sessions: dict[str, SessionFacts]) -> list[str]:
    threads = {source.thread_id for entry in entries for source in entry.sources if source.thread_id}
    found = [sessions[thread].keywords for thread in sorted(threads) if thread in sessions]
    if scope == GLOBAL:  # what those sessions were about besides is their project's
        told = " ".join(entry.text for entry in entries).lower()
        found = [[word for word in words if word.lower() in told] for words in found]
    return list(dict.fromkeys(word for words in found for word in words[:4]))[:8]


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LEARNING else text[: _MAX_LEARNING - 1].rstrip() + "…"
