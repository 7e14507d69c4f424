"""The app server on stdin and stdout: one message a line, until the client closes its end.

At the end of the input, requests that came are answered for a short time, then running turns are interrupted and
everything is written. No library fits this framing, which has neither the member `jsonrpc` nor headers.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio
import anyio.to_thread

from commonplace.app import book as books
from commonplace.app.config_overrides import Overrides
from commonplace.surfaces.app_server.connection import QUEUE, Connection
from commonplace.surfaces.app_server.dispatch import Dispatcher
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.line_streams import LineReader, LineWriter, private_descriptors

_LAST_SECONDS: Final = 5.0
"""How long answers may take after the client closed its end."""
_MOST_WAITING: Final = 256 * 1024 * 1024
"""Bytes that may wait to be written; then the client is given up."""
_MOST_LOGGED: Final = 200
"""Lines of the log, each of at most 200 characters: a client may not read it, and a full pipe would stop us."""


class Log:
    """Tells whoever looks at stderr what was ignored, and falls silent when that becomes too much."""

    def __init__(self) -> None:
        self._left = _MOST_LOGGED

    def __call__(self, text: str) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        line = text.encode("utf-8", "replace").decode()[:200].replace("\n", " ")
        with suppress(OSError):
            sys.stderr.write(f"commonplace: {line}\n" if self._left else "commonplace: Nothing more is logged.\n")
            sys.stderr.flush()


class StdioOutgoing:
    """The way to the client through a descriptor."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone = gone
        self._count = self._bytes = 0
        self._room = anyio.Event()
        self.writer = LineWriter(descriptor, self._lost, self._written)

    def send(self, message: bytes) -> None:
        """Put a message on its way; never waits."""
        self._count += 1
        self._bytes += len(message) + 1
        if self._bytes > _MOST_WAITING:
            self._gone()
        else:
            self.writer.write(message)

    async def drained(self) -> None:
        """Return when there is room for more."""
        while self._count >= QUEUE:
            self._room = anyio.Event()
            await self._room.wait()

    def _lost(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._gone)

    def _written(self, size: int) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._made_room, size)

    def _made_room(self, size: int) -> None:
        self._count -= 1
        self._bytes -= size
        self._room.set()


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
                        if line is None:
                            server.log("A line was ignored: it is too long.")
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


def run(given: Overrides, profile: str | None) -> None:
    """Serve the client that started this process."""

    async def inside() -> None:
        incoming, outgoing = private_descriptors()
        log = Log()
        async with books.open(
            flags=given.flags, providers=given.providers, profile=profile or given.profile, warn=log
        ) as book:
            await serve(AppServer(book, log, given.model(None)), incoming, outgoing)

    anyio.run(inside)
