"""Forks: a new thread that starts from another's past.

By reference, the new file holds one line that points at a byte of the parent's file: any size forks in no time. As a
copy, every inherited line is written out with its blobs inlined, so that the file stands alone and Codex can resume it.
Either way the parent is only read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from commonplace.errors import BadInput
from commonplace.protocol import events, items
from commonplace.protocol.rollout import Line
from commonplace.protocol.turns import is_boundary
from commonplace.rollout import blobs, chain, layout, reader
from commonplace.rollout.chain import Ledger, LedgerPart, SkipLog
from commonplace.rollout.fold import LedgerFold


class Cut(msgspec.Struct, frozen=True):
    """A place in a thread: before byte `offset` of one of its parts."""

    part: LedgerPart
    offset: int
    ordinal: int | None
    """The ordinal that the next line would have, in paginated threads."""


def end_of(ledger: Ledger) -> Cut:
    """Return the end of a thread: after its last whole line."""
    part = ledger.parts[0]
    end, ordinal = 0, None
    if reader.is_compressed(part.path):
        meter = reader.Meter()
        for record in reader.forward(part.path, meter=meter):
            if isinstance(record, Line):
                end = record.offset + record.size + 1
                ordinal = record.ordinal if record.ordinal is not None else ordinal
        return _cut(part, min(end, meter.bytes_read), ordinal)
    for record in reader.backward(part.path):
        if isinstance(record, Line):
            end = end or record.offset + record.size + 1
            ordinal = record.ordinal
            if ordinal is not None or ledger.meta.history_mode != "paginated":
                break
    return _cut(part, min(end, part.path.stat().st_size), ordinal)


def _cut(part: LedgerPart, offset: int, last_ordinal: int | None) -> Cut:
    return Cut(part, offset, None if last_ordinal is None else last_ordinal + 1)


def after_turn(ledger: Ledger, turn: str) -> Cut:
    """Return the place after a turn, given as a number (1 is the first in which a person spoke) or as a turn id.

    Raises:
        BadInput: the thread has no such turn.
    """
    starts = _turn_starts(ledger)
    place = _find_turn(starts, turn)
    if place is None:
        count = sum(start.said > 0 for start in starts)
        raise BadInput(
            f"Thread {ledger.thread_id} has no turn {turn}.",
            hint=f"It has {count} turns: give a number from 1 to {count}, or a turn id.",
        )
    return starts[place + 1].cut if place + 1 < len(starts) else end_of(ledger)


class _TurnStart(msgspec.Struct):
    cut: Cut
    turn_id: str | None
    said: int = 0
    """How often a person spoke in it, as a rollback counts; never in a compaction."""


def _find_turn(starts: list[_TurnStart], turn: str) -> int | None:
    if turn.isdecimal() and len(turn) < 10:
        spoken = [place for place, start in enumerate(starts) if start.said]
        return spoken[int(turn) - 1] if 1 <= int(turn) <= len(spoken) else None
    return next((place for place, start in enumerate(starts) if start.turn_id == turn), None)


def _turn_starts(ledger: Ledger) -> list[_TurnStart]:
    """Return where each turn that was not rolled back begins."""
    fold = _StartsFold()
    for part, line in chain.forward(ledger, SkipLog()):
        fold.here = Cut(part, line.offset, line.ordinal)
        fold.see(line)
    return fold.starts


class _StartsFold(LedgerFold):
    here: Cut

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[_TurnStart] = []
        self._is_open = False

    def turn_started(self, line: Line) -> None:
        self.starts.append(_TurnStart(self.here, events.event(line.payload).turn_id))
        self._is_open = True

    def turn_ended(self, line: Line, *, aborted: bool) -> None:
        self._is_open = False

    def rolled_back(self, count: int) -> None:
        while self.starts and count > 0:
            count -= self.starts.pop().said
        self._is_open = False

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        if is_boundary(view):
            self._spoke()

    def see(self, line: Line) -> None:
        super().see(line)
        if line.type == "inter_agent_communication":
            self._spoke()

    def _spoke(self) -> None:
        if not self._is_open:
            self.starts.append(_TurnStart(self.here, None))
        self.starts[-1].said += 1


def reference_meta(meta: dict[str, Any], ledger: Ledger, cut: Cut) -> dict[str, Any]:
    """Return the first line's payload of a fork that refers to its parent (raises LedgerError)."""
    named = layout.parse_name(cut.part.path.name)
    base: dict[str, Any] = {"thread_id": named.rollout_id if named else chain.read_head(cut.part.path)[1].id}
    base["end_ordinal_exclusive"] = cut.ordinal
    base["end_byte_offset"] = cut.offset
    base["path"] = str(cut.part.path.absolute())
    if cut.ordinal is None:
        del base["end_ordinal_exclusive"]
    mode = "legacy" if cut.ordinal is None else "paginated"
    return {**meta, "forked_from_id": ledger.thread_id, "history_mode": mode, "history_base": base}


def copied_lines(ledger: Ledger, cut: Cut, store: blobs.BlobStore, log: SkipLog) -> Iterator[Line]:
    """Yield the lines before a cut with every spilled value put back; session_meta lines of parents are left out."""
    inherited = _before(chain.forward(_until(ledger, cut), log), cut)
    for line in blobs.restored(inherited, store, log.add, everything=True):
        if line.type != "session_meta":
            yield line


def _until(ledger: Ledger, cut: Cut) -> Ledger:
    """Return the ledger without the parts that come after the one that the cut is in."""
    place = ledger.parts.index(cut.part)
    return Ledger(ledger.path, ledger.meta, ledger.head, ledger.parts[place:])


def _before(lines: Iterable[tuple[LedgerPart, Line]], cut: Cut) -> Iterator[Line]:
    for part, line in lines:
        if part == cut.part and line.offset >= cut.offset:
            return
        yield line
