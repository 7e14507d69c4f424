"""Edits of a model over the entries that the merge made: typed values, kept in a file and applied by every later merge.

    {"edit": {"type": "join", "entries": ["m…", "m…"], "text": "…"}, "stamps": {"m…": "…", "m…": "…"}, "by": "…"}
    {"seen": {"m…": "…"}}

An edit names its entries, and a stamp of each says what the merge said of it then. An edit applies as long as the merge
says the same; otherwise it is stale and dropped, and the entry is one that the model has not seen. So a memory does not
change back when a session joins, and nobody is asked twice about the same. Provenance changes only by what an edit
names: an entry that is joined of several has exactly their sources.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from commonplace.learning.consolidate import handbook
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import GLOBAL, SECTION_OF, Entry
from commonplace.memory.workspace import layout
from commonplace.memory.workspace.staging import put


class Reword(msgspec.Struct, frozen=True, tag="reword"):
    """Say an entry in other words."""

    entry: str
    text: str


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Make one entry of several that say the same; it has the id of the first."""

    entries: tuple[str, ...]
    text: str

    @property
    def whole(self) -> str:
        """The entry that the others become a part of."""
        return self.entries[0]


class Retitle(msgspec.Struct, frozen=True, tag="retitle"):
    """Give the block of a project a title and keywords that its entries bear out."""

    scope: str
    title: str
    keywords: tuple[str, ...]
    entries: tuple[str, ...]


class MoveToGlobal(msgspec.Struct, frozen=True, tag="move_to_global"):
    """Make an entry hold in every project."""

    entry: str


class WriteSkill(msgspec.Struct, frozen=True, tag="write_skill"):
    """Write the steps down that entries tell."""

    name: str
    scope: str
    steps: tuple[str, ...]
    entries: tuple[str, ...]


class Order(msgspec.Struct, frozen=True, tag="order"):
    """Tell entries in this order."""

    entries: tuple[str, ...]


EntryEdit = Reword | Join | Retitle | MoveToGlobal | WriteSkill | Order


def named(edit: EntryEdit) -> tuple[str, ...]:
    """Return the entries that an edit names."""
    return (edit.entry,) if isinstance(edit, Reword | MoveToGlobal) else edit.entries


def texts(edit: EntryEdit) -> list[str]:
    """Return everything that an edit says."""
    match edit:
        case Reword() | Join():
            return [edit.text]
        case Retitle():
            return [edit.title, *edit.keywords]
        case WriteSkill():
            return [edit.name.replace("-", " "), *edit.steps]
        case MoveToGlobal() | Order():
            return []


class KeptEdit(msgspec.Struct, frozen=True):
    """An edit that was accepted, and what the merge said of its entries then."""

    edit: EntryEdit
    stamps: dict[str, str]
    by: str = ""


class EntryEdits(msgspec.Struct, frozen=True):
    """The edits of a memory, and what the model has seen of it."""

    kept: tuple[KeptEdit, ...] = ()
    """In the order in which they apply."""
    seen: dict[str, str] = {}
    """Of each entry that the model was shown, how it was then."""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    edit: EntryEdit | None = None
    stamps: dict[str, str] = {}
    by: str = ""
    seen: dict[str, str] = {}


class EditedEntries(msgspec.Struct):
    """Entries after the edits."""

    entries: list[Entry]
    joined: list[tuple[Entry, Entry]]
    """Entries that are part of another now, each with that one."""
    titles: dict[str, Retitle]
    """By scope."""
    skills: list[tuple[WriteSkill, list[Entry]]]
    """With the entries that each rests on."""
    live: tuple[KeptEdit, ...]
    """The edits that applied; the others are stale."""


def stamp(entry: Entry) -> str:
    """Return what tells whether the merge still says the same of an entry."""
    return _digest(SECTION_OF[entry.kind], entry.text)


def state(entry: Entry) -> str:
    """Return what tells whether an entry is as the model saw it."""
    return _digest(entry.scope, entry.kind, entry.text)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def read(root: Path) -> EntryEdits:
    """Return the edits of a workspace; a line that cannot be read, or from which words were removed, is left out."""
    place = root / layout.EDITS
    kept: list[KeptEdit] = []
    seen: dict[str, str] = {}
    for line in place.read_bytes().split(b"\n") if place.is_file() else ():
        try:
            found = msgspec.json.decode(line, type=_Line) if line.strip() else _Line()
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        seen |= found.seen
        if found.edit is not None:
            kept.append(KeptEdit(found.edit, found.stamps, found.by))
    return EntryEdits(tuple(kept), seen)


def write(root: Path, edits: EntryEdits) -> None:
    """Write the edits into a workspace."""
    lines = [_Line(each.edit, each.stamps, each.by) for each in edits.kept]
    lines.append(_Line(seen=dict(sorted(edits.seen.items()))))
    put(root / layout.EDITS, "".join(msgspec.json.encode(each).decode() + "\n" for each in lines))


def add(edits: tuple[KeptEdit, ...], edit: EntryEdit, base: dict[str, Entry], by: str) -> tuple[KeptEdit, ...]:
    """Return the edits with one more; what it takes the place of goes, and is part of it where entries were joined."""
    parts = {each.edit.whole: each.edit.entries for each in edits if isinstance(each.edit, Join)}
    whole = tuple(dict.fromkeys(part for name in named(edit) for part in parts.get(name, (name,))))
    left = [each for each in edits if not _is_replaced(each.edit, edit, set(whole))]
    if isinstance(edit, Reword | Join):
        edit = Join(whole, edit.text) if len(whole) > 1 else Reword(next(iter(whole)), edit.text)
    stamps = {name: stamp(base[name]) for name in whole}
    return (*left, KeptEdit(edit, stamps, by))


def _is_replaced(older: EntryEdit, newer: EntryEdit, whole: set[str]) -> bool:
    match older, newer:
        case (Reword() | Join(), Reword() | Join()):
            return not whole.isdisjoint(named(older))
        case (Retitle(), Retitle()):
            return older.scope == newer.scope
        case (WriteSkill(), WriteSkill()):
            return older.name == newer.name
        case (Order(), Order()) | (MoveToGlobal(), MoveToGlobal()):
            return not whole.isdisjoint(named(older))
        case _:
            return False


def apply(entries: list[Entry], kept: Iterable[KeptEdit], forgotten: Forgotten) -> EditedEntries:
    """Return what edits make of the entries of a merge; an edit that is stale or says something forgotten does not."""
    times = Counter(entry.id for entry in entries)
    base = {entry.id: entry for entry in entries if times[entry.id] == 1}
    now, joined = dict(base), dict[str, str]()
    titles: dict[str, Retitle] = {}
    skills: list[tuple[WriteSkill, list[Entry]]] = []
    live: list[KeptEdit] = []
    for each in kept:
        is_fresh = all(name in base and stamp(base[name]) == value for name, value in each.stamps.items())
        if not is_fresh or is_forgotten(each.edit, forgotten):
            continue
        match each.edit:
            case Reword(name, text) if name in now:
                now[name] = msgspec.structs.replace(now[name], text=text)
            case Join(names, text) if _may_join([now[name] for name in names if name in now], len(names)):
                whole = joint([now.pop(name) for name in names], text)
                now[whole.id] = whole
                joined |= dict.fromkeys(names[1:], whole.id)
            case MoveToGlobal(name) if name in now:
                now[name] = msgspec.structs.replace(now[name], scope=GLOBAL)
            case Order(names) if all(name in now for name in names):
                _put_in_order(now, names)
            case Retitle(scope):
                titles[scope] = each.edit
            case WriteSkill(entries=names):
                skills.append((each.edit, [base[name] for name in names]))
            case _:
                continue
        live.append(each)
    edited = [now.get(entry.id, entry) for entry in entries if entry.id not in joined]
    pairs = [(base[part], now[_last(part, joined)]) for part in joined]
    return EditedEntries(edited, pairs, titles, skills, tuple(live))


def _last(part: str, joined: dict[str, str]) -> str:
    """Return the entry that another is part of in the end."""
    while part in joined:
        part = joined[part]
    return part


def is_forgotten(edit: EntryEdit, forgotten: Forgotten) -> bool:
    """Say whether an edit says what a person asked to forget."""
    return bool(forgotten) and any(
        text in forgotten or forgotten.forgotten_within(text) is not None for text in texts(edit)
    )


def _may_join(parts: list[Entry], count: int) -> bool:
    """Say whether entries are all there, in one section of one project."""
    return len(parts) == count and len({(each.scope, SECTION_OF[each.kind]) for each in parts}) == 1


def joint(parts: list[Entry], text: str) -> Entry:
    """Return the entry that several make: with the id of the first, and the sources of all."""
    sources = list(dict.fromkeys(source for each in parts for source in each.sources))
    taught = {source.note or source.thread_id for source in sources}
    return msgspec.structs.replace(
        parts[0],
        text=text,
        sources=sources,
        support=max(len(taught - {None}), *(each.support for each in parts)),
        first_seen_s=min(each.first_seen_s for each in parts),
        last_seen_s=max(each.last_seen_s for each in parts),
        confidence=max(each.confidence for each in parts),
        pinned=any(each.pinned for each in parts),
        is_stale=all(each.is_stale for each in parts),
    )


def _put_in_order(now: dict[str, Entry], names: tuple[str, ...]) -> None:
    """Let entries change places among themselves; what a person pinned or wrote still comes first."""
    places = sorted(handbook.place(now[name]) for name in names)
    for name, place in zip(names, places, strict=True):
        now[name] = msgspec.structs.replace(now[name], place=place)
