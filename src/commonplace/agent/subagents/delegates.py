"""Delegates: agents that a thread asks for something of its own, outside of the conversation and of the tree of agents.

    run_once    the delegate answers once and is closed; nobody can be asked, so its approval is `never`
    opened      a delegate that one talks to: its events are passed on, and its questions are answered by who opened it

A delegate has its parent's folder, model, sandbox and instructions, and a ledger that names its parent. It has neither
memory nor tools that start agents. Token counts are its own affair and are not passed on.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from commonplace.agent import events, user_input
from commonplace.agent.agent_identity import AgentIdentity
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.profile import Profile
from commonplace.agent.subagents.agent import AgentThread, NewAgent, ThreadMaker
from commonplace.agent.user_input import Input, UserInput
from commonplace.config import Approval

PURPOSE: Final = "delegate"
"""What the ledger of a delegate says that it is for, unless something else is said."""


async def run_once(
    maker: ThreadMaker,
    parent: AgentThread,
    given: UserInput,
    instructions: str | None = None,
    *,
    purpose: str = PURPOSE,
    hear: Callable[[events.Event], None] | None = None,
) -> events.End:
    """Have a delegate answer an input; return how its turn ended. Cancelling it ends the delegate.

    Raises:
        BadInput, CommonplaceError: the input cannot be used, or the thread cannot be opened.
    """
    thread = await maker.start(_new(parent, instructions, purpose, "never"))
    stop = thread.session.listen(_passing(hear)) if hear is not None else None
    try:
        return await thread.turn(given)
    finally:
        if stop is not None:
            stop()
        with anyio.CancelScope(shield=True):
            await thread.close_alone()


class Delegate:
    """A delegate that is open."""

    def __init__(self, thread: AgentThread, tasks: TaskGroup, told: AsyncIterator[events.Event]) -> None:
        self._thread = thread
        self._tasks = tasks
        self.events = told
        """What happens in it, as it happens; it ends when the delegate is closed."""

    @property
    def id(self) -> str:
        """The id of its thread."""
        return self._thread.id

    def say(self, given: str | Input | UserInput) -> None:
        """Begin a turn, or put input into the running one (raises BadInput: it cannot be used, or the turn ends)."""
        wanted = user_input.read(given)
        if self._thread.session.turn is not None:
            self._thread.session.steer(wanted)
        else:
            self._tasks.start_soon(self._thread.turn, wanted)

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question of its running turn (raises BadInput: nobody asks it)."""
        self._thread.session.decide(request_id, decision)

    async def interrupt(self) -> None:
        """End its running turn."""
        await self._thread.session.interrupt()


@asynccontextmanager
async def opened(
    maker: ThreadMaker, parent: AgentThread, instructions: str | None = None, *, purpose: str = PURPOSE
) -> AsyncGenerator[Delegate]:
    """Open a delegate for as long as the block lasts (raises CommonplaceError: its thread cannot be opened)."""
    thread = await maker.start(_new(parent, instructions, purpose, parent.profile.approval))
    send, receive = anyio.create_memory_object_stream[events.Event](max_buffer_size=float("inf"))

    def forward(event: events.Event) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):  # nobody reads any more
            send.send_nowait(event)

    stop = thread.session.listen(_passing(forward))
    try:
        async with anyio.create_task_group() as tasks:
            with receive:
                yield Delegate(thread, tasks, receive)
            with anyio.CancelScope(shield=True):
                await thread.session.interrupt()
    finally:
        stop()
        send.close()
        with anyio.CancelScope(shield=True):
            await thread.close_alone()


def _passing(hear: Callable[[events.Event], None]) -> Callable[[events.Event], None]:
    """Return a listener that passes on what a parent is told of a delegate."""

    def listen(event: events.Event) -> None:
        if not isinstance(event, events.TokenCount):
            hear(event)

    return listen


def _new(parent: AgentThread, instructions: str | None, purpose: str, approval: Approval) -> NewAgent:
    return NewAgent(profile=_profile(parent, instructions, purpose, approval), has_memory=False)


def _profile(parent: AgentThread, instructions: str | None, purpose: str, approval: Approval) -> Profile:
    """Return the profile of a delegate."""
    mine, running = parent.profile, parent.session.turn
    mine = mine if running is None else running.profile
    above = mine.agent
    identity = AgentIdentity(
        parent_id=parent.id,
        session_id=parent.id if above is None else above.session_id,
        depth=1 if above is None else above.depth + 1,
        purpose=purpose,
    )
    developer = "\n\n".join(text for text in (mine.developer, instructions) if text)
    return msgspec.structs.replace(
        mine,
        agent=identity,
        source=identity.source(),
        thread_source=purpose,
        developer=developer or None,
        approval=approval,
        memory_mode="disabled",
    )
