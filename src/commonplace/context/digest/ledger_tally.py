"""Tallying a whole ledger: everything that ever happened in a thread, also what an earlier compaction left out."""

from __future__ import annotations

import msgspec

from commonplace.context.digest.tally import Tally
from commonplace.protocol import items
from commonplace.protocol.rollout import Line
from commonplace.rollout import chain
from commonplace.rollout.chain import Ledger, SkipLog
from commonplace.rollout.fold import LedgerFold


def tally_ledger(ledger: Ledger) -> tuple[Tally, int | None]:
    """Count everything that happened in a thread; return that and the window that its model has."""
    fold = _TallyFold(ledger)
    for _, line in chain.forward(ledger, SkipLog()):
        fold.see(line)
    return fold.tally, fold.window


class _TallyFold(LedgerFold):
    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.tally = Tally(ledger.meta.cwd, ledger.meta.git.branch if ledger.meta.git else None)
        self.window: int | None = None

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        origin = line.source()
        self.tally.see(view, ok=origin.ok if origin is not None else None)

    def rolled_back(self, count: int) -> None:
        self.tally.roll_back(count)

    def turn_started(self, line: Line) -> None:
        self.window = msgspec.json.decode(line.payload, type=_Started).model_context_window or self.window


class _Started(msgspec.Struct):
    model_context_window: int | None = None
