"""Compaction by the model's server, which summarises the conversation in a form that only it can read.

It is used only where the settings ask for it. If the server fails, or its result is not smaller, the caller falls back
to a summary of our own.
"""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from commonplace.agent.session import Session
from commonplace.agent.turn_state import TurnState
from commonplace.context import digest
from commonplace.context.compaction import CompactionLimits, CompactionResult, contract, kept_messages, sizes
from commonplace.context.compaction import remote as rules
from commonplace.context.tokens import approximate_tokens
from commonplace.errors import ModelError
from commonplace.models.base import ItemDone, Request
from commonplace.models.providers import Choice

_TRIGGER = msgspec.json.encode({"type": "compaction_trigger"})


async def compact(
    session: Session, turn: TurnState, choice: Choice, window: int, options: CompactionLimits
) -> CompactionResult | None:
    """Return the history as a model's server compacted it; None if it failed, or if its result is not smaller.

    `window` is what the request may hold.
    """
    profile, entries = turn.profile, session.history.entries
    before = sum(entry.tokens for entry in entries)
    if before <= options.target and not options.is_wish:
        return CompactionResult("unchanged", before, before, [entry.raw for entry in entries])
    prompt = session.history.for_prompt(choice.info.modalities)
    sent = rules.fitted_history(prompt, window, approximate_tokens(profile.base))
    request = Request(
        model=choice.slug,
        instructions=profile.base,
        input=(*sent, _TRIGGER),
        effort=profile.requested_effort,
        prompt_cache_key=session.thread_id,
    )
    summary: bytes | None = None
    try:
        async with aclosing(session.model.stream(request)) as stream:
            async for event in stream:
                if isinstance(event, ItemDone):
                    summary = event.item
    except ModelError:
        return None
    if summary is None:
        return None
    kept = rules.history_around([entry.raw for entry in entries], summary)
    after = sizes.total(kept)
    if after >= before or after > options.target:
        return None
    tally = session.prompt.tally(str(profile.cwd))
    shown = "\n".join(raw.decode() for raw in kept[:-1])
    score = digest.score(tally, digest.material_of(tally).chances, shown)
    checked = contract.check(
        contract.ReplacedHistory(entries, kept, options.target, kept_messages.last_request(entries))
    )
    return CompactionResult("compacted", before, after, kept, "", "", score, fallback=False, contract=checked)
