"""The sub-agents of open threads, as clients see them: threads that open and close by themselves.

Every client is told of a sub-agent's thread when it opens, of all that happens in it, and is asked its questions with
the thread's own id. Which stored threads are sub-agents, of whom, is what `thread/list` can be narrowed by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from commonplace.agent.subagents.agent import Agent
from commonplace.agent.thread import Thread
from commonplace.sessions import index
from commonplace.state import spawn_edges
from commonplace.surfaces.app_server import thread_views
from commonplace.surfaces.app_server.connection import Connection
from commonplace.surfaces.app_server.open_thread import ServedThread
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.app_server.shapes import NotLoadedStatus

SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "subAgentReview": ("subagent:review",),
    "subAgentCompact": ("subagent:compact",),
    "subAgentThreadSpawn": ("subagent:thread_spawn",),
    "subAgentOther": ("subagent:other", "subagent:memory_consolidation"),
}
"""Kinds of sub-agents as clients name them, each with the sources that it means; `subAgent` means all."""
ALL: Final = "subAgent"


def sources(kinds: Iterable[str]) -> frozenset[str]:
    """Return the sources that some kinds mean; a kind that is no sub-agent's means itself."""
    found: set[str] = set()
    for kind in kinds:
        every = [source for names in SOURCES.values() for source in names]
        found.update(every if kind == ALL else SOURCES.get(kind, (kind,)))
    return frozenset(found)


def follow(server: AppServer, opened: ServedThread) -> None:
    """Open the threads of a thread's sub-agents for all clients, now and as they come."""
    tree = opened.thread.tree
    if tree is not None:
        tree.listen(lambda agent: _changed(server, agent))


def subscribe(server: AppServer, opened: ServedThread, client: Connection) -> None:
    """Tell a client, too, of what happens in the open sub-agents of a thread that it comes to."""
    for agent in opened.thread.agents:
        if (child := server.threads.get(agent.thread_id)) is not None:
            child.subscribe(client)


def _changed(server: AppServer, agent: Agent) -> None:
    known = agent.thread_id in server.threads
    if isinstance(agent.thread, Thread) and not known:
        opened = server.attached(agent.thread)
        server.broadcast("thread/started", {"thread": thread_views.without_file(server, opened)})
    elif agent.thread is None and known:
        del server.threads[agent.thread_id]
        server.broadcast("thread/status/changed", {"threadId": agent.thread_id, "status": NotLoadedStatus()})
        server.broadcast("thread/closed", {"threadId": agent.thread_id})


async def below(server: AppServer, parent: str | None, ancestor: str | None) -> set[str] | None:
    """Return the stored sub-agents of a parent, or of an ancestor; None if neither is asked for."""
    if parent is None and ancestor is None:
        return None
    home = server.book.state
    await index.use(home, lambda found: found.refresh(home.path))  # a process that was killed listed nothing itself
    database = await home.database()
    name = parent or ancestor or ""
    return await database.read(lambda tx: spawn_edges.below(tx, home.key, name, deep=parent is None))
