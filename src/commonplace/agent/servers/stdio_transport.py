"""A server as a process: lines in and out, in bounded memory, and an end that leaves no process behind.

The process leads a session and group of its own. Its stdout is read line by line and never faster than the lines are
taken; a line that is too long ends the reading. The last bytes of stderr are kept, for the message about its failure.

The process is first asked to end (its input is closed, then SIGTERM) unless it misbehaved. Then everything is killed:
the group, all descendants of the process, and every process that has its mark in the environment, so that a child in a
session of its own is found too.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

import anyio
import anyio.lowlevel

from commonplace.agent.servers.tool_list import clean
from commonplace.agent.tools.process_table import living_processes, read_proc

MOST_LINE: Final = 16 * 2**20
"""Bytes of one message; no useful result is larger."""
LAST_WORDS: Final = 64 * 1024
"""Bytes of stderr that are kept."""
GRACE_SECONDS: Final = 1.0
"""How long it has to end after its input was closed, and again after SIGTERM."""
MARK: Final = "COMMONPLACE_SERVER_MARK"
"""The variable by which descendants of a server are recognised."""
_CHUNK: Final = 64 * 1024
_ROUNDS: Final = 5
"""How often remaining processes are looked for: those that were killed may have started more."""
_PAUSE_BYTES: Final = 2**20
_PAUSE_SECONDS: Final = 0.01
"""How long stderr is not read after that many bytes: nobody needs it that fast."""


class LineTooLong(Exception):
    """A message is longer than allowed."""


class StdioTransport:
    """A process and its three pipes. `start` it, `end` it."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str, most: int) -> None:
        self._process = process
        self._mark = mark
        self._most = most
        self._buffer = bytearray()
        self._searched = 0
        self._words = bytearray()
        self._exited = False

    @classmethod
    def start(
        cls, words: Sequence[str], cwd: Path, environment: Mapping[str, str], *, most: int = MOST_LINE
    ) -> StdioTransport:
        """Start a process (raises OSError, ValueError: it cannot be started)."""
        mark = secrets.token_hex(16)
        process = subprocess.Popen(  # noqa: S603  # the person configured it
            list(words),
            cwd=cwd,
            env={**environment, MARK: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        return cls(process, mark, most)

    @property
    def pid(self) -> int:
        """The number of the process and of its group."""
        return self._process.pid

    async def line(self) -> bytes:
        """Return the next line, without its end.

        Raises:
            EndOfStream: there is none.
            LineTooLong: it is too long; nothing can be read after that.
        """
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._buffer)
            if len(self._buffer) > self._most:
                self._buffer.clear()
                self._searched = 0
                raise LineTooLong(f"it sent a message of more than {self._most} bytes")
            data = await _read(self._process.stdout)
            if not data:
                raise anyio.EndOfStream
            self._buffer += data

    async def write(self, data: bytes) -> None:
        """Write to its input (raises BrokenResourceError: it takes no more)."""
        pipe = self._process.stdin
        left = memoryview(data)
        try:
            while left and pipe is not None:
                try:
                    left = left[os.write(pipe.fileno(), left) :]
                except BlockingIOError:
                    await anyio.wait_writable(pipe)
        except (OSError, ValueError, anyio.ClosedResourceError):
            raise anyio.BrokenResourceError from None

    async def listen(self) -> None:
        """Read stderr until it is closed."""
        since = 0
        while data := await _read(self._process.stderr):
            self._words += data
            del self._words[:-LAST_WORDS]
            since += len(data)
            if since >= _PAUSE_BYTES:
                since = 0
                await anyio.sleep(_PAUSE_SECONDS)

    def last_words(self, most: int = 600) -> str:
        """Return the end of its stderr, in one line."""
        text = clean(self._words[-4 * most :].decode("utf-8", "replace"))
        return " ".join(text.split())[-most:]

    async def end(self, *, polite: bool) -> int | None:
        """End the process and its descendants; return its exit code. Takes a bounded time, also when cancelled."""
        with anyio.CancelScope(shield=True):
            self._close_input()
            if polite and not await self._gone():
                self._signal(signal.SIGTERM)
                await self._gone()
            await self._kill()
            self._take_last_words()
            self._close()
        return self._process.wait() if self._exited else self._process.poll()

    def _take_last_words(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for _ in range(64):
                if self._process.stderr is None or not (data := os.read(self._process.stderr.fileno(), _CHUNK)):
                    return
                self._words += data
                del self._words[:-LAST_WORDS]

    async def _gone(self) -> bool:
        """Wait a little for the process; return whether it has ended. It is not reaped, so it keeps its number."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            with anyio.move_on_after(GRACE_SECONDS):
                while self._process.poll() is None:  # noqa: ASYNC110  # nothing tells of it here
                    await anyio.sleep(0.01)
            self._exited = self._process.returncode is not None
            return self._exited
        try:
            with anyio.move_on_after(GRACE_SECONDS):
                await anyio.wait_readable(descriptor)
                self._exited = True
        finally:
            os.close(descriptor)
        return self._exited

    async def _kill(self) -> None:
        """Kill the process and its descendants."""
        for _ in range(_ROUNDS):
            self._signal(signal.SIGKILL)
            rest = descendants(self.pid, self._mark)
            if not rest and await self._gone():
                break
            await self._kill_all(rest)

    async def _kill_all(self, processes: Sequence[int]) -> None:
        """Kill processes and wait for their end, if they are still descendants of the server."""
        with contextlib.ExitStack() as opened:
            held: dict[int, int] = {}
            for process in processes:
                with contextlib.suppress(AttributeError, OSError):  # not Linux, or gone already
                    held[process] = os.pidfd_open(process)
                    opened.callback(os.close, held[process])
            for process in {*held}.intersection(descendants(self.pid, self._mark)):
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(held[process], signal.SIGKILL)
            with anyio.move_on_after(GRACE_SECONDS):  # one that hangs in the kernel ends when that lets it
                for descriptor in held.values():
                    await anyio.wait_readable(descriptor)

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:  # not reaped: the number of the group is nobody else's
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _close_input(self) -> None:
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            anyio.notify_closing(pipe)
            with contextlib.suppress(OSError):
                pipe.close()

    def _close(self) -> None:
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                anyio.notify_closing(pipe)
                with contextlib.suppress(OSError):
                    pipe.close()


async def _read(pipe: IO[bytes] | None) -> bytes:
    """Return the next bytes; empty at the end of the pipe."""
    assert pipe is not None
    try:
        while True:
            # Other tasks run first: a server that never stops writing must not block the event loop.
            await anyio.lowlevel.checkpoint()
            try:
                return os.read(pipe.fileno(), _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(pipe)
    except (OSError, ValueError, anyio.ClosedResourceError):
        return b""


def descendants(leader: int, mark: str) -> list[int]:
    """Return the living processes that descend from a server, without itself."""
    sign = f"{MARK}={mark}".encode()
    parents: dict[int, int] = {}
    found: set[int] = set()
    for process in living_processes():
        parents[process.id] = process.parent
        if process.group == leader or sign in read_proc(f"/proc/{process.id}/environ", 2**20):
            found.add(process.id)
    known = {leader, *found}
    while grown := {each for each, parent in parents.items() if parent in known} - known:
        known |= grown
    return sorted(known - {leader, os.getpid()})
