"""The life of one entry: what it rests on, how its text changed, and when it was of use, as moments in time.

An entry that is gone still has a life: its history tells what it said and what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread
import msgspec

from commonplace.memory import evidence
from commonplace.memory.edits import history
from commonplace.memory.edits.history import EntryChange
from commonplace.memory.entries import Entry
from commonplace.memory.evidence import Link
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.protocol.ids import wire_second
from commonplace.search import exact, passages
from commonplace.search.hits import Hit
from commonplace.search.query import Query
from commonplace.state import usage
from commonplace.state.usage import Use

_FORMER: Final = "superseded by "
_NEEDLE: Final = 160
"""How many characters of an entry are looked for: a prompt may cut longer ones."""
_MOST_APPEARANCES: Final = 60
USES: Final[tuple[Use, ...]] = ("retrieved", "injected", "cited")


class Moment(msgspec.Struct, frozen=True):
    """Something that happened to an entry."""

    time: str
    what: Literal["taught", "changed", "retrieved", "injected", "cited"]
    text: str
    link: int | None = None
    """Of what taught it: its place in the chain."""


class SourceWords(msgspec.Struct, frozen=True):
    """A source, and the whole message that its words stand in, if they still do."""

    link: Link
    role: str
    message: str
    time: str


class EntryUse(msgspec.Struct, frozen=True):
    """How often an entry was of one use, and when last."""

    use: Use
    count: int
    last: str | None


class Appearance(msgspec.Struct, frozen=True):
    """A place in a session that holds an entry's words."""

    what: Literal["said", "answered", "told", "seen"]
    """A person said it, the agent said it, a program put it into the conversation, or a tool read or wrote it."""
    thread_id: str
    offset: int
    turn: int | None
    time: str | None


class Life(msgspec.Struct):
    """What is known of an entry."""

    id: str
    known: KnownEntry | None
    """None: it is gone."""
    sources: list[SourceWords]
    uses: list[EntryUse]
    changes: list[EntryChange]
    """Its own changes and those of the entries that it replaced, oldest first."""
    moments: list[Moment]
    """Everything that has a time, oldest first."""


async def life(store: MemoryStore, entry_id: str) -> Life | None:
    """Return the life of the entry or candidate with exactly this id; None if there never was one."""
    held = await store.summary(0, [entry_id])
    known = held.named if held is not None else [*await store.known_entries(), *await store.candidates()]
    chosen = next((each for each in known if each.entry.id == entry_id), None)
    past = await anyio.to_thread.run_sync(history.read, store.home.path)
    changes = _own_changes(past, entry_id)
    if chosen is None and not changes:
        return None
    sources: list[SourceWords] = []
    if chosen is not None:
        (chain,) = await evidence.chains(store, [chosen.entry])
        sources = await anyio.to_thread.run_sync(_with_messages, chosen.entry, chain)
    uses = await _uses(store, entry_id)
    return Life(entry_id, chosen, sources, uses, changes, _moments(sources, uses, changes))


async def appearances(store: MemoryStore, entry: Entry) -> list[Appearance]:
    """Return where sessions hold the words of an entry, the newest first: said, told to an agent, repeated.

    Every session file is scanned, as by an exact search.
    """
    words = " ".join(entry.text.strip("\"'").split())[:_NEEDLE].rstrip()
    if not words or not store.home.has_index():
        return []
    hits = await exact.search(store.home, Query(words, _MOST_APPEARANCES), str, ignore_case=True)
    index = await store.home.index()
    paths = {hit.thread_id: await index.find(store.home.path, hit.thread_id) for hit in hits if hit.thread_id}

    def classified() -> list[Appearance]:
        return [
            Appearance(_what(hit, paths[hit.thread_id], words), hit.thread_id, hit.item, hit.turn, hit.time)
            for hit in hits
            if hit.thread_id is not None and hit.item is not None
        ]

    return await anyio.to_thread.run_sync(classified)


def _what(hit: Hit, path: Path | None, words: str) -> Literal["said", "answered", "told", "seen"]:
    if hit.role == "assistant":
        return "answered"
    if hit.role not in ("user", "developer", "system"):
        return "seen"
    said = passages.read(path, [hit.item or 0]).get(hit.item or 0) if path is not None else None
    return "said" if said is not None and words.lower() in " ".join(said.text.split()).lower() else "told"


def _own_changes(past: list[EntryChange], entry_id: str) -> list[EntryChange]:
    """Return the changes of an entry and of all that it replaced, directly or not."""
    family = {entry_id}
    for change in reversed(past):
        if change.cause.startswith(_FORMER) and change.cause.removeprefix(_FORMER) in family:
            family.add(change.entry_id)
    return [change for change in past if change.entry_id in family]


def _with_messages(entry: Entry, chain: list[Link]) -> list[SourceWords]:
    wanted: dict[str, set[int]] = {}
    for link in chain:
        if link.thread_id is not None and link.path is not None and link.byte_start is not None:
            wanted.setdefault(link.path, set()).add(link.byte_start)
    said = {path: passages.read(Path(path), sorted(offsets)) for path, offsets in wanted.items()}
    told: list[SourceWords] = []
    for source, link in zip(entry.sources, chain, strict=True):
        found = said.get(link.path or "", {}).get(link.byte_start or 0) if link.thread_id is not None else None
        time = (found.time if found is not None else None) or (
            wire_second(source.updated_s) if source.updated_s else ""
        )
        role = "note" if link.thread_id is None else found.role if found is not None else ""
        told.append(SourceWords(link, role, found.text if found is not None else "", time))
    return told


async def _uses(store: MemoryStore, entry_id: str) -> list[EntryUse]:
    if not store.home.has_index():
        return []
    row = await (await store.home.database()).read(lambda tx: usage.entry(tx, entry_id))
    if row is None:
        return []
    found = [EntryUse(use, row[use], _second(row[f"last_{use}"])) for use in USES]
    return [each for each in found if each.count]


def _second(seconds: int | None) -> str | None:
    return None if seconds is None else wire_second(seconds)


def _moments(sources: list[SourceWords], uses: Iterable[EntryUse], changes: list[EntryChange]) -> list[Moment]:
    found = [Moment(each.time, "taught", each.link.quote, place) for place, each in enumerate(sources) if each.time]
    found += [Moment(each.time, "changed", each.cause) for each in changes]
    found += [Moment(each.last, each.use, f"{each.count} times in all") for each in uses if each.last is not None]
    return sorted(found, key=lambda each: each.time)
