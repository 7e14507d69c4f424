"""A sub-agent takes over what its parent was told and said: the items of a fork, and what the model knows by them."""

from __future__ import annotations

from typing import Any

from commonplace.agent import ledger_lines
from commonplace.agent.sandbox import policy
from commonplace.agent.session import Session
from commonplace.agent.subagents.agent import ForkedContext


def take_over(session: Session, forked: ForkedContext) -> None:
    """Record the items of a fork in a new session, and the context that the model was told with them.

    So the first turn tells only what is different for the sub-agent.
    """
    for raw in forked.items:
        session.ledger.record(raw)
    known, prompt, profile = forked.parent.prompt, session.prompt, session.profile
    if known.baseline is not None:
        session.ledger.note("world_state", {"full": True, "state": known.baseline})
        prompt.set_baseline(known.baseline)
    reference = known.reference
    if reference is not None and reference.turn_id is not None:
        allowed = policy.wire(session.sandbox.policy(profile))
        told: dict[str, Any] = {
            "cwd": reference.cwd,
            "model": reference.model,
            "collaboration_mode": reference.collaboration_mode,
        }
        now = session.environment.now()
        session.ledger.note("turn_context", ledger_lines.turn_context(profile, reference.turn_id, now, allowed) | told)
        prompt.set_reference(reference)
        prompt.set_previous_model(forked.parent.profile.choice)
    session.usage.estimate_anew(profile)
