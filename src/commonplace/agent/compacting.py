"""Compaction in a session: when it is time, and what people, hooks and the ledger are told of it.

How a history becomes shorter is in `shortening`. Between turns the next turn tells the context again; in the middle of
one it goes back in at once.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from commonplace.agent import events, lines
from commonplace.context import triggers
from commonplace.context.triggers import Trigger, Used
from commonplace.errors import BadInput
from commonplace.models import catalog
from commonplace.protocol.ids import uuid7

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.session import Session


async def before_turn(session: Session, turn: Turn) -> None:
    """Compact before a turn's input is taken in, if it is time."""
    for trigger in triggers.before_turn(_used(session), _model(session), _previous(session)):
        await compact(session, turn, trigger)


async def between(session: Session, turn: Turn) -> bool:
    """Compact between two requests of a turn, if it is time; say whether that was so."""
    trigger = triggers.after_sampling(_used(session), _model(session), follow_up=True)
    return trigger is not None and await compact(session, turn, trigger)


async def compact(session: Session, turn: Turn, trigger: Trigger) -> bool:
    """Shorten the history; say whether it became shorter.

    Raises:
        NoProgress: the turn compacts again and again and does nothing new.
        WindowTooSmall: the window cannot hold a request and anything about the work.
        WriteFailed: the ledger cannot be written.
    """
    from commonplace.agent import shortening  # what it needs is slow to load, and most turns need none of it

    if trigger.phase == "mid_turn":
        session.manifest.compacting()
    cause = "manual" if trigger.reason == "user_requested" else "auto"
    refused = await session.hooks.before_compaction(cause)
    if refused is not None:  # a full window cannot wait, so only a person's wish is refused
        if cause == "manual":
            raise BadInput(f"A hook refused to compact: {refused}", hint="Change the hook, or go on without.")
        session.warn(f"A hook minds the compaction, which is needed: {refused}")
    item_id = _new_id(session)
    began = session.outside.now()
    session.tell(events.ItemStarted(turn_id=turn.id, item=events.ContextCompaction(id=item_id)))
    shown = events.ContextCompaction(id=item_id)
    try:
        made = await shortening.make(session)
        shown = events.ContextCompaction(
            id=item_id, before=made.tokens_before, after=made.tokens_after, fallback=made.fallback
        )
        if made.status == "compacted":
            await shortening.put(session, turn, trigger, made)
        session.history.recompute_usage(session.profile.base, session.profile.window.effective)
        session.note("event_msg", lines.token_count(session.history.info, session.limits))
    finally:
        session.show(shown, began)  # one that failed or was interrupted has ended, too
    await session.flush()
    if made.status == "compacted":
        await session.hooks.after_compaction(cause)
        if trigger.phase == "mid_turn":  # else the turn's beginning tells it, before the prompt
            await session.hooks.begin(turn)
    return made.status == "compacted"


def _used(session: Session) -> Used:
    used = session.history.used()
    if session.refused_at is not None and session.history.estimate(session.profile.base) >= session.refused_at * 0.9:
        used = max(used, session.profile.window.effective or used)
    return Used(used)


def _model(session: Session) -> triggers.Model:
    window = session.profile.window
    limit = window.auto_compact_limit(session.profile.compact_at)
    return triggers.Model(session.profile.choice.slug, window.effective, limit)


def _previous(session: Session) -> triggers.Model | None:
    slug = session.previous_model
    if slug is None or slug == session.profile.choice.slug:
        return None
    return triggers.Model(slug, catalog.known(slug, session.profile.choice.provider.models).window * 95 // 100)


def _new_id(session: Session) -> str:
    return uuid7(int(session.outside.now().timestamp() * 1000), secrets.token_bytes(10))
