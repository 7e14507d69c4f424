"""`MEMORY.md`: entries by project, each with the sessions it rests on.

One block per project, and one for what holds everywhere; in it the sessions that taught something as tasks, then what
they taught. The file has a budget. What does not fit is left out from the least useful end, and said; before that,
tasks are told more briefly. The same entries always give the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import msgspec

from commonplace.memory.entries import GLOBAL, SECTION_OF, SECTIONS, Entry
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.projects.scope import short_names
from commonplace.protocol.ids import wire_second

_KIND_ORDER: Final = {
    "preference": 0, "rule": 1, "verify": 2, "environment": 3, "decision": 4, "procedure": 5, "fix": 6, "failure": 7,
}  # fmt: skip


class SessionFacts(msgspec.Struct):
    """The facts about a session that taught something."""

    input: RawMemory
    file: str
    """Its summary's file, below the workspace."""
    project: str
    task: str
    outcome: str
    keywords: list[str]


class Brevity(msgspec.Struct, frozen=True):
    """How briefly tasks are told."""

    with_thread: bool = True
    keywords: int = 8
    one_task: bool = False
    sources: int = 64
    """How many sessions of an entry are named, the newest first."""
    files: int = 4096
    """How many sessions of a block are named, the newest first; what each entry rests on is kept beside the files."""


LEVELS: Final = (
    Brevity(),
    Brevity(with_thread=False, keywords=4),
    Brevity(with_thread=False, keywords=3, one_task=True, sources=1),
    Brevity(with_thread=False, keywords=3, one_task=True, sources=1, files=3),
    Brevity(with_thread=False, keywords=3, one_task=True, sources=1, files=1),
)


def rank(entry: Entry) -> tuple[bool, bool, int, int, int, str]:
    """Return the sort key of entries, the most useful first."""
    by_hand = any(source.note for source in entry.sources)
    return (not entry.pinned, not by_hand, -entry.support, _KIND_ORDER[entry.kind], -entry.last_seen_s, entry.id)


def write(
    entries: list[Entry], sessions: dict[str, SessionFacts], skills: dict[str, list[str]], brevity: Brevity = LEVELS[0]
) -> str:
    """Return the file; `skills` names those of each project."""
    blocks: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        blocks[entry.scope].append(entry)
    order = sorted(
        blocks, key=lambda scope: (scope != GLOBAL, -max(entry.last_seen_s for entry in blocks[scope]), scope)
    )
    names = short_names(order)
    return "\n".join(
        _block(scope, names[scope], blocks[scope], skills.get(scope, []), _Tasks(sessions, brevity)) for scope in order
    )


class _Tasks:
    """The tasks of a block: the sessions and notes that its entries rest on, numbered as they are named."""

    def __init__(self, sessions: dict[str, SessionFacts], brevity: Brevity) -> None:
        self._known = sessions
        self._brevity = brevity
        self._numbers: dict[str, int] = {}

    def marks_of(self, entry: Entry) -> str:
        """Return the marks that name the tasks of an entry."""
        named: dict[str, int] = {}
        for source in sorted(entry.sources, key=lambda each: (-each.updated_s, each.thread_id or "", each.note or "")):
            key = source.note or source.thread_id or ""
            if source.note or key in self._known:
                named.setdefault(key, source.updated_s)
        marks = {self._number(key) for key in list(named)[: self._brevity.sources]}
        return "".join(f"[Task {number}]" for number in sorted(marks))

    def newest(self, scope: str) -> SessionFacts | None:
        """Return the newest session of a project."""
        return max((each for each in self._known.values() if each.project == scope), key=_freshness, default=None)

    def _number(self, key: str) -> int:
        self._numbers.setdefault(key, len(self._numbers) + 1)
        return 1 if self._brevity.one_task else self._numbers[key]

    def lines(self, title: str) -> list[str]:
        keys = sorted(self._numbers, key=lambda key: self._numbers[key])
        if not self._brevity.one_task:
            return [line for number, key in enumerate(keys, 1) for line in self._task(number, [key], title)]
        return self._task(1, keys, title) if keys else []

    def _task(self, number: int, keys: list[str], title: str) -> list[str]:
        sessions = [self._known[key] for key in keys if key in self._known]
        notes = [key for key in keys if key not in self._known]
        named = sorted(sessions, key=_freshness, reverse=True)[: self._brevity.files]
        if sessions:
            first = sessions[0]
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            told = first.task if first.task not in ("", "session") else f"work in {first.project.rpartition('/')[2]}"
            name = f"{told}{more}, {first.outcome or 'uncertain'}"
        else:
            name = f"notes on {title}, by hand"
        lines = [f"## Task {number}: {name}", ""]
        if sessions:
            lines += ["### rollout_summary_files", *(self._file(each) for each in sessions if each in named)]
        if notes:
            lines += [] if not sessions else [""]
            lines += ["### extension_resource_files", *(f"- {note} (cwd=any, source=ad_hoc)" for note in notes)]
        words = list(dict.fromkeys(word for each in sessions for word in each.keywords))[: self._brevity.keywords]
        return [*lines, "", "### keywords", f"- {', '.join(words) or title}", ""]

    def _file(self, session: SessionFacts) -> str:
        source = session.input
        thread = f", thread_id={source.thread_id}" if self._brevity.with_thread else ""
        path = source.rollout_path
        if not self._brevity.with_thread:  # its name tells the thread, and where it is can be found out
            path = path.rpartition("/")[2] or path
        where = f"cwd={source.cwd or 'unknown'}, rollout_path={path}"
        return f"- {session.file} ({where}, updated_at={wire_second(source.updated_s)}{thread})"


def _block(scope: str, title: str, entries: list[Entry], skills: list[str], tasks: _Tasks) -> str:
    parts: list[str] = []
    for section in SECTIONS:
        own = sorted((entry for entry in entries if SECTION_OF[entry.kind] == section), key=rank)
        bullets = [_bullet(entry, tasks) for entry in own]
        if section == "Reusable knowledge":
            bullets += [f"- Related skill: {path}" for path in skills]
        if bullets:
            parts += [f"## {section}", *bullets, ""]
    newest = tasks.newest(scope)
    if scope == GLOBAL:
        head = ["scope: global", "applies_to: cwd=any; reuse_rule=holds in every project of this person"]
    else:
        cwd = newest.input.cwd if newest else scope
        head = [f"scope: project {scope}", f"applies_to: cwd={cwd}; reuse_rule=only in this project"]
    return "\n".join([f"# Task Group: {title}", *head, "", *tasks.lines(title), *parts])


def _freshness(session: SessionFacts) -> tuple[int, str]:
    return (session.input.updated_s, session.input.thread_id)


def _bullet(entry: Entry, tasks: _Tasks) -> str:
    marks = tasks.marks_of(entry)
    note = " [ad-hoc note]" if any(source.note for source in entry.sources) else ""
    support = f" ({entry.support} sessions)" if entry.support > 1 else ""
    return f"- {entry.text}{support}{note}{' ' + marks if marks else ''}"
