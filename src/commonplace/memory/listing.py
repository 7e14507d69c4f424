"""Listing entries, and finding the one that a person means by its id or its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from commonplace.errors import BadInput
from commonplace.memory import audience, evidence, similarity
from commonplace.memory.entries import KINDS, Entry, Kind
from commonplace.memory.evidence import Link
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.projects import lookup
from commonplace.protocol.ids import wire_second

LIMIT: Final = 200
"""How many entries a page has unless told otherwise."""
_ENOUGH: Final = 0.6
"""How near an entry must be to a text that names it in other words."""
_HINT: Final = "`commonplace memory list` shows what there is."


class Listed(msgspec.Struct, kw_only=True):
    """One entry of a listing (the JSON of `memory list`)."""

    id: str
    scope: str
    project: str | None
    kind: Kind
    text: str
    support: int
    sources: list[str]
    pinned: bool
    first_seen: str
    last_seen: str
    retrieved: int = 0
    injected: int = 0
    cited: int = 0
    candidate: bool = False
    """It waits for another session or for a person, and agents are not told of it."""
    chain: list[Link] | UnsetType = UNSET
    """What it rests on, if that was asked for."""
    people: list[str] | UnsetType = UNSET
    """Who taught it, if the memory knows several people."""
    reason: str | UnsetType = UNSET
    """Why it is in doubt, if it waits for a review."""


class EntryPage(msgspec.Struct):
    """A page of entries, and the cursor of the next page."""

    entries: list[Listed]
    next_cursor: str | None


async def known_titles(store: MemoryStore) -> dict[str, str]:
    """Return how the people are called whom a shared memory knows; nothing if it knows one or none."""
    if not store.home.is_shared:
        return {}
    found = [*await store.known_entries(), *await store.candidates()]
    return audience.titles(each.entry for each in found)


def listed_entry(known: KnownEntry, titles: dict[str, str] | None = None) -> Listed:
    """Return what a listing shows of an entry; `titles` are the names of the people whom the memory knows."""
    entry = known.entry
    named = dict.fromkeys(source.note or source.thread_id or "" for source in entry.sources)
    return Listed(
        id=entry.id,
        scope=entry.scope,
        project=None if entry.is_global else entry.scope,
        kind=entry.kind,
        text=entry.text,
        support=entry.support,
        sources=[name for name in named if name],
        pinned=entry.pinned,
        first_seen=wire_second(entry.first_seen_s),
        last_seen=wire_second(entry.last_seen_s),
        retrieved=known.retrieved,
        injected=known.injected,
        cited=known.cited,
        candidate=known.is_candidate,
        people=audience.named(entry, titles) if titles else UNSET,
    )


async def page(
    store: MemoryStore,
    *,
    project: str | None = None,
    kind: str | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
    candidates: bool = False,
    with_evidence: bool = False,
) -> EntryPage:
    """Return some of what the memory holds, or some candidates; with their chains if that is asked for.

    Raises:
        BadInput: there is no such kind, no such project, or the cursor is none that an earlier page gave.
    """
    if kind is not None and kind not in KINDS:
        raise BadInput(f"{kind!r} is no kind of entry.", hint=f"Use {', '.join(KINDS)}.")
    if cursor is not None and not cursor.isdecimal():
        raise BadInput(f"{cursor!r} is not a cursor.", hint="Use the next_cursor of an earlier page.")
    if limit < 1:
        raise BadInput("A list needs a limit of 1 or more.", hint="Leave --limit out.")
    found = await (store.candidates() if candidates else store.known_entries())
    scope = (
        await lookup.named_scope(store.home, project, (each.entry.scope for each in found))
        if project is not None
        else None
    )
    first = int(cursor or 0)
    chosen = [
        (place, each)
        for place, each in enumerate(found)
        if place >= first and scope in (None, each.entry.scope) and kind in (None, each.entry.kind)
    ]
    more = str(chosen[limit][0]) if len(chosen) > limit else None
    shown = [each for _, each in chosen[:limit]]
    titles = await known_titles(store)
    entries = [listed_entry(each, titles) for each in shown]
    if with_evidence:
        for entry, chain in zip(entries, await evidence.chains(store, [each.entry for each in shown]), strict=True):
            entry.chain = chain
    return EntryPage(entries, more)


def matching_entries(text: str, entries: list[KnownEntry]) -> list[KnownEntry]:
    """Return the entries that a text names, the best first: by id, by exact words, else by similar words."""
    wanted = " ".join(text.split())
    same = [each for each in entries if each.entry.id == wanted.lower()]
    if same or not wanted:
        return same
    begun = [each for each in entries if len(wanted) > 1 and each.entry.id.startswith(wanted.lower())]
    if begun:
        return begun
    held = [each for each in entries if _holds(each.entry, wanted.lower())]
    if held:
        return sorted(held, key=lambda each: _distance(each.entry, wanted))
    about = similarity.words(wanted)
    near = [(score, -place) for place, each in enumerate(entries) if (score := _nearness(each.entry, about)) >= _ENOUGH]
    return [entries[-place] for _, place in sorted(near, reverse=True)]


def _holds(entry: Entry, wanted: str) -> bool:
    return any(wanted in " ".join(text.split()).lower() for text in (entry.text, *wordings(entry)))


def wordings(entry: Entry) -> list[str]:
    """Return the words that taught an entry."""
    return list(dict.fromkeys(source.quote for source in entry.sources))


def _distance(entry: Entry, wanted: str) -> tuple[bool, int]:
    flat = " ".join(entry.text.split())
    return (wanted.lower() not in flat.lower(), abs(len(flat) - len(wanted)))


def _nearness(entry: Entry, about: similarity.ComparedWords) -> float:
    best = 0.0
    for text in (entry.text, *wordings(entry)):
        own = similarity.words(text)
        shared, least = len(own.about & about.about), min(len(own.about), len(about.about))
        if similarity.is_same(own, about):
            best = max(best, 0.7 + 0.3 * shared / max(1, least))
        elif shared > 1:
            best = max(best, shared / least)
    return best


def single_entry(
    text: str, entries: list[KnownEntry], candidates: Sequence[KnownEntry] = ()
) -> tuple[KnownEntry, list[KnownEntry]]:
    """Return the entry that a text names, and the others that it may mean; a candidate by its id, or if nothing else.

    Raises:
        BadInput: it names none, or is the beginning of several ids.
    """
    begins = text.strip().lower()
    named = [each for each in candidates if len(begins) > 1 and each.entry.id.startswith(begins)]
    matches = matching_entries(text, [*entries, *named]) or matching_entries(text, [*candidates])
    if not matches:
        raise BadInput(f"Nothing in memory is called or says {text!r}.", hint=_HINT)
    if len(matches) > 1 and all(each.entry.id.startswith(begins) for each in matches):
        ids = ", ".join(each.entry.id for each in matches[:5])
        raise BadInput(f"{text!r} is the beginning of {len(matches)} ids: {ids}.", hint="Give more of the id.")
    return matches[0], matches[1:]
