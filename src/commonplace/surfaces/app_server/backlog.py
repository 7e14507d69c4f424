"""What waits to be written to one client, counted: nobody is read from while much waits, and whoever takes nothing is
given up.
"""

from __future__ import annotations

from typing import Final

import anyio

from commonplace.surfaces.app_server.connection import QUEUE

_MOST_WAITING: Final = 256 * 1024 * 1024
"""Bytes that may wait to be written; then the client is given up."""


class Backlog:
    """The messages that wait for one client."""

    def __init__(self) -> None:
        self._count = self._bytes = 0
        self._room = anyio.Event()

    def add(self, size: int) -> bool:
        """Count a message that is to be written; return whether the client is still worth waiting for."""
        self._count += 1
        self._bytes += size
        return self._bytes <= _MOST_WAITING

    def written(self, size: int) -> None:
        """Count a message that was written."""
        self._count -= 1
        self._bytes -= size
        self._room.set()

    async def drained(self) -> None:
        """Return when there is room for more."""
        while self._count >= QUEUE:
            self._room = anyio.Event()
            await self._room.wait()
