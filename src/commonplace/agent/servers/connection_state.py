"""The state of one connection to a server: whether it is ready, which tools it has, why it ended. Needs no SDK.

The task that runs the connection writes the state; everybody else reads it, and may `end` it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio

from commonplace.agent.servers.results import CallResult
from commonplace.agent.servers.tool_list import ToolOffer

Call = Callable[[str, dict[str, Any]], Awaitable[CallResult]]
"""Calls a tool by the server's own name for it (raises CallFailed)."""
Listing = Callable[[], Awaitable[ToolOffer]]
"""Lists the tools again (raises CallFailed)."""


class CallFailed(Exception):
    """A server did not answer a call; the text says why."""


def innermost(error: BaseException) -> BaseException:
    """Return the first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


class ConnectionState:
    """One connection to a server, from its start to its end.

    Invariants: `ready` is true only between the start and the end; the first reason to end counts.
    """

    def __init__(self) -> None:
        self.began = False
        """Its task has run; before that there is no end to wait for."""
        self.settled = anyio.Event()
        """Set when it is ready, or when it never will be."""
        self.ended = anyio.Event()
        """Set when nothing is left of it."""
        self.over = anyio.Event()
        """Set when it must end, or has ended."""
        self.reason = ""
        """Why it ended; empty if we ended it."""
        self.polite = True
        """Whether the server gets time to end by itself."""
        self.starting: anyio.CancelScope | None = None
        self.offer = ToolOffer()
        self.changed = False
        """The server said that its list of tools changed."""
        self.on_ready: Callable[[], None] = lambda: None
        """Called once, when tools can be called."""
        self.call: Call | None = None
        self.listing: Listing | None = None

    @property
    def ready(self) -> bool:
        """Whether tools can be called."""
        return self.call is not None and not self.over.is_set()

    def end(self, reason: str = "", *, polite: bool = True) -> None:
        """End the connection; the first reason counts."""
        if self.over.is_set():
            return
        self.reason = reason
        self.polite = polite
        self.over.set()
        if self.starting is not None:
            self.starting.cancel()
