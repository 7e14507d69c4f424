"""The history of the memory: `memory_history.jsonl`, one line per change of an entry.

    {"time", "entry_id", "before", "after", "cause", "sources"}

The last state of each entry is read from the file itself, so that a run that was interrupted records each change once,
whichever process finishes it. Forgetting rewrites the file without the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

import msgspec

from commonplace.memory.entries import Entry
from commonplace.memory.workspace.staging import put
from commonplace.rollout import journal

FILE: Final = "memory_history.jsonl"
FORGOTTEN: Final = "[forgotten]"
_MAX_SOURCES: Final = 16
"""How many sources a change names."""


class EntryChange(msgspec.Struct, kw_only=True):
    """One change of an entry: a line of the history."""

    time: str
    entry_id: str
    before: str | None
    after: str | None
    cause: str
    sources: list[str] = []
    """The threads and notes that it rests on."""


_change = msgspec.json.Decoder(EntryChange)


def read(home: Path) -> list[EntryChange]:
    """Return every change that can be read, oldest first."""
    try:
        lines = (home / FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found: list[EntryChange] = []
    for raw in lines:
        try:
            found.append(_change.decode(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return found


def current(changes: Iterable[EntryChange]) -> dict[str, str]:
    """Return the last known text of each entry that still exists."""
    known: dict[str, str] = {}
    for change in changes:
        if change.after is None:
            known.pop(change.entry_id, None)
        else:
            known[change.entry_id] = change.after
    return known


def difference(
    changes: Iterable[EntryChange],
    entries: Iterable[Entry],
    replaced: Iterable[tuple[Entry, Entry]],
    time: str,
    dropped: Collection[str] = (),
) -> list[EntryChange]:
    """Return the changes that lead from the recorded state to these entries; `dropped` are those a person dropped."""
    changes = list(changes)
    known, before_that = current(changes), {change.entry_id for change in changes}
    now = {entry.id: entry for entry in entries}
    taken = {old.id: new for old, new in replaced if old.id not in now}
    found: list[EntryChange] = []
    for old, new in replaced:
        if old.id not in before_that and old.id not in now:  # it came and went in one run: its words go to history
            found.append(_line(time, old, None, old.text, "learned"))
            found.append(_line(time, old, old.text, None, f"superseded by {new.id}"))
    for entry in now.values():
        before = known.get(entry.id)
        if before != entry.text:
            cause = "learned" if before is None else "changed"
            by_hand = any(source.note for source in entry.sources)
            found.append(_line(time, entry, before, entry.text, "note" if by_hand and before is None else cause))
    for name, before in known.items():
        if name not in now:
            gone = "dropped" if name in dropped else "no longer supported"
            cause = f"superseded by {taken[name].id}" if name in taken else gone
            found.append(EntryChange(time=time, entry_id=name, before=before, after=None, cause=cause))
    return found


def _line(time: str, entry: Entry, before: str | None, after: str | None, cause: str) -> EntryChange:
    sources = list(dict.fromkeys(source.note or source.thread_id or "" for source in entry.sources))
    return EntryChange(
        time=time, entry_id=entry.id, before=before, after=after, cause=cause, sources=sources[:_MAX_SOURCES]
    )


def record(
    home: Path,
    entries: Iterable[Entry],
    replaced: Iterable[tuple[Entry, Entry]],
    time: str,
    dropped: Collection[str] = (),
) -> list[EntryChange]:
    """Add the changes that lead to these entries, durably; return them.

    The file is read and written under one lock: of two processes that finish the same run, the second adds nothing.
    """
    with journal.changing(home, FILE):
        changes = difference(read(home), entries, replaced, time, dropped)
        if changes:
            journal.write(home, FILE, b"\n".join(msgspec.json.encode(change) for change in changes))
    return changes


def append(home: Path, changes: Iterable[EntryChange]) -> None:
    """Add changes, durably."""
    lines = [msgspec.json.encode(change) for change in changes]
    if lines:
        journal.append(home, FILE, b"\n".join(lines))


def rewrite(home: Path, is_forgotten: Callable[[str, EntryChange], bool]) -> bool:
    """Write the file anew without the texts that were forgotten; return whether anything changed.

    The names of notes go with them, since a note is named by its first words.
    """
    if not (home / FILE).exists():
        return False
    with journal.changing(home, FILE):
        changes = read(home)
        cleaned = [_without(each, is_forgotten) for each in changes]
        if cleaned == changes:
            return False
        put(home / FILE, b"".join(msgspec.json.encode(each) + b"\n" for each in cleaned))
    return True


def _without(change: EntryChange, is_forgotten: Callable[[str, EntryChange], bool]) -> EntryChange:
    before, after = (
        FORGOTTEN if text is not None and is_forgotten(text, change) else text for text in (change.before, change.after)
    )
    if (before, after) == (change.before, change.after):
        return change
    sources = [source for source in change.sources if "/" not in source]
    return msgspec.structs.replace(change, before=before, after=after, sources=sources)
