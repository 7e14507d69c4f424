"""Compaction by the model's server: it sums the conversation up in a form that only it can read (spec §4.6).

Used only where the settings ask for it. If the server fails, or what it leaves is no smaller, the caller goes on with a
summary of our own.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from commonplace.context import digest
from commonplace.context.compaction import Compacted, Options, contract, kept_messages, sizes
from commonplace.context.compaction import remote as rules
from commonplace.context.tokens import approximate_tokens
from commonplace.errors import ModelError
from commonplace.models.base import ItemDone, Request

if TYPE_CHECKING:
    from commonplace.agent.session import Session

_TRIGGER = msgspec.json.encode({"type": "compaction_trigger"})


async def compact(session: Session, options: Options) -> Compacted | None:
    """Return what the server made of the history; None if that is nothing, or nothing smaller."""
    profile, entries = session.profile, session.history.entries
    before = sum(entry.tokens for entry in entries)
    if before <= options.target:
        return Compacted("unchanged", before, before, [entry.raw for entry in entries])
    prompt = session.history.for_prompt(profile.choice.info.modalities)
    sent = rules.fitted(prompt, options.window, approximate_tokens(profile.base))
    wanted = Request(
        model=profile.choice.slug,
        instructions=profile.base,
        input=(*sent, _TRIGGER),
        effort=profile.effective_effort,
        prompt_cache_key=session.thread_id,
    )
    summary: bytes | None = None
    try:
        async with aclosing(session.model.stream(wanted)) as stream:
            async for event in stream:
                if isinstance(event, ItemDone):
                    summary = event.item
    except ModelError:
        return None
    if summary is None:
        return None
    kept = rules.beside([entry.raw for entry in entries], summary)
    after = sizes.total(kept)
    if after >= before or after > options.target:
        return None
    tally = session.tally()
    shown = "\n".join(raw.decode() for raw in kept[:-1])
    score = digest.score(tally, digest.material_of(tally).chances, shown)
    checked = contract.check(contract.Replaced(entries, kept, options.target, kept_messages.last_request(entries)))
    return Compacted("compacted", before, after, kept, "", "", score, fallback=False, contract=checked)
