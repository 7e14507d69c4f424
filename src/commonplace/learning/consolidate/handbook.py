"""`MEMORY.md`: entries by project, each with the sessions it rests on.

One block per project, and one for what holds everywhere; in it one task that names the newest sessions, then what they
taught. A block has a number of lines, and the file a budget. What does not fit is left out from the least useful end,
and said; before that, sessions are told more briefly. The same entries always give the same bytes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Final

import msgspec

from commonplace.memory.entries import GLOBAL, SECTION_OF, SECTIONS, Entry
from commonplace.memory.files.handbook import SHORT_ID
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.projects.scope import short_names
from commonplace.protocol.ids import wire_second

_KIND_ORDER: Final = {
    "verify": 0, "rule": 1, "preference": 2, "procedure": 3, "decision": 4, "environment": 5, "fix": 6, "failure": 7,
}  # fmt: skip


class SessionFacts(msgspec.Struct):
    """The facts about a session that taught something."""

    input: RawMemory
    file: str
    """Its summary's file, below the workspace."""
    project: str
    title: str
    outcome: str
    keywords: list[str]


class Brevity(msgspec.Struct, frozen=True):
    """How briefly the sessions of a project are told."""

    with_thread: bool = True
    keywords: int = 8
    sources: int = 3
    """How many sessions of an entry are named, the newest first."""
    files: int = 2
    """How many sessions of a block are named, the newest first; what each entry rests on is kept beside the files."""


class BlockTitle(msgspec.Struct, frozen=True):
    """What a block is called beside the name of its project, and the words to search it by."""

    title: str
    keywords: tuple[str, ...]


LEVELS: Final = (
    Brevity(),
    Brevity(with_thread=False, keywords=4, sources=2, files=1),
    Brevity(with_thread=False, keywords=3, sources=1, files=1),
)
_FRAME: Final = 16
"""How many lines of a block are no lessons: its head, its task and its headings."""
LEAST_LINES: Final = 5
"""A project always has so many lessons in MEMORY.md, if there are any."""


def rank(entry: Entry) -> tuple[float | str, ...]:
    """Return the sort key of entries, the most useful first: by hand, likely to last, recent, taught often."""
    by_hand = any(source.note for source in entry.sources)
    return (not entry.pinned, not by_hand, not entry.is_told, entry.is_stale, *place(entry))


def place(entry: Entry) -> tuple[float | str, ...]:
    """Return the sort key of entries of the same standing."""
    if entry.place:
        return entry.place
    sure = min(max(round(entry.confidence, 3), 0.01), 0.99)  # as the files tell it
    likely = round(math.log(sure / (1 - sure)) + entry.odds, 1)
    return (-likely, -entry.support, _KIND_ORDER[entry.kind], -entry.last_seen_s, entry.id)


def within_lines(entries: list[Entry], lines: int) -> list[Entry]:
    """Return the most useful entries of each scope, so that no block has more lines; at least a few of each."""
    kept: list[Entry] = []
    room: defaultdict[str, int] = defaultdict(lambda: max(LEAST_LINES, lines - _FRAME))
    for entry in sorted(entries, key=rank):
        if room[entry.scope] > 0 or entry.is_by_hand:
            kept.append(entry)
            room[entry.scope] -= 1
    return kept


def write(
    entries: list[Entry],
    sessions: dict[str, SessionFacts],
    skills: dict[str, list[str]],
    brevity: Brevity = LEVELS[0],
    titles: dict[str, BlockTitle] | None = None,
) -> str:
    """Return the file; `skills` names those of each project, `titles` the blocks that have a title of their own."""
    blocks: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        blocks[entry.scope].append(entry)
    order = sorted(
        blocks, key=lambda scope: (scope != GLOBAL, -max(entry.last_seen_s for entry in blocks[scope]), scope)
    )
    names = short_names(order, {each.project: each.input.cwd for each in sessions.values()})
    return "\n".join(
        _block(
            scope,
            names[scope],
            blocks[scope],
            skills.get(scope, []),
            _Sources(sessions, brevity),
            (titles or {}).get(scope),
        )
        for scope in order
    )


class _Sources:
    """The sessions and notes of a block: which entry rests on which, and the task that names the newest of them."""

    def __init__(self, sessions: dict[str, SessionFacts], brevity: Brevity) -> None:
        self._known = sessions
        self._brevity = brevity
        self._named: dict[str, int] = {}

    def mark_of(self, entry: Entry) -> str:
        """Return what stands at the end of an entry's line: the short ids of its newest sessions, and the task."""
        for source in sorted(entry.sources, key=lambda each: (-each.updated_s, each.thread_id or "", each.note or "")):
            key = source.note or source.thread_id or ""
            if source.note or key in self._known:
                self._named.setdefault(key, source.updated_s)
        threads = sorted({(-each.updated_s, each.thread_id) for each in entry.sources if each.thread_id})
        ids = [found[0] for _, thread in threads if (found := SHORT_ID.match(thread))]
        named = f"[{', '.join(ids[: self._brevity.sources])}]" if ids else ""
        return f" {named}[Task 1]" if self._named else f" {named}".rstrip()

    def newest(self, scope: str) -> SessionFacts | None:
        """Return the newest session of a project."""
        return max((each for each in self._known.values() if each.project == scope), key=_freshness, default=None)

    def lines(self, title: str, keywords: tuple[str, ...] = ()) -> list[str]:
        """Return the task that names the sessions and notes; `keywords` instead of theirs."""
        found = sorted((self._known[key] for key in self._named if key in self._known), key=_freshness, reverse=True)
        notes = sorted((key for key in self._named if key not in self._known), key=lambda key: -self._named[key])
        if not found and not notes:
            return []
        lines = [f"## Task 1: {self._title(found, title)}"]
        if found:
            lines += ["### rollout_summary_files", *map(self._file, found[: self._brevity.files])]
        if notes:
            lines += ["### extension_resource_files", *(f"- {note} (cwd=any, source=ad_hoc)" for note in notes)]
        known = keywords or tuple(dict.fromkeys(word for each in found for word in each.keywords))
        words = known[: self._brevity.keywords]
        return [*lines, "### keywords", f"- {', '.join(words) or title}", ""]

    def _title(self, found: list[SessionFacts], title: str) -> str:
        if not found:
            return f"notes on {title}, by hand"
        first = next((each for each in found if each.title), found[0])
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return f"{first.title or f'work in {title}'}{more}, {first.outcome or 'uncertain'}"

    def _file(self, session: SessionFacts) -> str:
        source = session.input
        thread = f", thread_id={source.thread_id}" if self._brevity.with_thread else ""
        path = source.rollout_path
        if not self._brevity.with_thread:  # its name tells the thread, and where it is can be found out
            path = path.rpartition("/")[2] or path
        where = f"cwd={source.cwd or 'unknown'}, rollout_path={path}"
        return f"- {session.file} ({where}, updated_at={wire_second(source.updated_s)}{thread})"


def _block(
    scope: str, title: str, entries: list[Entry], skills: list[str], sources: _Sources, own: BlockTitle | None
) -> str:
    parts: list[str] = []
    for section in SECTIONS:
        told = sorted((entry for entry in entries if SECTION_OF[entry.kind] == section), key=rank)
        bullets = [_bullet(entry, sources) for entry in told]
        if section == "Reusable knowledge":
            bullets += [f"- Related skill: {path}" for path in skills]
        if bullets:
            parts += [f"## {section}", *bullets, ""]
    newest = sources.newest(scope)
    if scope == GLOBAL:
        head = ["scope: global", "applies_to: cwd=any; reuse_rule=holds in every project of this person"]
    else:
        cwd = newest.input.cwd if newest else scope
        head = [f"scope: project {scope}", f"applies_to: cwd={cwd}; reuse_rule=only in this project"]
    heading = f"# Task Group: {title}: {own.title}" if own and own.title else f"# Task Group: {title}"
    return "\n".join([heading, *head, "", *sources.lines(title, own.keywords if own else ()), *parts])


def _freshness(session: SessionFacts) -> tuple[int, str]:
    return (session.input.updated_s, session.input.thread_id)


def _bullet(entry: Entry, sources: _Sources) -> str:
    note = " [ad-hoc note]" if any(source.note for source in entry.sources) else ""
    support = f" ({entry.support} sessions)" if entry.support > 1 else ""
    return f"- {entry.text}{support}{note}{sources.mark_of(entry)}"
