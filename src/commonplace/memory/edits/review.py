"""Review: a person decides about candidates and doubtful entries, one by one.

Each decision is a line of `decisions.jsonl` and is durable at once; the memory's files follow with the next
consolidation. What was decided is never asked again, and counts as evidence for the rank of entries of its kind. A
later decision about the same entry takes the place of the earlier one: an id stays with its entry, also while the entry
is dropped.

What a model said and its session does not bear out (`memory.refusals`) is shown, too. To keep such a line writes a note
with its words: they are the person's from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread
import msgspec

from commonplace.errors import BadInput
from commonplace.memory import evidence, refusals
from commonplace.memory.edits import edits
from commonplace.memory.entries import Entry
from commonplace.memory.listing import Listed, known_titles, listed_entry
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.projects import lookup
from commonplace.protocol.ids import wire_time
from commonplace.rollout import decisions
from commonplace.rollout.decisions import Review

Verdict = Literal["keep", "drop"]
_IDS: Final = "`commonplace memory list` and `commonplace memory list --candidates` show the ids."


class Decided(msgspec.Struct, frozen=True):
    """A decision about an entry (the JSON of `memory keep` and `memory drop`)."""

    id: str
    decision: Verdict


async def waiting(store: MemoryStore, *, project: str | None = None) -> list[Listed]:
    """Return what waits for a decision: candidates, then doubtful entries, each the most useful first, then what was
    refused of what models said.

    Each has its chain and the reason why it is in doubt (the JSON of `memory review`).

    Raises:
        BadInput: no project is called that.
    """
    candidates, known = await store.candidates(), await store.known_entries()
    refused = {each.entry.id: (each, why) for each, why in await refusals.refused_lines(store)}
    found = [*candidates, *(each for each in known if is_doubtful(each.entry)), *(each for each, _ in refused.values())]
    if project is not None:
        scopes = {each.entry.scope for each in (*found, *known)}
        scope = await lookup.named_scope(store.home, project, scopes)
        found = [each for each in found if each.entry.scope == scope]
    decided = await anyio.to_thread.run_sync(decisions.reviews, store.home.path)
    found = [each for each in found if each.entry.id not in decided]
    chains = await evidence.chains(store, [each.entry for each in found])
    asks_first = store.home.settings.memory.review
    reasons = [
        f"a model said so, but {refused[each.entry.id][1]}"
        if each.entry.id in refused
        else reason(each.entry, asks_first=asks_first and each.is_candidate)
        for each in found
    ]
    titles = await known_titles(store)
    return [_waiting(each, titles, chain, why) for each, chain, why in zip(found, chains, reasons, strict=True)]


def _waiting(known: KnownEntry, titles: dict[str, str], chain: list[evidence.Link], why: str) -> Listed:
    listed = listed_entry(known, titles)
    listed.chain, listed.reason = chain, why
    return listed


def is_doubtful(entry: Entry) -> bool:
    """Say whether an entry is part of the memory's files, but rests on one session that does not show that it lasts."""
    return entry.is_listed and not entry.is_told and entry.support <= 1


def reason(entry: Entry, *, asks_first: bool = False) -> str:
    """Return why an entry is in doubt; `asks_first` says that a setting makes everything wait for a person."""
    count = entry.support
    said = any("by the user" in source.how for source in entry.sources)
    shown = any(source.how.startswith(("shown by", "verified by")) for source in entry.sources)
    if asks_first:
        return "the setting `memory.review` is on, so that nothing counts before you keep it"
    if said and count > 1:
        return f"said in {count} sessions, each time as part of the task at hand"
    if said and entry.is_listed:
        return "said once, and nothing says that it lasts"
    if said:
        return "said once, and it sounds like a part of the task at hand"
    if shown and entry.kind in ("fix", "failure"):
        return "seen in one session only" if count <= 1 else f"seen in {count} sessions, and the cure is not clear"
    if shown:
        return (
            "ran in one session only" if count <= 1 else f"ran in {count} sessions, and others do the same more often"
        )
    return "a summary says so, and no words of a session show it"


async def decide(store: MemoryStore, ids: Sequence[str], verdict: Verdict) -> list[Decided]:
    """Keep or drop entries and candidates by their ids; what was dropped can be kept again.

    Every id is checked before the first decision is written.

    Raises:
        BadInput: an id is unknown or ambiguous, or the entry is pinned or written by hand and cannot be dropped.
    """
    known = {each.entry.id: each.entry for each in (*await store.known_entries(), *await store.candidates())}
    refused = {each.entry.id: each.entry for each, _ in await refusals.refused_lines(store)}
    decided = await anyio.to_thread.run_sync(decisions.reviews, store.home.path)
    names = [_named(text, {*known, *refused, *decided}) for text in ids]
    if verdict == "drop":
        for name in names:
            if name in known:
                _check_droppable(known[name])
    else:
        for name in names:
            if name in refused and not (name in decided and decided[name].is_kept):
                await edits.note_of(store, refused[name])
    await _append(store, [(name, _kind(name, {**refused, **known}, decided)) for name in names], verdict)
    return [Decided(name, verdict) for name in names]


async def reword(store: MemoryStore, entry_id: str, text: str) -> Path:
    """Put a person's words in the place of an entry: it is dropped, and a note says what it is from now on.

    Returns:
        The note's file.

    Raises:
        BadInput: no entry has this id, or the text is empty.
    """
    refused = [each for each, _ in await refusals.refused_lines(store)]
    known = {each.entry.id: each for each in (*await store.known_entries(), *await store.candidates(), *refused)}
    chosen = known[_named(entry_id, known)]
    written = await edits.note_instead(store, chosen, text)
    if not chosen.entry.is_by_hand:
        await _append(store, [(chosen.entry.id, chosen.entry.kind)], "drop")
    return written


def _named(text: str, ids: Iterable[str]) -> str:
    """Return the id that a text is, or is the beginning of."""
    wanted = text.strip().lower()
    found = sorted(name for name in ids if name == wanted or (len(wanted) > 1 and name.startswith(wanted)))
    if wanted in found:
        return wanted
    if not found:
        raise BadInput(f"No entry has the id {text!r}.", hint=_IDS)
    if len(found) > 1:
        raise BadInput(
            f"{text!r} is the beginning of {len(found)} ids: {', '.join(found[:5])}.", hint="Give more of the id."
        )
    return found[0]


def _check_droppable(entry: Entry) -> None:
    """Refuse to drop what a person asked to keep."""
    if entry.pinned:
        raise BadInput(f"{entry.id} is pinned.", hint=f"Let it go first: `commonplace memory pin --unpin {entry.id}`.")
    if entry.is_by_hand:
        raise BadInput(
            f"{entry.id} was written down by hand.", hint=f"`commonplace memory forget {entry.id}` removes it for good."
        )


def _kind(name: str, known: dict[str, Entry], decided: dict[str, Review]) -> str:
    return known[name].kind if name in known else decided[name].entry_kind


async def _append(store: MemoryStore, entries: Iterable[tuple[str, str]], verdict: Verdict) -> None:
    """Write decisions, durably."""
    home, moment = store.home.path, wire_time(store.home.now())

    def write() -> None:
        for name, kind in entries:
            decisions.append(home, "review", moment, entry_id=name, entry_kind=kind, verdict=verdict)

    await anyio.to_thread.run_sync(write)
