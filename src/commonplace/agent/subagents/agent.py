"""One sub-agent of a tree: its thread while that is open, its status, and whether its parent waits to be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import anyio
import msgspec

from commonplace.agent import events
from commonplace.agent.agent_identity import AgentIdentity
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.profile import Profile
from commonplace.agent.session import Session
from commonplace.agent.subagents import status as states
from commonplace.agent.subagents.status import AgentStatus
from commonplace.agent.user_input import UserInput


class AgentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the library and the surfaces tell of a sub-agent."""

    thread_id: str
    parent_id: str
    depth: int
    nickname: str | None
    role: str | None
    status: AgentStatus
    path: Path | None = None
    """Its ledger, while its thread is open and leaves one."""
    task: str = ""
    """What it was told last, while this process has told it."""


class AgentThread(Protocol):
    """What a tree asks of a thread; `agent.thread.Thread` is one."""

    session: Session

    @property
    def id(self) -> str: ...

    @property
    def path(self) -> Path | None: ...

    @property
    def profile(self) -> Profile: ...

    def join(self, tree: Tree) -> None:
        """Take a place in a tree."""
        ...

    async def turn(self, given: UserInput) -> events.End:
        """Run a turn to its end."""
        ...

    async def close_alone(self) -> None:
        """Close the thread, and none that it started."""
        ...


class Tree(Protocol):
    """What a thread asks of the tree that it has a place in."""

    @property
    def maker(self) -> ThreadMaker:
        """What opens the threads of agents."""
        ...

    def info(self, thread_id: str | None = None) -> list[AgentInfo]:
        """Return what is told of the agents below a thread, each before those that it started."""
        ...

    def listen(self, listener: ChangeListener) -> Callable[[], None]:
        """Have a function called when an agent changes; return what ends that."""
        ...

    async def interrupt_below(self, thread_id: str) -> None:
        """Stop the turns of all that a thread started, and of all that they started."""
        ...

    async def give_up(self, thread_id: str) -> None:
        """Close all that a thread started, before it closes itself."""
        ...

    def decide(self, request_id: str, decision: Decision) -> bool:
        """Answer a question that an agent asked; return whether one did."""
        ...


class ForkedContext(msgspec.Struct, frozen=True):
    """What a sub-agent takes over of its parent's context."""

    items: list[bytes]
    parent: Session


class NewAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent that is to be opened."""

    profile: Profile
    forked: ForkedContext | None = None
    has_memory: bool = True
    has_shell: bool = True


class ThreadMaker(Protocol):
    """Opens the threads of sub-agents; the program around the agent hands one in."""

    async def start(self, new: NewAgent) -> AgentThread:
        """Open the thread of a new sub-agent (raises CommonplaceError: it cannot be opened)."""
        ...

    async def identify(self, thread_id: str) -> AgentIdentity | None:
        """Return who a stored sub-agent is; None if there is no such thread, or no agent started it."""
        ...

    async def resume(self, thread_id: str, profile: Profile) -> tuple[AgentThread, AgentStatus]:
        """Open the thread of a stored sub-agent; return it, and how it was left (raises CommonplaceError)."""
        ...


class Agent:
    """One sub-agent. Only its tree changes it."""

    def __init__(self, thread_id: str, identity: AgentIdentity, status: AgentStatus) -> None:
        self.thread_id = thread_id
        self.identity = identity
        self.status = status
        self.thread: AgentThread | None = None
        """None while it is not open: it could not be opened, or was closed."""
        self.is_open = True
        """Whether it takes one of the session's places; False once it was closed."""
        self.owes_notice = True
        """Whether its parent is to be told when it is done."""
        self.turn_id = ""
        """The turn that it began last."""
        self.task = ""
        """What it was told last."""
        self.input = anyio.Lock()
        """Inputs reach it one after the other."""

    def live(self) -> AgentThread | None:
        """Return its thread while it is open."""
        return self.thread if self.is_open else None

    def closed(self) -> None:
        """Note that its thread is closed."""
        self.thread, self.owes_notice, self.status = None, False, states.SHUTDOWN


ChangeListener = Callable[[Agent], None]
"""Called when an agent was opened, when its status changed, and when it was closed."""
