"""Starting and ending the server: one book serves all clients, and background work ends with it.

Nothing is opened or read before the first call of a tool, so that a client gets its first answer at once, and so that
settings or a database that cannot be used become an answer and not the end of the server.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from commonplace.app.memory_lender import LazyMemoryLender
from commonplace.app.memory_tools import MemoryTools, Work
from commonplace.surfaces.mcp.session import McpSession

_LAST_SECONDS: Final = 5.0
"""How long work that nobody waits for may take at the end."""


class ServerOptions(msgspec.Struct, frozen=True):
    """The options that the server was started with."""

    project: str | None = None
    notes: bool = False
    only: bool = False
    """No argument shows another project."""


class SharedState:
    """The state that all clients share."""

    def __init__(self, options: ServerOptions, lender: LazyMemoryLender, tasks: TaskGroup) -> None:
        self._options = options
        self._lender = lender
        self._tasks = tasks

    def session(self) -> McpSession:
        """Return the session of a new client."""
        options = self._options
        tools = MemoryTools(self._lender, self._later, project=options.project, notes=options.notes, only=options.only)
        return McpSession(tools, warn)

    def _later(self, work: Work) -> None:
        self._tasks.start_soon(_harmless, work)


async def _harmless(work: Work) -> None:
    """Do work that nobody waits for; if it fails, everything else goes on."""
    try:
        await work()
    except Exception as failed:
        warn(f"Something on the side failed ({type(failed).__name__}: {failed}).")


@asynccontextmanager
async def shared_state(options: ServerOptions) -> AsyncGenerator[SharedState]:
    """Open what clients share; at the end, what was begun is finished as far as time allows."""
    lender = LazyMemoryLender(warn)
    try:
        async with anyio.create_task_group() as tasks:
            yield SharedState(options, lender, tasks)
            tasks.cancel_scope.deadline = anyio.current_time() + _LAST_SECONDS
    finally:
        with anyio.CancelScope(shield=True):
            await lender.close()


def warn(text: str) -> None:
    """Write something to stderr, where clients keep a server's log."""
    plain = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    sys.stderr.write(f"commonplace: {plain}\n")
    sys.stderr.flush()
