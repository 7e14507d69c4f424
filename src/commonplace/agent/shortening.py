"""A shorter history, made and put in place: by the model's server, by a summary of its own, or without a model.

The new history comes from `context.compaction`, with its contract; here the model is brought to it, and the result is
written down. In the middle of a turn the context goes back in at once, before the last request.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import msgspec

from commonplace.agent import beginning, remote, told
from commonplace.context import compaction, world_state
from commonplace.context.compaction import Compacted, Options, placement
from commonplace.context.compaction.model_summary import ModelSummariser
from commonplace.context.reconstruct import Window
from commonplace.context.triggers import Trigger
from commonplace.protocol.ids import uuid7

if TYPE_CHECKING:
    from commonplace.agent.current import Turn
    from commonplace.agent.session import Session


async def make(session: Session) -> Compacted:
    """Return a shorter history."""
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


async def put(session: Session, turn: Turn, trigger: Trigger, made: Compacted) -> None:
    """Put the new history in place of the old one, and write down what was kept."""
    kept = made.items
    texts = told.memory(await beginning.memory(session)) if trigger.injects else ()
    session.replace_history(kept)
    session.history.recompute_usage(session.profile.base, session.profile.window.effective)
    sections = beginning.sections(session)  # as they are now: there is room again
    if trigger.injects:
        kept = placement.insert(kept, [msgspec.json.encode(item) for item in world_state.full(sections, texts)])
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


def _new_id(session: Session) -> str:
    return uuid7(int(session.outside.now().timestamp() * 1000), secrets.token_bytes(10))
