"""The app server on stdin and stdout: one message a line, until the client closes its end.

At the end of the input, requests that came are answered for a short time, then running turns are interrupted and
everything is written. No library fits this framing, which has neither the member `jsonrpc` nor headers.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio
import anyio.to_thread

from commonplace.surfaces.app_server import messages
from commonplace.surfaces.app_server.backlog import Backlog
from commonplace.surfaces.app_server.connection import Connection
from commonplace.surfaces.app_server.dispatch import Dispatcher
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.line_streams import MAX_LINE, LineReader, LineWriter, TooLong

_LAST_SECONDS: Final = 5.0
"""How long answers may take after the client closed its end."""


class StdioOutgoing:
    """The way to the client through a descriptor."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone = gone
        self._backlog = Backlog()
        self.writer = LineWriter(descriptor, self._lost, self._written)

    def send(self, message: bytes) -> None:
        """Put a message on its way; never waits."""
        if self._backlog.add(len(message) + 1):
            self.writer.write(message)
        else:
            self._gone()

    async def drained(self) -> None:
        """Return when there is room for more."""
        await self._backlog.drained()

    def _lost(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._gone)

    def _written(self, size: int) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._backlog.written, size)


async def serve(server: AppServer, incoming: int, outgoing: int) -> None:
    """Answer a client on two descriptors until it is gone or the process is told to end."""
    lost = anyio.Event()
    out = StdioOutgoing(outgoing, lost.set)
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end, tasks.cancel_scope, lost.wait)
            tasks.start_soon(_end, tasks.cancel_scope, received.__anext__)
            client = Connection(Dispatcher(server), out, tasks, server.log)
            try:
                with LineReader(incoming) as lines:
                    async for line in lines:
                        if isinstance(line, TooLong):
                            client.refuse(messages.too_long(line.begin, MAX_LINE))
                        elif line.strip():
                            await client.take(line)
                with anyio.move_on_after(_LAST_SECONDS):
                    await client.settled()
            finally:
                client.close()
            tasks.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(out.writer.end, 2.0)


async def _end(everything: anyio.CancelScope, reason: Callable[[], Awaitable[object]]) -> None:
    """End everything for a reason: the client is gone, or a signal says so."""
    await reason()
    everything.cancel()
