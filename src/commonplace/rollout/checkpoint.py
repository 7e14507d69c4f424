"""The newest lines first, as far back as a replay needs: why resuming costs what the live window costs.

`Tail` walks a thread from its end: its own file backwards, then the prefixes it inherits. Whoever replays pulls lines
until it has met the newest usable checkpoint and stops; what was never pulled was never read. Compressed files can
only be read forwards: there, a first pass finds where the newest checkpoint stands and a second keeps the lines from
a little before it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Final

from commonplace.protocol import rollout
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import reader
from commonplace.rollout.chain import Ledger, LedgerPart, SkipLog, note_missing_tail

SLACK_BYTES: Final = 4 * 2**20
"""How far before a checkpoint settings of earlier turns are still looked for."""
LIVE_BYTES: Final = 256 * 2**20
"""Most bytes of lines that a replay holds; no model takes a fraction of it."""

_SKIPPED_COST: Final = 256
"""What holding one report of a bad line counts for."""


class Tail:
    """Iterate over a thread's lines, newest first; `log` and `bytes_read` tell what the walk met."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.log = SkipLog()
        self._meter = reader.Meter()
        self._rolled_back = False
        """Whether a rollback was met: then a checkpoint before it may not stand."""

    @property
    def bytes_read(self) -> int:
        """How many bytes of session text were read so far."""
        return self._meter.bytes_read

    def __iter__(self) -> Iterator[Line]:
        for part in self.ledger.parts:
            records = self._held(part) if reader.is_compressed(part.path) else self._backward(part)
            for record in records:
                if isinstance(record, Skipped):
                    self.log.add(record)
                else:
                    self._rolled_back = self._rolled_back or _is_rollback(record)
                    yield record

    def _backward(self, part: LedgerPart) -> Iterator[reader.Record]:
        if part.end is not None:
            with contextlib.suppress(OSError):  # the reader says it better
                note_missing_tail(part, part.path.stat().st_size, self.log)
        return reader.backward(part.path, end=part.end, meter=self._meter)

    def _held(self, part: LedgerPart) -> Iterator[reader.Record]:
        """Yield a compressed part's newest records in reverse, holding a bounded number of bytes."""
        start = 0 if self._rolled_back else _newest_checkpoint(part)
        held: deque[reader.Record] = deque()
        size = lost = 0
        before = self._meter.bytes_read
        for record in reader.forward(part.path, end=part.end, meter=self._meter):
            held.append(record)
            size += record.size if isinstance(record, Line) else _SKIPPED_COST
            bound = SLACK_BYTES + (LIVE_BYTES if record.offset >= start else 0)
            while size > bound and len(held) > 1:
                dropped = held.popleft()
                cost = dropped.size if isinstance(dropped, Line) else _SKIPPED_COST
                size -= cost
                lost += cost if dropped.offset >= start else 0
        note_missing_tail(part, self._meter.bytes_read - before, self.log)
        if lost:
            self.log.add(Skipped(start, lost, "beyond_bound"))
        return reversed(held)


def _newest_checkpoint(part: LedgerPart) -> int:
    """Return where the newest checkpoint that no rollback follows stands (0 if there is none)."""
    start = 0
    for record in reader.forward(part.path, end=part.end):
        if not isinstance(record, Line):
            continue
        if record.type == "compacted":
            if rollout.checkpoint(record) is not None:
                start = record.offset
        elif _is_rollback(record):
            start = 0
    return start


def _is_rollback(line: Line) -> bool:
    return line.type == "event_msg" and b"thread_rolled_back" in bytes(line.payload)[:4096]
