"""The end of a turn: recorded, told to listeners, and the memories that it used counted. It takes a bounded time."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import anyio
import msgspec

from commonplace.agent import events, ledger_lines, turn_context
from commonplace.agent.approvals.consent import Consent
from commonplace.agent.ledger_lines import Timing
from commonplace.agent.session import Session
from commonplace.agent.turn_state import TurnState
from commonplace.errors import CommonplaceError, WriteFailed

_LONGEST: Final = 10.0
"""Seconds that recording the end may take, and again counting memories: a full disk must not hold a person up."""
_LATE: Final = events.Problem("write_failed", "The end of the turn could not be written in time.", "Resume the thread.")


async def finish(
    session: Session, turn: TurnState, problem: events.Problem | None, began: datetime, clock: float
) -> events.End:
    """Record and publish how a turn ended, also when the task is cancelled; return it.

    `began` and `clock` tell when the turn began, in wall time and on the monotonic clock.
    """
    first = None if turn.first_token is None else turn.first_token - clock
    timing = Timing(began, session.environment.now(), session.environment.monotonic() - clock, first)
    end: events.End = events.TurnFailed(turn_id=turn.id, error=_LATE)
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(_LONGEST):
            if session.sandbox.support is not None:  # a command was run
                await session.sandbox.clean_up(turn.profile)
                Consent(session, turn).warn_of_planted()
            end = await _record(session, turn, problem, timing)
        session.ledger.publish(end)
        with anyio.move_on_after(_LONGEST):
            await _count_memory_use(session, turn)
    return end


async def _record(session: Session, turn: TurnState, problem: events.Problem | None, timing: Timing) -> events.End:
    """Record how a turn ended, as safely as the settings ask for."""
    ledger, info = session.ledger, session.usage.info
    turn.begin_ending()
    if turn.plan is not None:
        ledger.complete(turn.plan)
    while turn.steered_inputs and not turn.interrupted:
        wait = _LONGEST / 2 / turn.steered_inputs
        await turn_context.take_input(session, turn, *turn.next_steered(), wait=wait)
    session.record_notices(turn.take_notices())
    end: events.End
    if turn.scope.cancelled_caught or turn.interrupted:
        text = {"type": "input_text", "text": ledger_lines.ABORTED}
        ledger.record({"type": "message", "role": "user", "content": [text]})
        end = events.TurnAborted(turn_id=turn.id, info=info)
    elif problem is not None:
        end = events.TurnFailed(turn_id=turn.id, error=problem, info=info)
    else:
        end = events.TurnCompleted(turn_id=turn.id, message=turn.message, info=info)
    ledger.note("event_msg", ledger_lines.turn_ended(end, timing))
    session.prompt.set_previous_model(turn.profile.choice)
    try:
        await ledger.end_turn()
    except WriteFailed as error:
        failure = events.Problem(error.code, error.message, error.hint)
        end = events.TurnFailed(turn_id=turn.id, error=failure, info=info)
    return end


async def _count_memory_use(session: Session, turn: TurnState) -> None:
    """Count the memories that a turn cited and read; a failure is only a warning."""
    environment, ledger = session.environment, session.ledger
    try:
        for citation in turn.citations:
            receipt = await environment.cited(citation)
            if receipt is not None:
                ledger.note_own("citation", turn_id=turn.id, receipt=msgspec.to_builtins(receipt))
        if turn.memory_reads:
            ledger.note_own("retrieved", turn_id=turn.id, found=msgspec.to_builtins(turn.memory_reads))
            await environment.retrieved(turn.memory_reads)
    except (CommonplaceError, OSError) as error:
        ledger.warn(f"What memory was used for could not be counted: {error}")
