"""World state: what the model was told about its surroundings, section by section, and what it must be told next.

A section has a small snapshot of what it says and a way to say it, given what was said before. Snapshots go into the
ledger (`world_state` lines: a whole one, then merge patches), so that a resumed thread goes on where it was. At the
beginning of a turn without a reference context everything is told; with one, only what changed.

Invariants: nothing is told twice while its snapshot and its text stand; the patches of a ledger, applied in order,
give the snapshot of the newest update; order is fixed by `ORDER`, whatever order sections are given in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec

from commonplace.context import injected_messages
from commonplace.context.injected_messages import InjectedText, Item
from commonplace.protocol.rollout import TurnContext

ORDER: Final = (
    "model",
    "session developer",
    "personality",
    "host_skills",
    "permissions",
    "collaboration_mode",
    "extension developer",
    "session separate",
    "session user",
    "agents_md",
    "environments",
    "extension user",
)
"""Sections in the order of a full telling; names with a blank are places for texts that are no section here."""
_RANK: Final = {name: rank for rank, name in enumerate(ORDER)}


class KnownSnapshot(msgspec.Struct, frozen=True):
    """The section was told, and this is its snapshot."""

    value: Any


class Unknown(msgspec.Struct, frozen=True):
    """The history holds a text of this kind, but no snapshot says what it was made from."""

    text: str


class Absent(msgspec.Struct, frozen=True):
    """The model was not told, or what it was told is gone."""


Before = KnownSnapshot | Unknown | Absent


class SectionName(msgspec.Struct, frozen=True):
    """The names of a section."""

    id: str
    """In the ledger."""
    fragment: str
    """Its text, in the registry of injected texts."""
    lapses: bool = False
    """A snapshot counts only while the history still holds the text."""


class Section(Protocol):
    """One thing the model is told about."""

    @property
    def name(self) -> SectionName:
        """By what names the ledger and the registry know it."""
        ...

    def snapshot(self) -> Any:
        """Return what is remembered; None leaves the section out."""
        ...

    def tell(self, before: Before) -> list[InjectedText]:
        """Return what the model must be told, given what it was told before."""
        ...


class InjectedState(msgspec.Struct, frozen=True):
    """What a thread has told its model: the newest snapshot, and the injected texts in its history."""

    baseline: Mapping[str, Any] | None = None
    held: Mapping[str, str] = {}

    def before(self, section: Section) -> Before:
        """Return the state of one section."""
        text = self.held.get(section.name.fragment)
        if self.baseline is not None and section.name.id in self.baseline:
            return Absent() if section.name.lapses and text is None else KnownSnapshot(self.baseline[section.name.id])
        return Absent() if text is None else Unknown(text)


class WorldStateUpdate(msgspec.Struct, frozen=True):
    """What to record, in this order: the items, then the `world_state` line, then the `turn_context` line."""

    items: list[Item]
    world: dict[str, Any] | None
    """Payload of the `world_state` line, if there is one to write."""
    turn_context: bool
    """Whether the turn's context is written and becomes the reference."""
    baseline: dict[str, Any]
    """The snapshot from here on."""


def begin(
    sections: Iterable[Section],
    so_far: InjectedState,
    current: TurnContext,
    reference: TurnContext | None,
    *,
    turn: Sequence[InjectedText] = (),
) -> WorldStateUpdate:
    """Return what a turn begins with; `turn` are texts of others, told at its beginning."""
    sections = list(sections)
    now = snapshot(sections)
    if reference is None:
        return WorldStateUpdate(full_items(sections, turn), {"full": True, "state": now}, True, now)
    changed = current != reference
    texts = [*_changes(sections, so_far), *(turn if changed else ())]
    world = _record(so_far.baseline, now)
    return WorldStateUpdate(injected_messages.messages(texts), world, bool(texts) or changed, now)


def step(sections: Iterable[Section], so_far: InjectedState) -> WorldStateUpdate:
    """Return what became known since the last request of the turn."""
    sections = list(sections)
    now = snapshot(sections)
    return WorldStateUpdate(
        injected_messages.messages(_changes(sections, so_far)), _record(so_far.baseline, now), False, now
    )


def full_items(sections: Iterable[Section], others: Sequence[InjectedText] = ()) -> list[Item]:
    """Return everything as new, as a thread begins or as a compaction puts it back."""
    ranked = [(_place(text), text) for text in others]
    for section in sections:
        for text in section.tell(Absent()):
            # A new model is announced by a message of its own, except where a message is made anyway.
            joined = msgspec.structs.replace(text, alone=False) if section.name.id == "model" else text
            ranked.append((_rank(section, text), joined))
    return injected_messages.messages(text for _, text in sorted(ranked, key=lambda pair: pair[0]))


def snapshot(sections: Iterable[Section]) -> dict[str, Any]:
    """Return the snapshot of all sections, by name."""
    found = {section.name.id: _without_nulls(section.snapshot()) for section in sections}
    return {key: found[key] for key in sorted(found) if found[key] is not None}


def _changes(sections: Sequence[Section], so_far: InjectedState) -> list[InjectedText]:
    ranked = [(_rank(section, text), text) for section in sections for text in section.tell(so_far.before(section))]
    return [text for _, text in sorted(ranked, key=lambda pair: pair[0])]


def _rank(section: Section, text: InjectedText) -> int:
    return _RANK.get(section.name.id, _RANK[f"extension {text.role}"])


def _place(text: InjectedText) -> int:
    if text.role == "developer" and text.alone:
        return _RANK["session separate"]
    return _RANK[f"session {text.role}"]


def _record(baseline: Mapping[str, Any] | None, now: dict[str, Any]) -> dict[str, Any] | None:
    if baseline is None:
        return {"full": True, "state": now}
    changed = patch(baseline, now)
    return {"full": False, "state": changed} if changed else None


def patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7386) that makes one snapshot out of another: removals first."""
    changed: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if key in before and _same(old, value):
            continue
        if isinstance(old, dict) and isinstance(value, dict):
            changed[key] = patch(cast("dict[str, Any]", old), cast("dict[str, Any]", value))
        else:
            changed[key] = value
    return changed


def apply(before: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot with a merge patch applied."""
    merged = dict(before)
    for key, value in changed.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            inner = merged.get(key)
            start = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
            merged[key] = apply(start, cast("dict[str, Any]", value))
        else:
            merged[key] = value
    return merged


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: `true` is not `1`."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        first, second = cast("list[Any]", one), cast("list[Any]", other)
        return len(first) == len(second) and all(map(_same, first, second))
    return one == other


def _without_nulls(value: Any) -> Any:
    """Leave out what is null inside objects: in a patch it would mean removal."""
    if not isinstance(value, dict):
        return value
    whole = cast("dict[str, Any]", value)
    return {key: _without_nulls(inner) for key, inner in whole.items() if inner is not None}
