"""The threads of sub-agents: opened for a tree with their parent's settings, in its home and with its memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import anyio.to_thread
from anyio.abc import TaskGroup

from commonplace.agent import agent_identity, open_session, stored_thread
from commonplace.agent.agent_identity import AgentIdentity
from commonplace.agent.profile import Profile
from commonplace.agent.session import Session
from commonplace.agent.subagents import forked_context, restoration, tools
from commonplace.agent.subagents import status as states
from commonplace.agent.subagents.agent import NewAgent
from commonplace.agent.subagents.status import AgentStatus
from commonplace.agent.subagents.tree import AgentTree
from commonplace.agent.thread import Thread
from commonplace.app.session_environment import HomeEnvironment
from commonplace.app.threads import ThreadOptions
from commonplace.errors import CommonplaceError
from commonplace.memory.store import MemoryStore
from commonplace.models.base import Event, Model, Request
from commonplace.models.providers import Choice, connect, key_environment
from commonplace.rollout.chain import read_head
from commonplace.rollout.checkpoint import Tail
from commonplace.sessions.resolve import resolve

if TYPE_CHECKING:
    from pathlib import Path


async def grow(store: MemoryStore, tasks: TaskGroup, thread: Thread, options: ThreadOptions) -> None:
    """Give a thread the tree of its sub-agents, with those that an earlier process left open."""
    if not store.home.settings.agents.enabled:
        return
    maker = AgentThreads(store, tasks, options, thread.profile.choice.name)
    tree = AgentTree(store.home, maker, thread, tasks, tools.equip)
    if thread.path is not None and thread.path.exists():
        await restoration.restore(tree, thread.id)


class AgentThreads:
    """Opens threads for one tree."""

    def __init__(self, store: MemoryStore, tasks: TaskGroup, options: ThreadOptions, provider: str) -> None:
        self._store = store
        self._home = store.home
        self._tasks = tasks
        self._options = options
        self._provider = provider
        """Who serves the model of the tree's root."""

    async def start(self, new: NewAgent) -> Thread:
        """Open the thread of a new sub-agent."""
        environment = HomeEnvironment(self._store, self._tasks, memory=self._options.memory and new.has_memory)
        recording = None if self._options.ephemeral else self._home.recording()
        model = self._model(new.profile.choice)
        session = await open_session.start(new.profile, model, environment, self._tasks, recording)
        if not new.has_shell:
            session.withdraw("shell", "process")
        if new.forked is not None:
            forked_context.take_over(session, new.forked)
        return self._thread(session)

    async def identify(self, thread_id: str) -> AgentIdentity | None:
        """Return who a stored sub-agent is; None if there is no such thread of ours, or no agent started it."""
        try:
            path = await self._path(thread_id)
            _, meta = await anyio.to_thread.run_sync(read_head, path)
        except CommonplaceError:
            return None
        return agent_identity.of_meta(meta)

    async def resume(self, thread_id: str, profile: Profile) -> tuple[Thread, AgentStatus]:
        """Open the thread of a stored sub-agent; return it, and how it was left."""
        path = await self._path(thread_id)
        found = await anyio.to_thread.run_sync(stored_thread.read, path, [self._home.path])
        left = await anyio.to_thread.run_sync(lambda: states.of_ledger(Tail(found.ledger)))
        environment = HomeEnvironment(self._store, self._tasks, memory=self._options.memory)
        model = self._model(profile.choice)
        recording = self._home.recording()
        session = await open_session.resume(found, profile, model, environment, self._tasks, recording)
        return self._thread(session), left

    async def _path(self, thread_id: str) -> Path:
        target = await resolve(self._home, thread_id, None)
        target.must_be_ours("gone on with")
        return target.path

    def _thread(self, session: Session) -> Thread:
        return Thread(self._home, session, self._tasks)

    def _model(self, choice: Choice) -> Model:
        if self._options.speaker is not None and choice.name == self._provider:
            return SharedModel(self._options.speaker)
        return connect(choice, key_environment(self._home.environment))


class SharedModel:
    """A model that several threads ask and that belongs to the first of them."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of an answer."""
        return self._model.stream(request)

    async def aclose(self) -> None:
        """Leave the model to its owner."""
