"""Compaction in a session: when it is time, by whom the summary is written, and what the ledger notes of it.

The new history comes from `context.compaction`, with its contract; this module brings the model to it and writes the
result down. In the middle of a turn the context goes back in at once, before the last request; between turns the next
turn tells it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import msgspec

from commonplace.agent import beginning, events, lines, remote, told
from commonplace.agent.summarising import ModelSummariser
from commonplace.context import compaction, triggers, world
from commonplace.context.compaction import Compacted, Options, placement
from commonplace.context.reconstruct import Window
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
        made = await _made(session)
        shown = events.ContextCompaction(
            id=item_id, before=made.tokens_before, after=made.tokens_after, fallback=made.fallback
        )
        if made.status == "compacted":
            await _put(session, turn, trigger, made)
        session.history.recompute_usage(session.profile.base, session.profile.window.effective)
        session.note("event_msg", lines.token_count(session.history.info, session.limits))
    finally:
        session.show(shown, began)  # one that failed or was interrupted has ended, too
    await session.flush()
    if made.status == "compacted":
        await session.hooks.after_compaction(cause)
    return made.status == "compacted"


async def _made(session: Session) -> Compacted:
    profile = session.profile
    options = Options(_window(session), profile.target_percent, profile.digest_tokens)
    if profile.remote_compaction and profile.choice.provider.api == "responses":
        made = await remote.compact(session, options)
        if made is not None:
            return made
    summariser = ModelSummariser(session.model, profile.choice, profile.base, profile.effective_effort)
    return await compaction.compact(session.history.entries, session.tally(), options, summariser)


def _window(session: Session) -> int:
    """Return the window in our own estimate: where a server counts more than we do, ours is smaller by as much."""
    window = session.profile.window.effective or session.profile.choice.info.window
    window = min(window, session.profile.compact_at or window)  # where it is compacted earlier, less is left
    if session.refused_at is not None:  # then what the server counts is not known, only that so much is too much
        return min(window, session.refused_at)
    estimate = session.history.estimate(session.profile.base)
    counted = session.history.used()
    least = min(window, -(-compaction.FLOOR_TOKENS * 100 // session.profile.target_percent))  # a count may be wild
    return max(window * estimate // counted, least) if 0 < estimate < counted else window


async def _put(session: Session, turn: Turn, trigger: Trigger, made: Compacted) -> None:
    """Put the new history in place of the old one, and write down what was kept."""
    kept = made.items
    texts = told.memory(await beginning.memory(session)) if trigger.injects else ()
    session.replace_history(kept)
    session.history.recompute_usage(session.profile.base, session.profile.window.effective)
    sections = beginning.sections(session)  # as they are now: there is room again
    if trigger.injects:
        kept = placement.insert(kept, [msgspec.json.encode(item) for item in world.full(sections, texts)])
        session.replace_history(kept)
    session.window = _next(session)
    session.note("compacted", _payload(session, made, kept))
    score = None if made.score is None else msgspec.to_builtins(made.score)
    session.own("retention", score=score, fallback=made.fallback)
    session.reference, session.baseline = None, None
    if trigger.injects:
        beginning.again(session, turn, sections)


def _next(session: Session) -> Window:
    old = session.window
    return Window(old.number + 1, old.first_id or old.id, old.id, _new_id(session))


def _payload(session: Session, made: Compacted, kept: list[bytes]) -> dict[str, Any]:
    window = session.window
    previous = session.previous_model or session.profile.choice.slug
    return {
        "message": made.message,
        "replacement_history": [msgspec.Raw(raw) for raw in kept],
        "window_number": window.number,
        "first_window_id": window.first_id,
        "previous_window_id": window.previous_id,
        "window_id": window.id,
        "resume_metadata": {"previous_turn_settings": {"model": previous}},
    }


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
