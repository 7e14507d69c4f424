"""Counting a whole ledger: everything that ever happened in a thread, what an earlier compaction left out too."""

from __future__ import annotations

import msgspec

from commonplace.context.digest.tally import Tally
from commonplace.protocol import events, items
from commonplace.protocol.rollout import Line
from commonplace.rollout import chain, survey
from commonplace.rollout.chain import Ledger, SkipLog


def tallied(ledger: Ledger) -> tuple[Tally, int | None]:
    """Count everything that happened in a thread; return that and the window that its model has."""
    meta = ledger.meta
    tally = Tally(meta.cwd, meta.git.branch if meta.git else None)
    window: int | None = None
    for _, line in chain.forward(ledger, SkipLog()):
        try:
            if line.type == "response_item":
                origin = line.source()
                tally.see(items.view(line.payload), ok=origin.ok if origin is not None else None)
            elif line.type == "event_msg":
                window = _event(tally, line) or window
        except (msgspec.DecodeError, RecursionError):
            continue
    return tally, window


def _event(tally: Tally, line: Line) -> int | None:
    kind = survey.kind_of(line.payload)
    if kind == events.ROLLED_BACK:
        tally.roll_back(events.event(line.payload).num_turns)
    if kind in events.TURN_STARTED:
        return msgspec.json.decode(line.payload, type=_Started).model_context_window
    return None


class _Started(msgspec.Struct):
    model_context_window: int | None = None
