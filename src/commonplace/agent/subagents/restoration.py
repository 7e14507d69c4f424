"""The tree of a session that is gone on with: its agents are opened again, breadth first, as they were left.

An agent whose thread cannot be opened stays in the tree without one: it takes its place until it is closed, and
`resume_agent` tries again. What is below it waits for it.
"""

from __future__ import annotations

from collections import deque

from commonplace.agent.subagents import limits
from commonplace.agent.subagents import status as states
from commonplace.agent.subagents.agent import Agent
from commonplace.agent.subagents.status import AgentStatus
from commonplace.agent.subagents.tree import AgentTree, not_found
from commonplace.errors import CommonplaceError


async def restore(tree: AgentTree, thread_id: str) -> None:
    """Open the agents below a thread that nobody closed; a failure is a warning."""
    waiting = deque([thread_id])
    while waiting:
        for child_id in await tree.store.open_children(waiting.popleft()):
            known = tree.find(child_id)
            if known is not None and known.live() is not None:
                continue
            identity = await tree.maker.identify(child_id)
            if identity is None:
                tree.warn(f"The agent {child_id} is gone: its file is not there any more.")
                continue
            try:
                agent = await tree.reopen(child_id, identity)
            except CommonplaceError as error:
                tree.warn(f"The agent {child_id} was not opened: {error.sentence()}")
                tree.keep(Agent(child_id, identity, states.NOT_FOUND))
                continue
            agent.owes_notice = not agent.status.is_final
            waiting.append(child_id)


async def resume(tree: AgentTree, thread_id: str) -> AgentStatus:
    """Open an agent again that was closed or could not be opened, with all below it; return its status.

    An agent that is open is left as it is.

    Raises:
        ToolError: there is no such agent in this session, it would stand too deep, or too many are open.
        CommonplaceError: its thread cannot be opened.
    """
    async with tree.changes:
        known = tree.find(thread_id)
        if known is not None and known.live() is not None:
            return known.status
        identity = await tree.maker.identify(thread_id) if known is None else known.identity
        if identity is None or not tree.has(identity.parent_id):
            raise not_found(thread_id)
        tree.thread(identity.parent_id)  # one whose parent is closed would belong to nobody
        limits.check_depth(tree.settings, identity.depth)
        agent = await tree.reopen(thread_id, identity)
        await tree.store.put(identity.parent_id, thread_id, is_open=True)
        await restore(tree, thread_id)
        return agent.status
