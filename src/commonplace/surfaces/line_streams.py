"""Lines on two descriptors: read and written on threads of their own, so that nobody who does not read stops the loop.

What anybody prints goes to stderr once `private_descriptors` took stdout: nothing but messages ever stands there. Of a
line that is longer than the bound, only the beginning is kept: who sent it can be answered.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Self

import anyio
import msgspec

MAX_LINE: Final = 16 * 1024 * 1024
"""The longest message that is read, in bytes."""
_CHUNK: Final = 64 * 1024


class TooLong(msgspec.Struct, frozen=True):
    """A line that is longer than the bound."""

    begin: bytes
    """Its first bytes."""


Line = bytes | TooLong


def lines(descriptor: int, limit: int = MAX_LINE) -> Iterator[Line]:
    """Yield the lines of a descriptor until it ends."""
    parts: list[bytes] = []
    size = 0
    while chunk := _read(descriptor):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield _line([*parts, piece], size + len(piece), limit)
            parts, size = [], 0
        size += len(rest)
        parts.append(rest)
        if size > limit:  # then it is counted and not kept
            parts = [_begin(parts)]
    if size:
        yield _line(parts, size, limit)


def _line(parts: list[bytes], size: int, limit: int) -> Line:
    return b"".join(parts) if size <= limit else TooLong(_begin(parts))


def _begin(parts: list[bytes]) -> bytes:
    return b"".join(parts)[:_CHUNK]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""


class LineWriter:
    """Writes lines to a descriptor, in order, on a thread of its own."""

    def __init__(self, descriptor: int, gone: Callable[[], None], written: Callable[[int], None] | None = None) -> None:
        self._descriptor = descriptor
        self._gone = gone
        self._written = written
        """Gets the size of each line that was written, on the thread of the writer."""
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="line-writer", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Put a line on its way, without its end."""
        self._queue.put(line + b"\n")

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
            if self._written is not None:
                self._written(len(data))


class LineReader:
    """Passes lines from a thread to the event loop, one at a time.

    The thread only ever schedules calls on the loop, and waits for none of them: a task of its own there would be
    cancelled with the loop, of which asyncio tells on stderr, and a loop that has ended runs no call any more.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._send, self._receive = anyio.create_memory_object_stream[Line](1)
        self._room = threading.Semaphore(1)
        self._thread = threading.Thread(target=self._pump, name="line-reader", daemon=True)
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

    async def __anext__(self) -> Line:
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

    def _offer(self, line: Line) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
            self._send.send_nowait(line)


def private_descriptors() -> tuple[int, int]:
    """Take stdin and stdout for messages alone: what else reads gets nothing, what else prints goes to stderr."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing
