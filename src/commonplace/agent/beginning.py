"""What a turn begins with, and what is told between its requests: the world as it is now, where it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from commonplace.agent import lines, sandbox, skills, told
from commonplace.context import world_state
from commonplace.context.world_state import Section, SoFar, Update
from commonplace.protocol.rollout import TurnContext

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.session import Session


async def begin(session: Session, turn: Turn) -> None:
    """Record what the model must be told before a turn's input: all of it, or what changed since it was told."""
    await session.offer_servers()
    session.skills = () if session.profile.bare else skills.find(session.profile.home, session.profile.cwd)
    payload = context_payload(session, turn)
    texts = told.memory(await memory(session)) if session.reference is None else ()
    so_far = SoFar(session.baseline, session.held)
    update = world_state.begin(sections(session), so_far, _view(payload), session.reference, session=texts)
    _record(session, update)
    if update.turn_context:
        session.note("turn_context", payload)
        session.reference = _view(payload)
    await session.hooks.begin(turn)


def step(session: Session, turn: Turn) -> None:
    """Record what changed since the last request of a turn."""
    _record(session, world_state.step(sections(session), SoFar(session.baseline, session.held)))


def sections(session: Session) -> list[Section]:
    """Return the sections of the world as they are now."""
    return told.sections(session)


async def memory(session: Session) -> str:
    """Return what is remembered here."""
    return await session.outside.remembered(session.profile.cwd)


def context_payload(session: Session, turn: Turn) -> dict[str, Any]:
    """Return the payload of the turn's `turn_context` line."""
    return lines.turn_context(session.profile, turn.id, session.outside.now(), sandbox.wire(session.policy))


def again(session: Session, turn: Turn, told_now: Sequence[Section]) -> None:
    """Note that everything was told anew, by a compaction that put it back into the history."""
    session.baseline = world_state.snapshot(told_now)
    session.note("world_state", {"full": True, "state": session.baseline})
    payload = context_payload(session, turn)
    session.note("turn_context", payload)
    session.reference = _view(payload)


def _record(session: Session, update: Update) -> None:
    for item in update.items:
        session.record(item)
    if update.world is not None:
        session.note("world_state", update.world)
    session.baseline = update.baseline


def _view(payload: dict[str, Any]) -> TurnContext:
    return msgspec.convert(payload, TurnContext)
