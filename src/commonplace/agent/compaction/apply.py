"""A shorter history, made and put in place: by the model's server, by a model's summary, or without a model.

The shorter history comes from `context.compaction`, which checks its contract. Here the model is called for it and the
result is written down. In the middle of a turn the context goes back in at once, before the last request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from commonplace.agent import prompt_sections, turn_context
from commonplace.agent.compaction import remote
from commonplace.agent.session import Session
from commonplace.agent.turn_state import TurnState
from commonplace.context import compaction, world_state
from commonplace.context.compaction import CompactionLimits, CompactionResult, placement
from commonplace.context.compaction.model_summary import ModelSummariser, SummariserOptions
from commonplace.context.sections import Collaboration
from commonplace.context.triggers import Trigger
from commonplace.context.window_limits import ModelWindow
from commonplace.models.providers import Choice
from commonplace.protocol.ids import new_id


async def shorten(session: Session, turn: TurnState, trigger: Trigger) -> CompactionResult:
    """Return a shorter history; nothing is changed yet.

    After a change to a smaller window the model of the last turn is asked first, then the new one.
    """
    profile = turn.profile
    window = profile.window.effective or profile.choice.info.window
    window = min(window, profile.compact_at or window)  # where it is compacted earlier, less is left
    options = CompactionLimits(
        _estimated(session, turn, window),
        profile.target_percent,
        profile.digest_tokens,
        is_wish=trigger.reason == "user_requested",
    )
    choices = [profile.choice]
    previous = session.prompt.previous_choice(profile.choice) if trigger.by_previous_model else None
    if previous is not None and previous.name == profile.choice.name:  # another provider is not connected any more
        choices.insert(0, previous)
    if profile.remote_compaction and profile.choice.provider.api == "responses":
        for choice in choices:
            result = await remote.compact(session, turn, choice, _window(session, turn, choice), options)
            if result is not None:
                return result
    tally = session.prompt.tally(str(profile.cwd))
    return await compaction.compact(
        session.history.entries, tally, options, *(_summariser(session, turn, choice) for choice in choices)
    )


def _summariser(session: Session, turn: TurnState, choice: Choice) -> ModelSummariser:
    """Return a model as the writer of the summary."""
    effort = turn.profile.effort or choice.info.effort
    window = ModelWindow(choice.info.window, choice.info.max_window).whole or choice.info.window
    options = SummariserOptions(effort, min(window, session.usage.refused_at or window), _scale(session, turn))
    return ModelSummariser(session.model, choice, turn.profile.base, options)


def _window(session: Session, turn: TurnState, choice: Choice) -> int:
    """Return what a request to a model may hold, in tokens of our own estimate."""
    whole = ModelWindow(choice.info.window, choice.info.max_window).whole
    return _estimated(session, turn, whole or choice.info.window)


def _estimated(session: Session, turn: TurnState, window: int) -> int:
    """Return a window in tokens of our own estimate; where the server counts more than we do, it is smaller."""
    if session.usage.refused_at is not None:
        return min(window, session.usage.refused_at)
    least = min(window, -(-compaction.FLOOR_TOKENS * 100 // turn.profile.target_percent))  # a count may be wild
    return max(int(window / _scale(session, turn)), least)


def _scale(session: Session, turn: TurnState) -> float:
    """Return how many tokens the server counts for each one of our own estimate, if it counts more than we do."""
    if session.usage.refused_at is not None:  # the server's count is not known, only that so much is too much
        return 1.0
    estimate, counted = session.history.estimate(turn.profile.base), session.history.used()
    return counted / estimate if 0 < estimate < counted else 1.0


async def put_in_place(session: Session, turn: TurnState, trigger: Trigger, result: CompactionResult) -> None:
    """Replace the history by a shorter one, and write into the ledger what was kept."""
    prompt, ledger = session.prompt, session.ledger
    kept = result.items
    memories = await turn_context.memory_texts(session, turn) if trigger.injects else ()
    prompt.replace(kept)
    session.usage.estimate_anew(turn.profile)
    sections = prompt_sections.sections(session, turn.profile)  # as they are now: there is room again
    if trigger.injects:
        kept = placement.insert(
            kept, [msgspec.json.encode(item) for item in world_state.full_items(sections, memories)]
        )
        prompt.replace(kept)
    prompt.open_window(new_id(session.environment.now()))
    ledger.note("compacted", _payload(session, turn, result, kept))
    score = None if result.score is None else msgspec.to_builtins(result.score)
    ledger.note_own("retention", score=score, fallback=result.fallback)
    if trigger.injects:
        turn_context.tell_again(session, turn, sections)


def _payload(session: Session, turn: TurnState, result: CompactionResult, kept: list[bytes]) -> dict[str, Any]:
    """Return the payload of the `compacted` line."""
    window = session.prompt.window
    profile = turn.profile
    previous: dict[str, Any] = {"model": session.prompt.previous_model or profile.choice.slug}
    if profile.mode != "default" or profile.mode_words:
        previous["collaboration_mode"] = Collaboration(profile.choice.slug, profile.mode, profile.mode_words).setting()
    return {
        "message": result.message,
        "replacement_history": [msgspec.Raw(raw) for raw in kept],
        "window_number": window.number,
        "first_window_id": window.first_id,
        "previous_window_id": window.previous_id,
        "window_id": window.id,
        "resume_metadata": {"previous_turn_settings": previous},
    }
