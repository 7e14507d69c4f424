"""The order of a conversation whose file is not in order, and the branches that were given up.

Records name their parents, and a file may hold a child before its parent. `Order` holds such a child back until its
parent has come; how many it holds is bounded, so that a parent that never comes costs nothing. `Branches` follows which
turns are part of the conversation: a prompt that hangs on an earlier turn takes the later ones back.

Both remember only so many records. Of a file with more, the oldest are forgotten: then an odd parent is taken to be
known, as it nearly always is.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Final

import msgspec

from commonplace.importers.claude_code.records import Record

_MAX_KNOWN: Final = 250_000
_MAX_HELD: Final = 256
_MAX_HELD_BYTES: Final = 8 * 2**20


class Held(msgspec.Struct, gc=False):
    """A record and where it stands."""

    record: Record
    offset: int
    size: int

    @property
    def parent(self) -> str | None:
        """The record before this one, also across a compaction."""
        return self.record.parent_uuid or self.record.logical_parent_uuid


class Order:
    """Puts records into the order of the conversation; a record that comes twice is given out once."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._waiting: dict[str, list[Held]] = {}
        self._held: set[str] = set()
        self._bytes = 0

    def see(self, held: Held) -> Iterator[Held]:
        """Take in the next record of the file; yield those whose turn has come."""
        uuid = held.record.uuid
        if uuid in self._known or uuid in self._held:
            return
        parent = held.parent
        complete = len(self._known) < _MAX_KNOWN
        if complete and parent and parent != uuid and parent not in self._known:
            self._waiting.setdefault(parent, []).append(held)
            self._held.add(uuid)
            self._bytes += held.size
            while len(self._held) > _MAX_HELD or self._bytes > _MAX_HELD_BYTES:
                yield from self._give_up_on(next(iter(self._waiting)))
            return
        yield from self._release(held)

    def finish(self) -> Iterator[Held]:
        """Yield what is still held, whose parents are not in the file."""
        while self._waiting:
            yield from self._give_up_on(next(iter(self._waiting)))

    def _give_up_on(self, parent: str) -> Iterator[Held]:
        for held in self._waiting.pop(parent):
            self._forget(held)
            yield from self._release(held)

    def _release(self, held: Held) -> Iterator[Held]:
        """Yield a record and everything that waited for it, however deep."""
        ready = [held]
        while ready:
            current = ready.pop()
            if len(self._known) >= _MAX_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[current.record.uuid] = None
            yield current
            children = self._waiting.pop(current.record.uuid, ())
            for child in reversed(children):
                self._forget(child)
                ready.append(child)

    def _forget(self, held: Held) -> None:
        self._held.discard(held.record.uuid)
        self._bytes -= held.size


class Branches:
    """Which turns count; turns are numbered as they come, so that those that count are always in order."""

    def __init__(self) -> None:
        self._turn_of: dict[str, int] = {}
        self._active: list[int] = []
        self._last = 0

    def follow(self, uuid: str, parent: str | None) -> None:
        """Note a record that belongs to the turn of its parent."""
        self._note(uuid, self._turn_of.get(parent, self._newest()) if parent else self._newest())

    def prompt(self, uuid: str, parent: str | None) -> int:
        """Note a record that begins a turn; return how many turns it takes back."""
        taken_back = 0
        turn = self._turn_of.get(parent) if parent else None
        if turn is not None:
            place = bisect.bisect_right(self._active, turn)
            stands = turn == 0 or (place > 0 and self._active[place - 1] == turn)
            if stands:
                taken_back = len(self._active) - place
                del self._active[place:]
        self._last += 1
        self._active.append(self._last)
        self._note(uuid, self._last)
        return taken_back

    def steer(self, uuid: str, after: str) -> None:
        """Note a prompt that nothing hangs on: what hangs on the record before it comes after it."""
        self.prompt(uuid, after)
        self._note(after, self._last)

    def _newest(self) -> int:
        return self._active[-1] if self._active else 0

    def _note(self, uuid: str, turn: int) -> None:
        if len(self._turn_of) >= _MAX_KNOWN:
            del self._turn_of[next(iter(self._turn_of))]
        self._turn_of[uuid] = turn
