"""The one fold over a ledger's lines: user turns are counted, and each kind of line goes to a method of its own.

A reader of ledgers subclasses `LedgerFold` and overrides the methods it needs. It sees lines oldest first. A line that
is not what its type says goes to `damaged` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import events, items, rollout
from commonplace.protocol.rollout import Line, Skipped
from commonplace.protocol.turns import TurnCounter, is_boundary

_KIND: Final = regex(rb'\s*\{\s*"type"\s*:\s*"([a-z_]+)"')


class LedgerFold:
    """Sees every line of a ledger, counts turns, and tells them apart by what they mean."""

    def __init__(self, turns_before: int = 0) -> None:
        self.counter = TurnCounter()
        self.counter.turns = turns_before

    @property
    def turn(self) -> int:
        """The number of the user turn that the last line stands in."""
        return self.counter.turns

    def run(self, records: Iterable[Line | Skipped]) -> None:
        """See every line of some records."""
        for record in records:
            if isinstance(record, Line):
                self.see(record)

    def see(self, line: Line) -> None:
        """See one line."""
        try:
            self._see(line)
        except (msgspec.DecodeError, RecursionError):
            self.damaged(line)

    def _see(self, line: Line) -> None:
        match line.type:
            case "response_item":
                if self.wants_item(line):
                    view = items.view(line.payload)
                    self.item(view, line, begins_turn=is_boundary(view) and self.counter.boundary())
            case "event_msg":
                self._event(line, kind_of(line.payload))
            case "compacted":
                self.compacted(line)
            case "inter_agent_communication":
                self.counter.boundary()
            case rollout.OWN_TYPE:
                self.note(line)
            case _:
                self.other(line)

    def _event(self, line: Line, kind: str) -> None:
        if kind in events.TURN_STARTED:
            self.counter.started()
            self.turn_started(line)
        elif kind in events.TURN_COMPLETE or kind == events.TURN_ABORTED:
            self.counter.ended()
            self.turn_ended(line, aborted=kind == events.TURN_ABORTED)
        elif kind == events.ROLLED_BACK:
            count = events.event(line.payload).num_turns
            self.counter.rolled_back(count)
            self.rolled_back(count)
        else:
            self.event(line, kind)

    def wants_item(self, line: Line) -> bool:
        """Say whether an item must be decoded; one that begins a turn always must be."""
        del line
        return True

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        """See an item, after the turn that it begins was counted."""

    def turn_started(self, line: Line) -> None:
        """See the event that a turn began with."""

    def turn_ended(self, line: Line, *, aborted: bool) -> None:
        """See the event that a turn ended with."""

    def rolled_back(self, count: int) -> None:
        """See that the last user turns were taken back."""

    def event(self, line: Line, kind: str) -> None:
        """See any other event."""

    def compacted(self, line: Line) -> None:
        """See a compaction."""

    def note(self, line: Line) -> None:
        """See a line of our own."""

    def other(self, line: Line) -> None:
        """See a line of any other type."""

    def damaged(self, line: Line) -> None:
        """See a line that is not what its type says."""


def kind_of(payload: msgspec.Raw | bytes) -> str:
    """Return the `type` of a payload, from its first bytes where it stands there."""
    raw = bytes(payload)
    if found := _KIND.match(raw, 0, 80):
        return found[1].decode()
    return items.kind(raw)
