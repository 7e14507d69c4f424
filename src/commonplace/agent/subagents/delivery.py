"""Input reaches a sub-agent: as part of its running turn, else as a turn of its own.

Inputs to one agent are given one after the other. A turn that is just ending, or that only compacts, takes nothing in;
then the input waits for its end. An agent that is closed meanwhile gets nothing.
"""

from __future__ import annotations

import anyio
from anyio.abc import TaskGroup

from commonplace.agent import events
from commonplace.agent.subagents.agent import Agent, AgentThread
from commonplace.agent.user_input import UserInput
from commonplace.errors import BadInput, CommonplaceError, ToolError
from commonplace.protocol.ids import new_id

_WAITS: tuple[str, ...] = ("no_active_turn", "active_turn_not_steerable")
"""Why a turn takes no input, where another one can."""


async def deliver(agent: Agent, given: UserInput, tasks: TaskGroup) -> str:
    """Give an agent input; return the id of the turn that began, or a new one for input to the running turn.

    Raises:
        ToolError: the agent is closed.
        BadInput: the input cannot be used.
    """
    async with agent.input:
        while True:
            thread = live(agent)
            if thread.session.turn is None:
                problem = await _begin(agent, thread, given, tasks)
                if problem is None:
                    return agent.turn_id
                if live(agent).session.turn is None:  # else somebody else was quicker, and their turn is told of it
                    raise problem
            try:
                thread.session.steer(given)
            except BadInput as error:
                if error.data.get("reason") not in _WAITS:
                    raise
                await thread.session.turns.until_idle()
            else:
                return new_id(thread.session.environment.now())


def live(agent: Agent) -> AgentThread:
    """Return the thread of an agent that can be talked to (raises ToolError: it is closed)."""
    thread = agent.live()
    if thread is None:
        raise ToolError("agent", f"agent with id {agent.thread_id} is closed", hint="resume_agent opens it again.")
    return thread


async def _begin(agent: Agent, thread: AgentThread, given: UserInput, tasks: TaskGroup) -> CommonplaceError | None:
    """Begin a turn beside this task; return when it has begun, or why it did not."""
    begun = anyio.Event()
    problems: list[CommonplaceError] = []

    def hear(event: events.Event) -> None:
        if isinstance(event, events.TurnStarted):
            agent.turn_id = event.turn_id
            begun.set()

    async def run() -> None:
        stop = thread.session.listen(hear)
        try:
            live(agent)  # it may have been closed before this task ran
            await thread.turn(given)
        except CommonplaceError as error:
            problems.append(error)
        finally:
            stop()
            begun.set()

    tasks.start_soon(run)
    await begun.wait()
    return problems[0] if problems else None
