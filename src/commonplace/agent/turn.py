"""The loop: compact if it is time → ask the model → run its tools → again, until it has nothing more to do.

    run_turn         a turn from its first line to its last, whatever happens in between
    _loop            the loop itself
    _answer          one answer, asked for again when it breaks off, or after compacting when the window is full

Everything is recorded through `session.ledger`. An interrupt cancels the turn's scope wherever it is; what was said and
done until then is recorded before the turn ends (`turn_end`). A turn that began is ended by exactly one of completed,
failed and aborted, in the ledger and for listeners, whatever happens inside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from commonplace.agent import events, ledger_lines, turn_context, turn_end
from commonplace.agent.compaction import schedule
from commonplace.agent.profile import Profile
from commonplace.agent.sampling import Sampled, sample
from commonplace.agent.session import Session
from commonplace.agent.turn_state import TurnState
from commonplace.agent.user_input import UserInput
from commonplace.context import triggers
from commonplace.errors import CommonplaceError, ContextTooLong, ModelError
from commonplace.protocol.ids import new_id

STREAM_RETRIES: Final = 5
"""How often an answer that broke off in the middle is asked for again, as Codex does."""


async def run_turn(
    session: Session,
    given: UserInput,
    profile: Profile | None = None,
    *,
    changed: Callable[[], Awaitable[Profile | None]] | None = None,
) -> events.End:
    """Run a turn, and then those that were queued meanwhile; return how the last one ended.

    `changed` returns the profile of a queued turn, if it is another one by then.

    Raises:
        BadInput: a turn is running, or the input cannot be used.
    """
    with session.turns.occupied("Steer it, queue the input, or interrupt it first."):
        end = await _run_to_end(session, session.start_turn(given, profile), _loop)
        while not isinstance(end, events.TurnAborted) and (queued := session.turns.next_input()) is not None:
            turn = session.start_turn(queued, None if changed is None else await changed())
            end = await _run_to_end(session, turn, _loop)
        return end


async def run_compaction(session: Session) -> events.End:
    """Shorten the history, as a turn that does nothing else (raises BadInput: a turn is running)."""
    with session.turns.occupied("Wait for its end, or interrupt it."):
        turn = session.turns.start_compaction(new_id(session.environment.now()), session.profile)
        return await _run_to_end(session, turn, lambda session, turn: schedule.compact(session, turn, triggers.MANUAL))


async def _loop(session: Session, turn: TurnState) -> None:
    await schedule.before_turn(session, turn)
    await turn_context.begin(session, turn)
    accepted = turn.stopped is None and await turn_context.take_input(session, turn, turn.context, turn.given)
    await session.ledger.persist()
    while accepted and turn.stopped is None:
        answer = await _answer(session, turn)
        if turn.stopped is not None:
            return
        goes_on = answer.follow_up or (not turn.steered_inputs and await session.hooks.keep_going(turn))
        if not goes_on and not turn.steered_inputs:  # input may have come while hooks were asked
            return
        compacted = await schedule.between_requests(session, turn)
        while turn.steered_inputs and not (compacted and answer.follow_up):  # first the model goes on where it was
            goes_on = await turn_context.take_input(session, turn, *turn.next_steered()) or goes_on
        if not goes_on:  # hooks refused all that was said meanwhile
            return
        turn_context.step(session, turn)


async def _answer(session: Session, turn: TurnState) -> Sampled:
    """Return an answer; one that broke off is asked for again, one that had no room after compacting."""
    attempt = 0
    session.record_notices(turn.take_notices())
    while True:
        sampled = Sampled()
        try:
            await sample(session, turn, sampled)
        except ContextTooLong:
            if not turn.compact_for_room():
                raise
            session.usage.note_refusal(turn.profile)
            await schedule.compact(session, turn, triggers.Trigger("context_limit", "mid_turn", injects=True))
        except ModelError as error:
            attempt += 1
            if not (error.retryable and sampled.answered) or attempt > STREAM_RETRIES:
                raise
            retry = events.Retrying(turn_id=turn.id, attempt=attempt, limit=STREAM_RETRIES, reason=error.message)
            session.ledger.publish(retry)
            pace = turn.profile.pace
            await pace.sleep(pace.delay(attempt) if error.retry_after is None else error.retry_after)
        else:
            turn.note_answer()
            return sampled


async def _run_to_end(
    session: Session, turn: TurnState, body: Callable[[Session, TurnState], Awaitable[object]]
) -> events.End:
    """Run a turn's body between the line and event of its start and those of its end."""
    began, clock = session.environment.now(), session.environment.monotonic()
    problem: events.Problem | None = None
    try:
        window = turn.profile.window.effective
        session.ledger.note("event_msg", ledger_lines.turn_started(turn.id, began, window, turn.profile.mode))
        session.ledger.publish(events.TurnStarted(turn_id=turn.id))
        with turn.scope:
            await body(session, turn)
    except CommonplaceError as error:
        problem = events.Problem(error.code, error.message, error.hint)
    except Exception as error:  # a bug must not take the thread with it
        problem = events.Problem("internal", f"The turn failed: {type(error).__name__}: {error}", "Please report it.")
        if isinstance(error, AssertionError):  # a broken invariant must not be overlooked
            raise
    except BaseException:  # the task around it was cancelled
        turn.mark_cancelled()
        raise
    finally:
        try:
            end = await turn_end.finish(session, turn, problem, began, clock)
        finally:
            session.turns.finish()
    return end
