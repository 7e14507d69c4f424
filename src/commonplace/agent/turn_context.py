"""What a turn tells the model: its context, and the input with what the client knows.

At the start of a turn the model is told everything, or what changed since it was last told; between two requests it is
told what changed in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import msgspec

from commonplace.agent import events, ledger_lines, prompt_sections, skills
from commonplace.agent.hooks.config import HookAnswer
from commonplace.agent.sandbox import policy
from commonplace.agent.session import Session
from commonplace.agent.turn_state import ClientContext, TurnState
from commonplace.agent.user_input import UserInput
from commonplace.context import injected_messages, world_state
from commonplace.context.injected_messages import InjectedText
from commonplace.context.world_state import InjectedState, Section, WorldStateUpdate
from commonplace.protocol.ids import new_id
from commonplace.protocol.items import Message
from commonplace.protocol.rollout import TurnContext


async def begin(session: Session, turn: TurnState) -> None:
    """Record what the model must know before a turn's input: everything, or what changed since it was last told."""
    await session.offer_servers()
    prompt = session.prompt
    offered = () if turn.profile.bare else skills.find(turn.profile.home, turn.profile.cwd, session.warn_once)
    prompt.offer_skills(offered)
    payload = _payload(session, turn)
    memories = await _news_of_memory(session, turn)
    so_far = InjectedState(prompt.baseline, prompt.held)
    sections = prompt_sections.sections(session, turn.profile)
    update = world_state.begin(sections, so_far, _view(payload), prompt.reference, turn=memories)
    _record(session, update)
    if update.turn_context:
        session.ledger.note("turn_context", payload)
        prompt.set_reference(_view(payload))
    await session.hooks.session_start(turn)


def step(session: Session, turn: TurnState) -> None:
    """Record what changed since the last request of a turn."""
    so_far = InjectedState(session.prompt.baseline, session.prompt.held)
    _record(session, world_state.step(prompt_sections.sections(session, turn.profile), so_far))


async def take_input(
    session: Session, turn: TurnState, context: ClientContext, given: UserInput, *, wait: float | None = None
) -> bool:
    """Record what a person said, and before it what their client knows; return whether the model is to answer.

    Hooks are asked first, and may refuse it. After `wait` seconds their answer does not count.
    """
    accepted, answer = True, HookAnswer()
    if given.parts:
        with anyio.move_on_after(wait):
            accepted, answer = await session.hooks.prompt_submitted(turn, given)
    for item in context:
        session.ledger.record(dict(item))
    if (said := given.external) is not None:
        item_id = f"fco_{new_id(session.environment.now())}"
        message = events.ExternalMessage(id=item_id, name=said.name, namespace=said.namespace, output=said.output)
        session.ledger.complete(message)
    if given.parts and accepted:
        item_id = f"msg_{new_id(session.environment.now())}"
        session.ledger.record(given.message(item_id))
        shown = [*given.shown] or None
        message = events.UserMessage(id=item_id, content=given.content, shown=shown, client_id=given.client_id)
        session.ledger.complete(message)
        for item in injected_messages.messages(skills.named(given.words, session.prompt.skills)):
            session.ledger.record(item)
    session.hooks.add_context(answer)
    return accepted


async def _news_of_memory(session: Session, turn: TurnState) -> Sequence[InjectedText]:
    """Return the memories of the folder where the model does not know them: in a new window, or in another folder."""
    reference = session.prompt.reference
    if reference is not None and reference.cwd == str(turn.profile.cwd):
        return ()
    texts = await memory_texts(session, turn)
    if reference is None:
        return texts
    held = {
        part.text for entry in session.history.entries if isinstance(entry.view, Message) for part in entry.view.content
    }
    return [text for text in texts if text.text not in held]


async def memory_texts(session: Session, turn: TurnState) -> Sequence[InjectedText]:
    """Return the memories of the working folder, as they are told at the beginning of a window.

    They name tools as the model's API knows them: not every API has namespaces.
    """
    text = await session.environment.remembered(turn.profile.cwd)
    if turn.profile.choice.provider.api != "responses":
        for tool in session.tools.definitions():
            text = text.replace(f"{tool.namespace}.{tool.name}", tool.key) if tool.namespace else text
    return prompt_sections.memory(text)


def tell_again(session: Session, turn: TurnState, sections: Sequence[Section]) -> None:
    """Note that a compaction put everything that the model must know back into the history."""
    baseline = world_state.snapshot(sections)
    session.prompt.set_baseline(baseline)
    session.ledger.note("world_state", {"full": True, "state": baseline})
    payload = _payload(session, turn)
    session.ledger.note("turn_context", payload)
    session.prompt.set_reference(_view(payload))


def _payload(session: Session, turn: TurnState) -> dict[str, Any]:
    """Return the payload of the turn's `turn_context` line."""
    allowed = policy.wire(session.sandbox.policy(turn.profile))
    return ledger_lines.turn_context(turn.profile, turn.id, session.environment.now(), allowed)


def _record(session: Session, update: WorldStateUpdate) -> None:
    for item in update.items:
        session.ledger.record(item)
    if update.world is not None:
        session.ledger.note("world_state", update.world)
    session.prompt.set_baseline(update.baseline)


def _view(payload: dict[str, Any]) -> TurnContext:
    return msgspec.convert(payload, TurnContext)
