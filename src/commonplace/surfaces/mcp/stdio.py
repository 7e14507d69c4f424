"""The server on stdin and stdout: one message per line, until the client closes its end.

A client that does not read cannot stop the server from hearing that it should end. A line that is too long is skipped,
and the client is told. At the end of the input, what is being answered is answered before the server goes.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

from commonplace.surfaces import message_ids
from commonplace.surfaces.line_streams import MAX_LINE, Line, LineReader, LineWriter, TooLong, private_descriptors
from commonplace.surfaces.mcp import protocol, session
from commonplace.surfaces.mcp.protocol import Batch, Json, Refusal, RpcRequest
from commonplace.surfaces.mcp.server import ServerOptions, shared_state

_AT_ONCE: Final = 8
"""How many slow requests are worked on at the same time."""
_WAITING_BYTES: Final = 4 * MAX_LINE
"""How much may wait for its turn; then reading pauses."""
_LAST_SECONDS: Final = 30.0
"""How long answers may take after the client closed its end."""


class Writer(LineWriter):
    """Writes messages to a descriptor, in order."""

    def send(self, message: Json | list[Json]) -> None:
        """Put a message on its way."""
        self.write(protocol.encode(message))


async def serve(client: session.McpSession, incoming: int, outgoing: int) -> None:
    """Answer a client on two descriptors until it is gone or the process is told to end."""
    stop = anyio.Event()
    token = anyio.lowlevel.current_token()

    def gone() -> None:
        with suppress(RuntimeError):  # the loop has ended
            anyio.from_thread.run_sync(stop.set, token=token)

    writer = Writer(outgoing, gone)
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async with anyio.create_task_group() as everything:
            everything.start_soon(_end, everything.cancel_scope, stop.wait)
            everything.start_soon(_end, everything.cancel_scope, received.__anext__)
            async with anyio.create_task_group() as tasks:
                queue = _MessageQueue(client, writer, tasks)
                with LineReader(incoming) as inlet:
                    async for line in inlet:
                        await queue.take(line)
                client.close()
                tasks.cancel_scope.deadline = anyio.current_time() + _LAST_SECONDS
            everything.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(writer.end, 2.0)


class _MessageQueue:
    """The messages that wait for answers: quick ones are answered in order, slow ones a few at a time."""

    def __init__(self, client: session.McpSession, writer: Writer, tasks: TaskGroup) -> None:
        self._client = client
        self._writer = writer
        self._tasks = tasks
        self._limit = anyio.Semaphore(_AT_ONCE)
        self._waiting = 0
        self._room = anyio.Event()

    async def take(self, line: Line) -> None:
        """Take a line; returns when there is room for another."""
        if isinstance(line, TooLong):
            await self._answer(_too_long(line.begin))
            return
        if not line.strip():
            return
        batch = protocol.unpack(line)
        if not any(isinstance(each, RpcRequest) and each.method in session.SLOW for each in batch.messages):
            await self._answer(batch)
            return
        size = len(line)
        self._waiting += size
        self._tasks.start_soon(self._in_turn, batch, size)
        while self._waiting > _WAITING_BYTES:
            self._room = anyio.Event()
            await self._room.wait()

    async def _in_turn(self, batch: Batch, size: int) -> None:
        try:
            async with self._limit:
                await self._answer(batch)
        finally:
            self._waiting -= size
            self._room.set()

    async def _answer(self, batch: Batch) -> None:
        answer = await self._client.answer(batch, self._writer.send)
        if answer is not None:
            self._writer.send(answer)


def _too_long(begin: bytes) -> Batch:
    problem = f"A message has at most {MAX_LINE // 2**20} MB."
    return Batch((Refusal(message_ids.of_broken(begin), protocol.INVALID_REQUEST, problem),))


async def _end(everything: anyio.CancelScope, reason: Callable[[], Awaitable[object]]) -> None:
    """End everything for a reason: the client is gone, or a signal says so."""
    await reason()
    everything.cancel()


def run(options: ServerOptions) -> None:
    """Serve the client that started this process."""

    async def inside() -> None:
        incoming, outgoing = private_descriptors()
        async with shared_state(options) as shared:
            await serve(shared.session(), incoming, outgoing)

    anyio.run(inside)
