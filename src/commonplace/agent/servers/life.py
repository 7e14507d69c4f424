"""What is known of one life of a server: whether it is ready, what it offers, why it is over. Needs no SDK.

The task in which a server lives writes it; everybody else reads it, and may `end` it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio

from commonplace.agent.servers.offered import Offer
from commonplace.agent.servers.results import Answer

Call = Callable[[str, dict[str, Any]], Awaitable[Answer]]
"""Calls a tool by its server's name for it (raises CallFailed)."""
Listing = Callable[[], Awaitable[Offer]]
"""Asks for the tools again (raises CallFailed)."""


class CallFailed(Exception):
    """A server did not do what it was asked; the text says why."""


def innermost(error: BaseException) -> BaseException:
    """Return the first of the errors that a group of tasks ended with."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


class Life:
    """One life of a server."""

    def __init__(self) -> None:
        self.began = False
        """Its task had its turn; only then is there something to wait for."""
        self.settled = anyio.Event()
        """It is ready, or it will never be."""
        self.ended = anyio.Event()
        """Nothing is left of it."""
        self.over = anyio.Event()
        """It ends, or has ended."""
        self.reason = ""
        """Why it is over; empty if we wanted it."""
        self.polite = True
        """Whether it is given time to end by itself."""
        self.starting: anyio.CancelScope | None = None
        self.offer = Offer()
        self.changed = False
        """It said that its tools are not what they were."""
        self.call: Call | None = None
        self.listing: Listing | None = None

    @property
    def ready(self) -> bool:
        """Whether it can be called."""
        return self.call is not None and not self.over.is_set()

    def end(self, reason: str = "", *, polite: bool = True) -> None:
        """Let it end; the first reason counts."""
        if self.over.is_set():
            return
        self.reason = reason
        self.polite = polite
        self.over.set()
        if self.starting is not None:
            self.starting.cancel()
