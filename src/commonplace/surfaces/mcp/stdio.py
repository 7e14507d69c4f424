"""The server on stdin and stdout: one message per line, until the client closes its end.

The lines get private copies of both descriptors, and what anybody prints goes to stderr: nothing but messages ever
stands on stdout. Reading and writing happen on threads of their own, so that a client that does not read cannot stop
the server from hearing that it should end. Lines longer than the bound are skipped, and the client is told. At the end
of the input, what is being answered is answered before the server goes.
"""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final, Self

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

from commonplace.surfaces.mcp import protocol, session
from commonplace.surfaces.mcp.protocol import Batch, Json, Refusal, RpcRequest
from commonplace.surfaces.mcp.server import ServerOptions, shared_state

MAX_LINE: Final = 16 * 1024 * 1024
"""The longest message that is read, in bytes."""
_AT_ONCE: Final = 8
"""How many slow requests are worked on at the same time."""
_WAITING_BYTES: Final = 4 * MAX_LINE
"""How much may wait for its turn; then reading pauses."""
_LAST_SECONDS: Final = 30.0
"""How long answers may take after the client closed its end."""
_CHUNK: Final = 64 * 1024


def lines(descriptor: int, limit: int = MAX_LINE) -> Iterator[bytes | None]:
    """Yield the lines of a descriptor until it ends; None for one that is too long."""
    parts: list[bytes] = []
    size = 0
    while chunk := _read(descriptor):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            whole = size + len(piece)
            yield b"".join([*parts, piece]) if whole <= limit else None
            parts, size = [], 0
        size += len(rest)
        # What is too long is counted and not kept.
        parts = [*parts, rest] if size <= limit else []
    if size:
        yield b"".join(parts) if size <= limit else None


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""


class Writer:
    """Writes messages to a descriptor, in order, on a thread of its own."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._gone = gone
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="mcp-writer", daemon=True)
        self._thread.start()

    def send(self, message: Json | list[Json]) -> None:
        """Put a message on its way."""
        self._queue.put(protocol.encode(message) + b"\n")

    def end(self, seconds: float) -> None:
        """Write what is on its way, as long as the client takes it."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _write(self) -> None:
        while (data := self._queue.get()) is not None:
            rest = memoryview(data)
            while rest:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except OSError:
                    self._gone()
                    return


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

    async def take(self, line: bytes | None) -> None:
        """Take a line; returns when there is room for another."""
        if line is not None and not line.strip():
            return
        batch = protocol.unpack(line) if line is not None else _too_long()
        if not any(isinstance(each, RpcRequest) and each.method in session.SLOW for each in batch.messages):
            await self._answer(batch)
            return
        size = len(line or b"")
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


def _too_long() -> Batch:
    megabytes = MAX_LINE // (1024 * 1024)
    return Batch((Refusal(None, protocol.INVALID_REQUEST, f"A message has at most {megabytes} MB."),))


class LineReader:
    """Passes lines from a thread to the event loop, one at a time.

    The thread only ever schedules calls on the loop, and waits for none of them: a task of its own there would be
    cancelled with the loop, of which asyncio tells on stderr, and a loop that has ended runs no call any more.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._send, self._receive = anyio.create_memory_object_stream[bytes | None](1)
        self._room = threading.Semaphore(1)
        self._thread = threading.Thread(target=self._pump, name="mcp-reader", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._receive.close()
        self._send.close()
        self._is_over = True
        self._room.release()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | None:
        line = await self._receive.__anext__()
        self._room.release()
        return line

    def _pump(self) -> None:
        with suppress(RuntimeError):  # nothing is left to say to a loop that has ended
            for line in lines(self._descriptor):
                self._room.acquire()
                if self._is_over:
                    return
                self._loop.call_soon_threadsafe(self._offer, line)
            self._loop.call_soon_threadsafe(self._send.close)

    def _offer(self, line: bytes | None) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
            self._send.send_nowait(line)


async def _end(everything: anyio.CancelScope, reason: Callable[[], Awaitable[object]]) -> None:
    """End everything for a reason: the client is gone, or a signal says so."""
    await reason()
    everything.cancel()


def private_descriptors() -> tuple[int, int]:
    """Take stdin and stdout for messages alone: what else reads gets nothing, what else prints goes to stderr."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def run(options: ServerOptions) -> None:
    """Serve the client that started this process."""

    async def inside() -> None:
        incoming, outgoing = private_descriptors()
        async with shared_state(options) as shared:
            await serve(shared.session(), incoming, outgoing)

    anyio.run(inside)
