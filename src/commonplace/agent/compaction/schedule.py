"""When the history is compacted, and what people, hooks and the ledger are told of it.

A compaction before a turn leaves it to the turn to tell the model its context again; one in the middle of a turn puts
the context back at once.
"""

from __future__ import annotations

from commonplace.agent import events
from commonplace.agent.session import Session
from commonplace.agent.turn_state import TurnState
from commonplace.context import triggers
from commonplace.context.triggers import Trigger, WindowUse
from commonplace.context.window_limits import ModelWindow
from commonplace.errors import BadInput
from commonplace.protocol.ids import new_id


async def before_turn(session: Session, turn: TurnState) -> None:
    """Compact before a turn's input is recorded, if it is time."""
    used = WindowUse(session.usage.taken(turn.profile))
    for trigger in triggers.before_turn(used, _model(turn), _previous_model(session, turn)):
        await compact(session, turn, trigger)


async def between_requests(session: Session, turn: TurnState) -> bool:
    """Compact between two requests of a turn, if it is time; return whether the history became shorter."""
    used = WindowUse(session.usage.taken(turn.profile))
    trigger = triggers.after_sampling(used, _model(turn), follow_up=True)
    return trigger is not None and await compact(session, turn, trigger)


async def compact(session: Session, turn: TurnState, trigger: Trigger) -> bool:
    """Shorten the history; return whether it became shorter.

    Raises:
        NoProgress: the turn compacts again and again and does nothing new.
        WindowTooSmall: the window cannot hold a request and anything about the work.
        WriteFailed: the ledger cannot be written.
    """
    from commonplace.agent.compaction import apply  # slow to load, and most turns do not compact

    if trigger.phase == "mid_turn":
        session.prompt.progress.note_compaction()
    cause = "manual" if trigger.reason == "user_requested" else "auto"
    await _ask_hooks(session, turn, cause)
    began = session.environment.now()
    item = events.ContextCompaction(id=new_id(began))
    session.ledger.publish(events.ItemStarted(turn_id=turn.id, item=item))
    session.ledger.publish(session.usage.event(turn.id))  # before, with the summary, and afterwards, as in Codex
    try:
        result = await apply.shorten(session, turn, trigger)
        session.ledger.publish(session.usage.event(turn.id))
        item = events.ContextCompaction(
            id=item.id, before=result.tokens_before, after=result.tokens_after, fallback=result.fallback
        )
        if result.status == "compacted":
            await apply.put_in_place(session, turn, trigger, result)
        session.usage.estimate_anew(turn.profile)
        session.ledger.note("event_msg", session.usage.line())
        session.ledger.publish(session.usage.event(turn.id))
    finally:
        session.ledger.complete(item, began)  # a compaction that failed or was interrupted is over, too
    await session.ledger.flush()
    if result.status == "compacted":
        await session.hooks.after_compaction(turn, cause)
        if trigger.phase == "mid_turn":  # else the turn's start tells hooks, before the prompt
            await session.hooks.session_start(turn)
    return result.status == "compacted"


async def _ask_hooks(session: Session, turn: TurnState, cause: str) -> None:
    """Ask hooks about a compaction; they can refuse only one that a person asked for, since a full window cannot wait.

    Raises:
        BadInput: a hook refused it.
    """
    refused = await session.hooks.before_compaction(turn, cause)
    if refused is None:
        return
    if cause == "manual":
        raise BadInput(f"A hook refused to compact: {refused}", hint="Change the hook, or go on without.")
    session.ledger.warn(f"A hook minds the compaction, which is needed: {refused}")


def _model(turn: TurnState) -> triggers.ModelLimits:
    window = turn.profile.window
    limit = window.auto_compact_limit(turn.profile.compact_at)
    return triggers.ModelLimits(turn.profile.choice.slug, window.effective, limit)


def _previous_model(session: Session, turn: TurnState) -> triggers.ModelLimits | None:
    """Return the model of the last turn, if it is another one than this turn's."""
    previous = session.prompt.previous_choice(turn.profile.choice)
    if previous is None:
        return None
    return triggers.ModelLimits(previous.slug, ModelWindow(previous.info.window, previous.info.max_window).effective)
