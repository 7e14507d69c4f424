"""Changes of single entries by a person: planned, tried on a copy, made, and taken back.

    reword   a note puts other words in its place            `memory note --change`
    rescope  a note forgets it where it holds, another remembers it elsewhere
    join     two entries become one, with the sources of both: a direct edit, which every later merge applies
    order    entries change places among themselves: a direct edit, too
    pin      it does not age and comes first
    decide   a person keeps or drops it                      `memory keep`, `memory drop`
    forget   its words leave the memory everywhere           `memory forget`

A change names the version of the entry that the person saw. If the entry is another one by now, nothing is done and
`EntryOutdated` tells both. What a change writes (notes, decisions, edits) is durable before the memory's files are made
anew under the consolidation lock; a run that goes on meanwhile notices it and begins again. So whatever changes the
same entry at the same time, no words are lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, EntryOutdated, WorkspaceError
from commonplace.learning.consolidate import entry_edits
from commonplace.learning.consolidate.entry_edits import EntryEdits, Join, KeptEdit, Order
from commonplace.learning.relearn import Relearner
from commonplace.memory.edits import edits, forget, history, notes, rehearsal
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.entries import GLOBAL, SECTION_OF, Entry
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.memory.workspace import layout, staging
from commonplace.projects import lookup
from commonplace.protocol.ids import wire_time
from commonplace.redact import redact
from commonplace.rollout import decisions, journal
from commonplace.rollout.decisions import Review

PERSON = "a person"
"""Who a direct edit is by."""
_DONE = ("succeeded", "unchanged")


class RewordEntry(msgspec.Struct, frozen=True, tag="reword"):
    """Say an entry in other words."""

    entry: str
    text: str


class RescopeEntry(msgspec.Struct, frozen=True, tag="rescope"):
    """Make an entry hold for another project, or (`global`) for all."""

    entry: str
    scope: str


class JoinEntries(msgspec.Struct, frozen=True, tag="join"):
    """Make an entry a part of another, whose text stays."""

    entry: str
    into: str


class OrderEntries(msgspec.Struct, frozen=True, tag="order"):
    """Let entries change places among themselves, so that they stand in this order."""

    entry: str
    """The one that a person moved."""
    entries: tuple[str, ...]


class PinEntry(msgspec.Struct, frozen=True, tag="pin"):
    """Keep an entry from ageing, or no longer."""

    entry: str
    pinned: bool


class DecideEntry(msgspec.Struct, frozen=True, tag="decide"):
    """Keep or drop an entry or a candidate."""

    entry: str
    verdict: Literal["keep", "drop"]


class ForgetEntry(msgspec.Struct, frozen=True, tag="forget"):
    """Remove an entry's words everywhere but in the ledgers."""

    entry: str


EntryRequest = RewordEntry | RescopeEntry | JoinEntries | OrderEntries | PinEntry | DecideEntry | ForgetEntry


class EntryDifference(msgspec.Struct, frozen=True):
    """What a change does to one entry; None where it is not there before or after."""

    before: Entry | None
    after: Entry | None


class Undo(msgspec.Struct, frozen=True):
    """What takes a change back."""

    notes: tuple[str, ...] = ()
    """Notes that go, by their paths below the workspace."""
    reviews: tuple[tuple[str, Review | None], ...] = ()
    """Decisions about entries as they were."""
    pins: tuple[tuple[str, bool], ...] = ()
    edit: Join | Order | None = None
    """An edit that goes."""
    remember: tuple[tuple[str, str], ...] = ()
    """Texts and scopes that are noted again: what was forgotten comes back as a note."""


class ChangedEntry(msgspec.Struct, frozen=True):
    """What a change did."""

    entry: str | None
    """The entry that holds now what the person wants; None if none does."""
    undo: Undo


class _Plan(msgspec.Struct):
    """What a change writes: texts of notes with their words, decisions, and an edit."""

    notes: list[tuple[str, str]] = []
    decisions: list[dict[str, Any]] = []
    edit: Join | Order | None = None
    base: dict[str, Entry] = {}
    """The entries that the edit names."""


def version(known: KnownEntry) -> str:
    """Return what tells whether an entry is still what a person saw."""
    entry = known.entry
    told = [entry.id, entry.scope, entry.kind, entry.text, str(entry.pinned), str(known.is_candidate)]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]


async def find_entry(store: MemoryStore, entry_id: str) -> KnownEntry | None:
    """Return the entry or candidate with exactly this id."""
    held = await store.summary(0, [entry_id])
    known = held.named if held is not None else [*await store.known_entries(), *await store.candidates()]
    return next((each for each in known if each.entry.id == entry_id), None)


async def preview(store: MemoryStore, request: EntryRequest, seen: str | None = None) -> list[EntryDifference]:
    """Return what a change would do to the memory, by doing it on a copy.

    Raises:
        EntryOutdated: the entry is not the one that a person saw as `seen`.
        BadInput: it cannot be done.
    """
    known = [*await store.known_entries(), *await store.candidates()]
    before = {each.entry.id: each.entry for each in known}
    chosen = next((each for each in known if each.entry.id == request.entry), None)
    if seen is not None and (chosen is None or version(chosen) != seen):
        raise await _outdated(store, request.entry, chosen)
    if chosen is None:
        raise _gone(request.entry)
    if isinstance(request, PinEntry):
        entry = before[request.entry]
        return [EntryDifference(entry, msgspec.structs.replace(entry, pinned=request.pinned))]
    if isinstance(request, ForgetEntry):
        forgot = await forget.forget(store, Relearner(store.home), request.entry, dry_run=True)
        return [EntryDifference(before[name], None) for name in forgot.removed if name in before]
    plan = await _plan(store, request, {each.entry.id: each for each in known})
    stored = await rehearsal.stored_rows(store)

    def rehearse() -> list[Entry]:
        with rehearsal.copied_home(store) as copy:
            _carry_out(copy, store, plan)
            return Relearner(store.home).rehearse(copy, stored.rows, stored.mirrored, Forgotten.load(copy))

    after = {entry.id: entry for entry in await anyio.to_thread.run_sync(rehearse)}
    return _differences(before, after, request.entry)


def _differences(before: dict[str, Entry], after: dict[str, Entry], first: str) -> list[EntryDifference]:
    """Return what differs, the entry that was meant first."""

    def told(entry: Entry | None) -> tuple[object, ...] | None:
        return None if entry is None else (entry.text, entry.scope, entry.pinned, entry.is_listed, entry.support)

    names = sorted(before.keys() | after.keys(), key=lambda name: (name != first, name not in before, name))
    pairs = [EntryDifference(before.get(name), after.get(name)) for name in names]
    return [each for each in pairs if told(each.before) != told(each.after)]


async def change(store: MemoryStore, request: EntryRequest, seen: str) -> ChangedEntry:
    """Make a change of an entry that a person saw as `seen` (a version), and return what takes it back.

    Raises:
        EntryOutdated: the entry is another one by now, or gone; nothing was done.
        BadInput: it cannot be done; nothing was done.
        WorkspaceError: what is wanted is stored, but the memory's files could not be made anew.
    """
    known = {each.entry.id: each for each in (*await store.known_entries(), *await store.candidates())}
    chosen = known.get(request.entry)
    if chosen is None or version(chosen) != seen:
        raise await _outdated(store, request.entry, chosen)
    match request:
        case ForgetEntry(entry):
            await forget.forget(store, Relearner(store.home), entry)
            return ChangedEntry(None, Undo(remember=((chosen.entry.text, chosen.entry.scope),)))
        case PinEntry(entry, pinned):
            undo = Undo(pins=((entry, chosen.entry.pinned),))
            await edits.pin(store, entry, pinned=pinned)
            await rebuild(store)
            return ChangedEntry(entry, undo)
        case _:
            pass
    plan = await _plan(store, request, known)
    reviewed = await anyio.to_thread.run_sync(decisions.reviews, store.home.path)
    decided = [line["entry_id"] for line in plan.decisions]
    written = await anyio.to_thread.run_sync(_carry_out, store.home.path, store, plan)
    await rebuild(store)
    undo = Undo(tuple(written), tuple((name, reviewed.get(name)) for name in decided), edit=plan.edit)
    return ChangedEntry(await _result(store, request, written), undo)


async def undo(store: MemoryStore, taken: Undo) -> None:
    """Take a change back; what others did since stays (raises WorkspaceError)."""
    home = store.home.path

    def write() -> None:
        for path in taken.notes:
            if path.startswith(f"{layout.NOTES}/") and ".." not in path:
                (store.root / path).unlink(missing_ok=True)
        for name, review in taken.reviews:
            verdict = "open" if review is None else "keep" if review.is_kept else "drop"
            kind = review.entry_kind if review is not None else ""
            decisions.append(home, "review", _moment(store), entry_id=name, entry_kind=kind, verdict=verdict)
        if taken.edit is not None:
            _change_edits(home, lambda found: tuple(each for each in found if each.edit != taken.edit))
        for text, scope in taken.remember:
            edits.write_note(home, store.home.now(), notes.text_of("remember", text, scope=scope), text)

    await anyio.to_thread.run_sync(write)
    for name, pinned in taken.pins:
        if await find_entry(store, name) is not None:
            await edits.pin(store, name, pinned=pinned)
    await rebuild(store)


async def rebuild(store: MemoryStore) -> None:
    """Make the memory's files anew, after whoever is at it (raises WorkspaceError)."""
    status = await Relearner(store.home).rebuild()
    if status not in _DONE:
        raise WorkspaceError(
            f"What you want is stored, but the memory in {store.root} could not be made anew ({status}).",
            hint="Run `commonplace memory run`; it says what is in the way.",
        )


async def _plan(store: MemoryStore, request: EntryRequest, known: dict[str, KnownEntry]) -> _Plan:
    chosen = known[request.entry]
    entry = chosen.entry
    match request:
        case RewordEntry(text=text):
            flat = " ".join(redact(text).split())
            if not flat:
                raise BadInput("The new text is empty.", hint="Say what is to be remembered instead, or forget it.")
            if flat == " ".join(entry.text.split()):
                raise BadInput("The new text is the old one.", hint="Change it first.")
            words = redact(edits.note_words(chosen))
            note = notes.text_of("change", flat, target=words, scope=entry.scope)
            return _Plan([(note, flat)], _drop(entry) if chosen.is_candidate else [])
        case RescopeEntry(scope=wanted):
            scopes = (each.entry.scope for each in known.values())
            scope = GLOBAL if wanted == GLOBAL else await lookup.named_scope(store.home, wanted, scopes)
            if scope == entry.scope:
                raise BadInput("It holds there already.", hint="Choose another project, or all of them.")
            gone = notes.text_of("forget", redact(edits.note_words(chosen)), scope=entry.scope)
            there = notes.text_of("remember", entry.text, scope=scope)
            return _Plan([(gone, entry.text), (there, entry.text)], _drop(entry) if chosen.is_candidate else [])
        case JoinEntries(into=into):
            return _Plan(edit=_join(chosen, known.get(into)), base={request.entry: entry, into: known[into].entry})
        case OrderEntries(entries=names):
            if len(set(names)) != len(names) or len(names) < 2 or any(name not in known for name in names):
                raise BadInput("Only entries that are there can be put in order.", hint="Load the page again.")
            return _Plan(edit=Order(names), base={name: known[name].entry for name in names})
        case DecideEntry(verdict=verdict):
            if verdict == "drop" and entry.is_by_hand:
                raise BadInput(f"{entry.id} is pinned or was written by hand.", hint="Forget it instead.")
            return _Plan(decisions=[{"entry_id": entry.id, "entry_kind": entry.kind, "verdict": verdict}])
        case PinEntry() | ForgetEntry():
            raise AssertionError


def _drop(entry: Entry) -> list[dict[str, Any]]:
    """Return the decision that drops a candidate whose words a note replaces; what is by hand needs none."""
    return [] if entry.is_by_hand else [{"entry_id": entry.id, "entry_kind": entry.kind, "verdict": "drop"}]


def _join(part: KnownEntry, whole: KnownEntry | None) -> Join:
    if whole is None or whole.is_candidate or part.is_candidate or whole.entry.id == part.entry.id:
        raise BadInput("Only two listed entries can be merged.", hint="Keep a candidate first.")
    one, two = part.entry, whole.entry
    if (one.scope, SECTION_OF[one.kind]) != (two.scope, SECTION_OF[two.kind]):
        hint = "Move one of them to the other's project first, or forget the one that is not needed."
        raise BadInput("Entries of different projects or sections cannot be merged.", hint=hint)
    return Join((two.id, one.id), two.text)


def _carry_out(home: Path, store: MemoryStore, plan: _Plan) -> list[str]:
    """Write what a plan says into a home, or a copy of it; return the notes."""
    written = [edits.write_note(home, store.home.now(), note, words) for note, words in plan.notes]
    for fields in plan.decisions:
        decisions.append(home, "review", _moment(store), **fields)
    if plan.edit is not None:
        edit, base = plan.edit, plan.base
        _change_edits(home, lambda found: entry_edits.add(found, edit, base, PERSON))
    return [path.relative_to(home / layout.FOLDER).as_posix() for path in written]


def _change_edits(home: Path, alter: Callable[[tuple[KeptEdit, ...]], tuple[KeptEdit, ...]]) -> None:
    """Change the edits of the memory; one process at a time."""
    root = home / layout.FOLDER
    with journal.changing(home, layout.EDITS):
        staging.recover(root)
        found = entry_edits.read(root)
        entry_edits.write(root, EntryEdits(alter(found.kept), found.seen))


def _moment(store: MemoryStore) -> str:
    return wire_time(store.home.now())


async def _result(store: MemoryStore, request: EntryRequest, written: list[str]) -> str | None:
    """Return the entry that holds what the person wanted."""
    if isinstance(request, JoinEntries):  # an edit that does not fit what the merge says is passed over
        return request.into if await find_entry(store, request.entry) is None else None
    if isinstance(request, OrderEntries):
        order = [each.entry.id for each in await store.known_entries() if each.entry.id in request.entries]
        return request.entry if order == list(request.entries) else None
    if isinstance(request, DecideEntry):
        return request.entry if request.verdict == "keep" else None
    for each in await store.known_entries():
        if any(source.note == written[-1] for source in each.entry.sources):
            return each.entry.id
    return None


def _gone(entry_id: str) -> BadInput:
    return BadInput(f"No entry has the id {entry_id!r}.", hint="It may have been changed or forgotten meanwhile.")


async def _outdated(store: MemoryStore, entry_id: str, now: KnownEntry | None) -> EntryOutdated:
    """Return the error for an entry that somebody changed: what it says now, or what became of it."""
    changes = await anyio.to_thread.run_sync(history.read, store.home.path)
    last = next((each for each in reversed(changes) if each.entry_id == entry_id), None)
    after = None
    if last is not None and last.after is None:
        heirs = [each.entry_id for each in changes if each.time == last.time and each.cause == "note"]  # of that run
        heir = last.cause.removeprefix("superseded by ") if "superseded" in last.cause else next(iter(heirs), "")
        after = await find_entry(store, heir)
    says = now or after
    return EntryOutdated(
        f"The entry {entry_id} was changed meanwhile, by somebody else or by a run of learning.",
        hint="Nothing was changed. See what it says now, and decide again.",
        entry_id=entry_id,
        now=says.entry.id if says is not None else None,
        cause=last.cause if last is not None else "",
    )
