"""The loop: compact if it is time → ask the model → run its tools → again, until it has nothing more to do.

    run            a turn from its first line to its last, whatever happens in between
    _loop          the loop itself
    _answered      one answer, with what is done when the server fails in the middle or the window is full

Everything that is recorded goes through `Session`. An interrupt cancels the turn's scope wherever it is; what was said
and done until then is recorded before the turn ends.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

import anyio

from commonplace.agent import beginning, compacting, events, lines
from commonplace.agent.hooks.values import Answer
from commonplace.agent.lines import Timing
from commonplace.agent.sampling import Sampled, sample
from commonplace.context import triggers
from commonplace.errors import CommonplaceError, ContextTooLong, ModelError, WriteFailed
from commonplace.protocol.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from commonplace.agent.current import Turn
    from commonplace.agent.input import Input
    from commonplace.agent.session import Session

STREAM_RETRIES: Final = 5
"""How often an answer that broke off in the middle is asked for again."""
_LONGEST_END: Final = 10.0
"""Seconds that the end of a turn may take."""
_LATE: Final = events.Problem("write_failed", "The end of the turn could not be written in time.", "Resume the thread.")


async def run(session: Session, turn: Turn) -> events.End:
    """Run a turn to its end and tell how that was."""
    return await _run(session, turn, _loop)


async def run_compaction(session: Session, turn: Turn) -> events.End:
    """Shorten the history, as a turn that does nothing else."""
    return await _run(session, turn, lambda session, turn: compacting.compact(session, turn, triggers.MANUAL))


async def _run(session: Session, turn: Turn, body: Callable[[Session, Turn], Awaitable[object]]) -> events.End:
    session.turn = turn
    began, clock = session.outside.now(), session.outside.monotonic()
    problem: events.Problem | None = None
    end: events.End = events.TurnFailed(turn_id=turn.id, error=_LATE)
    window = session.profile.window.effective
    try:
        session.note("event_msg", lines.started(turn.id, began, window, session.profile.mode))
        session.tell(events.TurnStarted(turn_id=turn.id))
        with turn.scope:
            await body(session, turn)
    except CommonplaceError as error:
        problem = events.Problem(error.code, error.message, error.hint)
    except Exception as error:  # a bug must not take the thread with it
        problem = events.Problem("internal", f"The turn failed: {type(error).__name__}: {error}", "Please report it.")
        if isinstance(error, AssertionError):  # what must never be is not to be overlooked
            raise
    except BaseException:  # the task around it was cancelled
        turn.interrupted = True
        raise
    finally:
        first = None if turn.first_token is None else turn.first_token - clock
        timing = Timing(began, session.outside.now(), session.outside.monotonic() - clock, first)
        try:
            with anyio.CancelScope(shield=True):
                with anyio.move_on_after(_LONGEST_END):
                    end = await _end(session, turn, problem, timing)
                session.tell(end)
                with anyio.move_on_after(_LONGEST_END):
                    await session.count(turn)
        finally:
            session.turn = None
    return end


async def _loop(session: Session, turn: Turn) -> None:
    await compacting.before_turn(session, turn)
    await beginning.begin(session, turn)
    taken = turn.stopped is None and await _take(session, turn.context, turn.given)
    await _persist(session)
    while taken and turn.stopped is None:
        answer = await _answered(session, turn)
        if turn.stopped is not None:
            return
        goes_on = answer.follow_up or (not turn.pending and await session.hooks.goes_on(turn))
        if not goes_on and not turn.pending:  # something may have been said while hooks were asked
            return
        compacted = await compacting.between(session, turn)
        while turn.pending and not (compacted and answer.follow_up):  # first the model goes on where it was
            goes_on = await _take(session, *turn.pending.popleft()) or goes_on
        if not goes_on:  # hooks refused all that was said meanwhile
            return
        beginning.step(session, turn)


async def _take(
    session: Session, context: Sequence[Mapping[str, Any]], given: Input, *, wait: float | None = None
) -> bool:
    """Record what a person said, and before it what their client knows; say whether the model is to answer.

    Hooks that are asked for longer than one can `wait` change nothing.
    """
    accepted, answer = True, Answer()
    if given.parts:
        with anyio.move_on_after(wait):
            accepted, answer = await session.hooks.prompt(given)
    for item in context:
        session.record(dict(item))
    if given.parts and accepted:
        now = int(session.outside.now().timestamp() * 1000)
        item_id = f"msg_{uuid7(now, secrets.token_bytes(10))}"
        session.record(given.message(item_id))
        session.show(events.UserMessage(id=item_id, content=[*given.parts]))
    session.hooks.added(answer)
    return accepted


async def _persist(session: Session) -> None:
    if session.recorder is not None:
        await session.recorder.persist()


async def _answered(session: Session, turn: Turn) -> Sampled:
    """Return an answer: of one that breaks off, the rest; of one that the window has no room for, after compacting."""
    attempt = 0
    while True:
        sampled = Sampled()
        try:
            await sample(session, turn, sampled)
        except ContextTooLong:
            if turn.compacted_for_room:
                raise
            turn.compacted_for_room = True
            session.note_refusal()
            await compacting.compact(session, turn, triggers.Trigger("context_limit", "mid_turn", injects=True))
        except ModelError as error:
            attempt += 1
            if not (error.retryable and sampled.answered) or attempt > STREAM_RETRIES:
                raise
            retry = events.Retrying(turn_id=turn.id, attempt=attempt, limit=STREAM_RETRIES, reason=error.message)
            session.tell(retry)
            await session.pause(attempt, error)
        else:
            turn.compacted_for_room = False
            return sampled


async def _end(session: Session, turn: Turn, problem: events.Problem | None, timing: Timing) -> events.End:
    """Record how a turn ended, as safely as the settings ask for."""
    turn.ending = True
    if turn.plan is not None:
        session.show(turn.plan)
    while turn.pending and not turn.interrupted:
        await _take(session, *turn.pending.popleft(), wait=_LONGEST_END / 2 / (len(turn.pending) + 1))
    info = session.history.info
    end: events.End
    if turn.scope.cancelled_caught or turn.interrupted:
        marker = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": lines.ABORTED}]}
        session.record(marker)
        end = events.TurnAborted(turn_id=turn.id, info=info)
    elif problem is not None:
        end = events.TurnFailed(turn_id=turn.id, error=problem, info=info)
    else:
        end = events.TurnCompleted(turn_id=turn.id, message=turn.message, info=info)
    session.note("event_msg", lines.ended(end, timing))
    session.previous_model = session.profile.choice.slug
    try:
        if session.recorder is not None:
            await session.recorder.end_turn()
    except WriteFailed as error:
        failure = events.Problem(error.code, error.message, error.hint)
        end = events.TurnFailed(turn_id=turn.id, error=failure, info=info)
    return end
