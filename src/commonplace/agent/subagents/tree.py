"""The sub-agents of one session: who there is, what each does, and the operations on them.

Invariants: at most as many agents are open as the settings allow, and none stands deeper; an agent is closed after all
that it started; its parent is told once, for each start and each resume, that it is done; a question of any agent
reaches the listeners of the session at the root, with the id of the thread whose question it is. Who started whom, and
whether that was closed, is stored, so that the tree of a session that is gone on with is found again.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from commonplace.agent import events
from commonplace.agent.agent_identity import AgentIdentity
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.subagents import arguments, delivery, fork_filter, inheritance, limits, notices
from commonplace.agent.subagents import status as states
from commonplace.agent.subagents.agent import (
    Agent,
    AgentInfo,
    AgentThread,
    ChangeListener,
    ForkedContext,
    NewAgent,
    ThreadMaker,
)
from commonplace.agent.subagents.inheritance import Wish
from commonplace.agent.subagents.nicknames import Nicknames, Pick
from commonplace.agent.subagents.roles import Roles, RoleSettings
from commonplace.agent.subagents.spawn_store import SpawnStore
from commonplace.agent.subagents.status import AgentStatus
from commonplace.agent.user_input import UserInput
from commonplace.errors import CommonplaceError, ToolError
from commonplace.state.home import Home

T = TypeVar("T")
Equip = Callable[["AgentTree", AgentThread, int], None]
"""Offers the tools to a thread of the tree that stands so deep."""


class AgentTree:
    """The sub-agents of the session of one thread, its root."""

    def __init__(
        self,
        home: Home,
        maker: ThreadMaker,
        root: AgentThread,
        tasks: TaskGroup,
        equip: Equip,
        pick: Pick = random.choice,
    ) -> None:
        self.settings = home.settings.agents
        self.roles = Roles(home.settings.roles, home.path, home.warn)
        self.root = root
        identity = root.profile.agent
        self.root_depth = 0 if identity is None else identity.depth
        self._session_id = root.id if identity is None else identity.session_id
        self.maker = maker
        self.store = SpawnStore(home, root)
        self._home = home
        self._tasks = tasks
        self._names = Nicknames(pick)
        self._agents: dict[str, Agent] = {}
        self._starting = 0
        """Agents that are being opened; they take places already."""
        self.changes = anyio.Lock()
        """Agents are closed and opened again one after the other."""
        self._changed = anyio.Event()
        self._listeners: list[ChangeListener] = []
        self._equip = equip
        root.join(self)
        equip(self, root, self.root_depth)

    # --- Looking.

    def agents(self) -> list[Agent]:
        """Return the agents that were not closed, oldest first: their ids are in the order of time."""
        return [agent for _, agent in sorted(self._agents.items()) if agent.is_open]

    def find(self, thread_id: str) -> Agent | None:
        """Return an agent, closed or not; None if there is none of this id."""
        return self._agents.get(thread_id)

    def has(self, thread_id: str) -> bool:
        """Return whether a thread is the root or one of the agents, closed or not."""
        return thread_id == self.root.id or thread_id in self._agents

    def check_below(self, thread_id: str, caller_id: str) -> None:
        """Refuse that an agent stops itself or one that it works for: it would wait for its own end.

        Raises:
            ToolError: it is the caller, or the caller stands below it.
        """
        above: str | None = caller_id
        while above is not None and above != self.root.id:
            if above == thread_id:
                problem = "an agent can stop neither itself nor one that it works for"
                raise ToolError("agent", problem, hint="End your turn.")
            agent = self._agents.get(above)
            above = None if agent is None else agent.identity.parent_id

    def info(self, thread_id: str | None = None) -> list[AgentInfo]:
        """Return what is told of the open agents below a thread (None: the root), each before those it started."""
        return [self._info(agent) for agent in self.below(thread_id or self.root.id)]

    def _info(self, agent: Agent) -> AgentInfo:
        identity, thread = agent.identity, agent.thread
        return AgentInfo(
            thread_id=agent.thread_id,
            parent_id=identity.parent_id,
            depth=identity.depth,
            nickname=identity.nickname,
            role=identity.role,
            status=agent.status,
            path=None if thread is None else thread.path,
            task=agent.task,
        )

    def below(self, thread_id: str) -> Iterator[Agent]:
        """Yield the open agents that a thread started, each before those that it started itself."""
        for agent in self._children(thread_id):
            yield agent
            yield from self.below(agent.thread_id)

    def status(self, thread_id: str) -> AgentStatus:
        """Return what an agent does; an id that is not of this tree is not found."""
        agent = self._agents.get(thread_id)
        return states.NOT_FOUND if agent is None else agent.status

    def depth(self, thread_id: str) -> int:
        """Return how deep a thread of the tree stands."""
        agent = self._agents.get(thread_id)
        return self.root_depth if agent is None else agent.identity.depth

    def thread(self, thread_id: str) -> AgentThread:
        """Return an open thread of the tree (raises ToolError: it is not open)."""
        return self.root if thread_id == self.root.id else delivery.live(self._known(thread_id))

    def listen(self, listener: ChangeListener) -> Callable[[], None]:
        """Have a function called when an agent changes, now once for each open agent; return what ends that."""
        self._listeners.append(listener)
        for agent in self.agents():
            listener(agent)
        return lambda: self._listeners.remove(listener)

    # --- Starting.

    async def spawn(self, parent_id: str, given: UserInput, role_name: str | None, wish: Wish, *, fork: bool) -> Agent:
        """Start an agent with a task.

        Raises:
            ToolError: it would stand too deep, too many are open, or its role or model cannot be had.
            CommonplaceError: its thread cannot be opened.
        """
        parent = self.thread(parent_id)
        depth = self.depth(parent_id) + 1
        limits.check_depth(self.settings, depth)
        role = self.roles.find(role_name)
        with self._place():
            identity = AgentIdentity(
                parent_id=parent_id,
                session_id=self._session_id,
                depth=depth,
                nickname=self._names.draw(role.nicknames),
                role=(role_name or "").strip() or None,
            )
            running = parent.session.turn
            settings = parent.profile if running is None else running.profile
            profile = inheritance.profile(self._home.settings, settings, identity, wish, role.settings)
            new = NewAgent(
                profile=profile,
                forked=await self._forked(parent) if fork else None,
                has_memory=not role.settings.no_memory,
                has_shell=not role.settings.no_shell,
            )
            return await _to_its_end(self._open(new, identity, given))

    @staticmethod
    async def _forked(parent: AgentThread) -> ForkedContext:
        await parent.session.ledger.flush()
        return ForkedContext(fork_filter.forked(parent.session.history.entries), parent.session)

    async def _open(self, new: NewAgent, identity: AgentIdentity, given: UserInput) -> Agent:
        thread = await self.maker.start(new)
        await self.store.put(identity.parent_id, thread.id, is_open=True)
        agent = self.seat(thread, identity, states.PENDING)
        try:
            await self.send(thread.id, given)
        except CommonplaceError:  # without its task it would only take a place
            await self._close_for_good(agent)
            raise
        return agent

    @contextlib.contextmanager
    def _place(self, thread_id: str | None = None) -> Generator[None]:
        """Take a place for an agent that is being opened, unless it has one (raises ToolError: there is none)."""
        others = [agent for agent in self.agents() if agent.thread_id != thread_id]
        limits.check_room(self.settings, len(others) + self._starting)
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    def seat(self, thread: AgentThread, identity: AgentIdentity, status: AgentStatus) -> Agent:
        """Take the thread of an agent into the tree."""
        agent = Agent(thread.id, identity, status)
        agent.thread = thread
        self._agents[thread.id] = agent
        thread.join(self)
        self._equip(self, thread, identity.depth)
        thread.session.listen(partial(self._hear, agent))
        self._tell(agent)
        return agent

    def keep(self, agent: Agent) -> None:
        """Take an agent into the tree whose thread could not be opened."""
        self._agents[agent.thread_id] = agent

    async def reopen(self, thread_id: str, identity: AgentIdentity) -> Agent:
        """Open the thread of a stored agent, under the present settings of its parent (raises CommonplaceError)."""
        with self._place(thread_id):
            live = self._agents.get(identity.parent_id)
            parent = self.root if live is None or live.thread is None else live.thread
            role = self._role_again(identity)
            profile = inheritance.profile(self._home.settings, parent.profile, identity, Wish(), role)
            thread, left = await _to_its_end(self.maker.resume(thread_id, profile))
            if identity.nickname is not None:
                self._names.keep(identity.nickname)
            return self.seat(thread, identity, left)

    def warn(self, text: str) -> None:
        """Tell the person of something that stops nothing."""
        self.root.session.ledger.warn(text)

    def _role_again(self, identity: AgentIdentity) -> RoleSettings:
        """Return what the role of a stored agent changes; nothing with a warning if it is not there any more."""
        try:
            return self.roles.find(identity.role).settings
        except ToolError as error:
            self.warn(f"An agent goes on without its role: {error.sentence()}")
            return RoleSettings()

    # --- Talking.

    async def send(self, thread_id: str, given: UserInput, *, interrupt: bool = False) -> str:
        """Give an agent input: into its running turn, else as a new turn; return the id of what it became.

        Raises:
            ToolError: there is no such agent, or it was closed.
            BadInput: the input cannot be used.
        """
        agent = self._known(thread_id)
        thread = delivery.live(agent)
        agent.task = arguments.preview(given)
        if interrupt:
            await self.interrupt_below(thread_id)
            await thread.session.interrupt()
        return await delivery.deliver(agent, given, self._tasks)

    async def wait(self, thread_ids: Sequence[str], seconds: float) -> dict[str, AgentStatus]:
        """Return which of some agents are done, as soon as one is; nothing if none is after some seconds."""
        with anyio.move_on_after(seconds):
            while True:
                found = {each: status for each in thread_ids if (status := self.status(each)).is_final}
                if found:
                    return found
                await self._changed.wait()
        return {}

    def decide(self, request_id: str, decision: Decision) -> bool:
        """Answer a question that an agent asked; return whether one did."""
        for agent in self.agents():
            if agent.thread is not None and agent.thread.session.approvals.is_open(request_id):
                agent.thread.session.decide(request_id, decision)
                return True
        return False

    # --- Ending.

    async def interrupt_below(self, thread_id: str) -> None:
        """Stop the turns of all that a thread started."""
        async with anyio.create_task_group() as group:
            for agent in [*self.below(thread_id)]:
                if agent.thread is not None:
                    group.start_soon(agent.thread.session.interrupt)

    async def close(self, thread_id: str) -> AgentStatus:
        """Close an agent and all below it for good; return what it did until then (raises ToolError: none such).

        The parent of one that was not done yet is told.
        """
        agent = self._known(thread_id)
        async with self.changes:
            before, was_owed = agent.status, agent.thread is not None and agent.owes_notice
            agent.owes_notice = False
            with anyio.CancelScope(shield=True):
                await self._close_for_good(agent)
            if was_owed:
                self._notify(agent)
        return before

    async def _close_for_good(self, agent: Agent) -> None:
        """Close an agent and all below it; those keep their edges, so that resuming it finds them."""
        await self._take_down(agent, for_good=True)
        await self.store.put(agent.identity.parent_id, agent.thread_id, is_open=False)

    async def give_up(self, thread_id: str) -> None:
        """Close the threads of all that a thread started, before it closes itself; resuming it finds them again."""
        for child in self._children(thread_id):
            await self._take_down(child, for_good=False)
        agent = self._agents.get(thread_id)
        if agent is not None and agent.thread is not None:
            agent.closed()
            self._tell(agent)

    async def _take_down(self, agent: Agent, *, for_good: bool) -> None:
        """Close an agent after all below it; once its turn is interrupted, it starts no more."""
        if agent.thread is not None:
            await agent.thread.session.interrupt()
        for child in self._children(agent.thread_id):
            await self._take_down(child, for_good=for_good)
        agent.is_open = agent.is_open and not for_good
        thread = agent.thread
        if thread is None:
            return
        agent.closed()
        try:
            await thread.close_alone()
        except CommonplaceError as error:
            self.warn(f"The agent {agent.thread_id} was not closed in order: {error.sentence()}")
        self._tell(agent)

    def _children(self, thread_id: str) -> list[Agent]:
        return [agent for agent in self.agents() if agent.identity.parent_id == thread_id]

    def _known(self, thread_id: str) -> Agent:
        """Return an agent, closed or not (raises ToolError: there is none of this id)."""
        agent = self._agents.get(thread_id)
        if agent is None:
            raise not_found(thread_id)
        return agent

    # --- Hearing.

    def _hear(self, agent: Agent, event: events.Event) -> None:
        if isinstance(event, events.Asked):
            self.root.session.ledger.publish(event)
            return
        new = states.after(event)
        if new is None or agent.thread is None:
            return
        agent.status = new
        if new.is_final and agent.owes_notice:
            agent.owes_notice = False
            self._notify(agent)
        self._tell(agent)

    def _notify(self, agent: Agent) -> None:
        """Tell an agent's parent that it is done."""
        parent = self._agents.get(agent.identity.parent_id)
        thread = self.root if parent is None else parent.thread
        if thread is not None:
            thread.session.notify(notices.completion(agent.thread_id, agent.status))

    def _tell(self, agent: Agent) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        for listener in [*self._listeners]:
            listener(agent)


async def _to_its_end(work: Awaitable[T]) -> T:
    """Return what some work returns; an interrupt waits for its end, so that no thread is left half opened."""
    found: list[T] = []
    with anyio.CancelScope(shield=True):
        found.append(await work)
    return found[0]


def not_found(thread_id: str) -> ToolError:
    """Return the error that a tree has no such agent."""
    return ToolError("agent", f"agent with id {thread_id} not found")
