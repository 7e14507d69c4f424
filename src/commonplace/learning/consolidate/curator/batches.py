"""Which entries a request is about: those that the model has not seen as they are, and the nearest others."""

from __future__ import annotations

import msgspec

from commonplace.learning.consolidate import entry_edits, handbook
from commonplace.learning.consolidate.entry_edits import EntryEdits
from commonplace.memory import similarity
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.memory.similarity import ComparedWords

_NEAR = 0.25
"""Share of the shorter of two entries that they must have in common for one to be shown beside the other."""
_MOST_NEAR = 8
"""How many of the nearest other entries are shown."""
_FRAME = 300
"""Bytes that the evidence of an entry takes, about."""


class EntryBatch(msgspec.Struct):
    """The entries of one request."""

    new: list[Entry]
    """What the model has not seen, or not as it is."""
    near: list[Entry]
    left: int = 0
    """How many more entries wait for a later request."""

    @property
    def shown(self) -> dict[str, Entry]:
        """All entries of the request, by their ids."""
        return {each.id: each for each in (*self.new, *self.near)}


def unseen(entries: list[Entry], edits: EntryEdits) -> list[Entry]:
    """Return the entries that the model has not seen as they are: by project, the most useful first."""
    new = [each for each in entries if edits.seen.get(each.id) != entry_edits.state(each)]
    return sorted(new, key=lambda each: (each.scope, handbook.rank(each)))


def next_batch(entries: list[Entry], new: list[Entry], *, room: int, beside: int) -> EntryBatch:
    """Return the first entries of `new` that fit into so many bytes, with the nearest of the others."""
    taken: list[Entry] = []
    for each in new:
        room -= len(each.text.encode()) + _FRAME
        if room < 0 and taken:
            break
        taken.append(each)
    return EntryBatch(taken, _near(taken, entries, beside), len(new) - len(taken))


def _near(chosen: list[Entry], entries: list[Entry], room: int) -> list[Entry]:
    """Return the entries that share the most with some, for the same project or for all, the nearest first."""
    own, scopes = {each.id for each in chosen}, {each.scope for each in chosen} | {GLOBAL}
    asked = [(each, similarity.words(each.text)) for each in chosen]
    ranked: list[tuple[float, str, Entry]] = []
    for other in entries:
        if other.id in own or other.scope not in scopes:
            continue
        words = similarity.words(other.text)
        closest = max((_closeness(mine, words) for each, mine in asked if _may_meet(each, other)), default=0.0)
        if closest >= _NEAR:
            ranked.append((-closest, other.id, other))
    near: list[Entry] = []
    for _, _, each in sorted(ranked, key=lambda one: one[:2])[:_MOST_NEAR]:
        room -= len(each.text.encode())
        if room < 0:
            break
        near.append(each)
    return near


def _may_meet(one: Entry, two: Entry) -> bool:
    return one.scope == two.scope or GLOBAL in (one.scope, two.scope)


def _closeness(one: ComparedWords, two: ComparedWords) -> float:
    """Return how much two entries have in common; what contradicts counts as much as what agrees."""
    shared, least = one.about & two.about, min(one.weight, two.weight)
    together = bool(one.concepts & two.concepts) or any(family in two.chosen for family in one.chosen)
    return max(similarity.weight(shared) / least if least and shared else 0.0, _NEAR if together else 0.0)
