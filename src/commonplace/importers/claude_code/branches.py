"""The order of a conversation whose file is not in order, and the branches that were given up.

Records name their parents, and a file may hold a child before its parent. `RecordOrder` holds such a child back until
its parent has come; how many it holds is bounded, so that a parent that never comes costs nothing. `Branches` follows
which turns are part of the conversation: a prompt that hangs on an earlier turn takes the later ones back. A person may
also go on with a branch that was left, in another terminal for instance: which turns that brings back is known at the
end of the file.

Both remember only so many records. Of a file with more, the oldest are forgotten: then an odd parent is taken to be
known, as it nearly always is.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

import msgspec

from commonplace.importers.claude_code.records import ClaudeRecord

_MAX_KNOWN: Final = 250_000
"""How many records are remembered, so that memory is bounded for any file."""
_MAX_HELD: Final = 256
"""How many records may wait for their parents."""
_MAX_HELD_BYTES: Final = 8 * 2**20
"""How many bytes of records may wait for their parents."""


class HeldRecord(msgspec.Struct, gc=False):
    """A record and where it stands."""

    record: ClaudeRecord
    offset: int
    size: int

    @property
    def parent(self) -> str | None:
        """The record before this one, also across a compaction."""
        return self.record.parent_uuid or self.record.logical_parent_uuid


class RecentRecords:
    """A number for each of the newest records: at least half of `_MAX_KNOWN` of them, at most all."""

    def __init__(self) -> None:
        self._new: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self.complete = True
        """Whether nothing was forgotten yet."""

    def put(self, uuid: str, number: int) -> None:
        """Remember a record."""
        if len(self._new) >= _MAX_KNOWN // 2:
            self.complete = not self._old
            self._old, self._new = self._new, {}
        self._new[uuid] = number

    def get(self, uuid: str) -> int | None:
        """Return a record's number; None if it is not known, or no longer."""
        found = self._new.get(uuid)
        return self._old.get(uuid) if found is None else found


class RecordOrder:
    """Puts records into the order of the conversation; a record that comes twice is given out once."""

    def __init__(self) -> None:
        self._known = RecentRecords()
        self._waiting: OrderedDict[str, list[HeldRecord]] = OrderedDict()
        self._held: set[str] = set()
        self._bytes = 0

    def see(self, held: HeldRecord) -> Iterable[HeldRecord]:
        """Take in the next record of the file; return those whose turn has come."""
        uuid = held.record.uuid
        if uuid in self._held or self._known.get(uuid) is not None:
            return ()
        parent = held.parent
        if parent and parent != uuid and self._known.get(parent) is None and self._known.complete:
            return self._hold(held, parent)
        if not self._waiting:  # nearly always
            self._known.put(uuid, 0)
            return (held,)
        return self._release(held)

    def _hold(self, held: HeldRecord, parent: str) -> Iterator[HeldRecord]:
        """Keep a record until its parent comes; yield what can be held no longer."""
        self._waiting.setdefault(parent, []).append(held)
        self._held.add(held.record.uuid)
        self._bytes += held.size
        while len(self._held) > _MAX_HELD or self._bytes > _MAX_HELD_BYTES:
            yield from self._give_up_on(next(iter(self._waiting)))

    def finish(self) -> Iterator[HeldRecord]:
        """Yield what is still held, whose parents are not in the file."""
        while self._waiting:
            yield from self._give_up_on(next(iter(self._waiting)))

    def _give_up_on(self, parent: str) -> Iterator[HeldRecord]:
        for held in self._waiting.pop(parent):
            self._forget(held)
            yield from self._release(held)

    def _release(self, held: HeldRecord) -> Iterator[HeldRecord]:
        """Yield a record and everything that waited for it, however deep."""
        ready = [held]
        while ready:
            current = ready.pop()
            self._known.put(current.record.uuid, 0)
            yield current
            children = self._waiting.pop(current.record.uuid, ())
            for child in reversed(children):
                self._forget(child)
                ready.append(child)

    def _forget(self, held: HeldRecord) -> None:
        self._held.discard(held.record.uuid)
        self._bytes -= held.size


class Branches:
    """Which turns count; turns are numbered as they come, so that those that count are always in order."""

    def __init__(self) -> None:
        self._turn_of = RecentRecords()
        self._active: list[int] = []
        self._before: dict[int, int] = {}
        """The turn that each turn hangs on."""
        self._last = 0

    def follow(self, uuid: str, parent: str | None, *, restarts: bool = False) -> bool:
        """Note a record that belongs to the turn of its parent; return whether that turn still counts.

        Without a parent it belongs to the newest turn, or stands before all turns where it `restarts` the conversation.
        """
        turn = self._turn_of.get(parent) if parent else None
        if turn is None:
            turn = 0 if restarts else self._newest()
        self._turn_of.put(uuid, turn)
        return self._counts(turn)

    def prompt(self, uuid: str, parent: str | None, *, restarts: bool = False, goes_on: bool = False) -> int:
        """Note a record that begins a turn; return how many turns it takes back: all, if it begins them anew.

        Args:
            uuid: The record.
            parent: The record that it hangs on. One that is not known takes back nothing.
            restarts: Without a parent, it stands for all turns so far.
            goes_on: Where its parent is in a branch that was left, the person goes on with that branch.
        """
        turn = self._turn_of.get(parent) if parent else None
        if parent:
            taken_back = self._take_back(turn) if turn is not None and self._counts(turn) else 0
        else:
            taken_back = self._take_back(0 if restarts else self._last)
        returns = goes_on and turn is not None and not self._counts(turn)
        self._last += 1
        self._before[self._last] = turn if returns and turn is not None else self._newest()
        self._active.append(self._last)
        self._turn_of.put(uuid, self._last)
        return taken_back

    def steer(self, uuid: str, after: str) -> None:
        """Note a prompt that nothing hangs on: what hangs on the record before it comes after it."""
        self.prompt(uuid, after)
        self._turn_of.put(after, self._last)

    def turn_of(self, uuid: str) -> int:
        """Return the turn of a record, 0 if it is not known."""
        return self._turn_of.get(uuid) or 0

    def end(self, leaf: str) -> tuple[int, list[int]]:
        """Return how many turns to take back at the end, and which that were taken back to say again, in their order.

        The conversation ends at a record, the leaf; if that is not known, with the newest turn.
        """
        path = self._path(self.turn_of(leaf) or self._newest())
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, self._active, strict=False)))
        return len(self._active) - common, path[common:]

    def _path(self, turn: int) -> list[int]:
        """Return the turns up to one, each hanging on the one before it."""
        path: list[int] = []
        while turn:
            path.append(turn)
            turn = self._before[turn]
        return path[::-1]

    def _take_back(self, turn: int) -> int:
        place = bisect.bisect_right(self._active, turn)
        taken_back = len(self._active) - place
        del self._active[place:]
        return taken_back

    def _counts(self, turn: int) -> bool:
        place = bisect.bisect_right(self._active, turn)
        return turn == 0 or (place > 0 and self._active[place - 1] == turn)

    def _newest(self) -> int:
        return self._active[-1] if self._active else 0
