"""Commands that run: each in a session and process group of its own, read by one task, ended with all its children.

The task that reads a command's output owns it. However that task ends, the group is killed and the command reaped, so
that closing `Processes`, or cancelling whatever it lives in, leaves no child behind. The group is killed before its
leader is reaped: until then the system gives the number of the group to nobody else.

A command whose leader has ended takes what it left in its group with it, unless it runs in the background.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from commonplace.agent.tools.printed import Printed
from commonplace.errors import ToolError

MOST: Final = 32
"""How many commands may run at once."""
GRACE_SECONDS: Final = 2.0
"""How long a group has between being asked to end and being killed."""
_LOOK_SECONDS: Final = 0.002
_CHUNK: Final = 64 * 1024
_ROUNDS: Final = 64
"""Chunks that are read before others get their turn."""


class Launch(msgspec.Struct, frozen=True):
    """What to start."""

    command: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    background: bool = False
    """It has an open input, and goes on as long as anything holds its output, though its leader has ended."""
    seconds: float | None = None
    """How long it may run."""


class Running:
    """A command that was started."""

    def __init__(self, number: int, launch: Launch, process: subprocess.Popen[bytes], output: int) -> None:
        self.id = number
        self.launch = launch
        self.ended = anyio.Event()
        self.code: int | None = None
        """As shells tell it: 128 and the signal for what was killed."""
        self.left: int = 0
        """How many processes it left behind, which were ended."""
        self.timed_out = False
        self.problem: str | None = None
        self.listener: Callable[[str], None] | None = None
        self.printed = Printed()
        self._news = anyio.Event()
        self._silent = anyio.Event()
        """Nothing more is waited for."""
        self._process = process
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._closed = False
        self.scope = anyio.CancelScope()
        """Cancelling it ends the task that follows the command, and so the command."""

    @property
    def group(self) -> int:
        """The number of its process group."""
        return self._process.pid

    def take(self) -> Printed:
        """Return what was printed since it was last taken."""
        taken, self.printed = self.printed, Printed()
        return taken

    async def settled(self, quiet: float) -> None:
        """Return when something was printed and nothing followed for a while, or when the command has ended."""
        while not self.ended.is_set():
            news = self._news
            if not self.printed.size:
                await news.wait()
                continue
            with anyio.move_on_after(quiet):
                await news.wait()
                continue
            return

    async def write(self, text: str, seconds: float) -> None:
        """Write to its input, for at most so long (raises ToolError: it does not take all of it)."""
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            raise ToolError("io", f"the input of process {self.id} is closed")
        left = memoryview(text.encode("utf-8", "replace"))
        try:
            with anyio.move_on_after(seconds):
                while left:
                    try:
                        left = left[os.write(pipe.fileno(), left) :]
                    except BlockingIOError:
                        await anyio.wait_writable(pipe)
        except (OSError, ValueError, anyio.ClosedResourceError):
            raise ToolError("io", f"process {self.id} takes no input any more") from None
        if left:
            raise ToolError("io", f"process {self.id} left {len(left)} bytes of its input unread; they are not sent")

    def close_input(self) -> None:
        """Tell it that no more input comes."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            anyio.notify_closing(pipe)
            with contextlib.suppress(OSError):
                pipe.close()

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        if not self._closed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, number)

    async def end(self) -> None:
        """Ask the group to end, then kill it; returns when it is gone, also when the caller is cancelled."""
        with anyio.CancelScope(shield=True):
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)  # one that was stopped could not hear
            with anyio.move_on_after(GRACE_SECONDS):
                await self.ended.wait()
            self._kill()
            await self.ended.wait()

    def _kill(self) -> None:
        """Kill the group; what left it long ago and still holds the output is not waited for."""
        self.signal(signal.SIGKILL)
        self._silent.set()

    async def follow(self) -> None:
        """Read until the command ends; then end what is left of it."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read)
                if self.launch.seconds is not None:
                    tasks.start_soon(self._expire, self.launch.seconds)
                await self._leader()
                if self.launch.background:
                    await self._silent.wait()
                tasks.cancel_scope.cancel()
        except ExceptionGroup as several:
            self.problem = str(several.exceptions[0])
        finally:
            with anyio.CancelScope(shield=True):
                self.left = await self._end_rest()
            self.close()

    async def _end_rest(self) -> int:
        """Kill what is left of the group and see it end; return how many that were."""
        rest = members(self.group)
        with contextlib.ExitStack() as opened:
            watched: list[int] = []
            for process in rest:
                with contextlib.suppress(AttributeError, OSError):  # not Linux, or gone already
                    watched.append(os.pidfd_open(process))
                    opened.callback(os.close, watched[-1])
            self.signal(signal.SIGKILL)
            with anyio.move_on_after(GRACE_SECONDS):  # one that hangs in the kernel ends when that lets it
                for descriptor in watched:
                    await anyio.wait_readable(descriptor)
                # Where nothing tells that a process ended, one has to look.
                while len(watched) < len(rest) and members(self.group):  # noqa: ASYNC110
                    await anyio.sleep(_LOOK_SECONDS)
        return len(rest)

    async def _expire(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        self.timed_out = True
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        await anyio.sleep(GRACE_SECONDS)
        self._kill()

    async def _leader(self) -> None:
        """Return when the leader has ended; it is not reaped yet."""
        try:
            descriptor = os.pidfd_open(self.group)
        except (AttributeError, OSError):
            # Not Linux: the leader is reaped by the wait, which leaves a moment in which its number is free.
            await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
            return
        try:
            await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)

    async def _read(self) -> None:
        """Read what is printed until nobody is left who could print."""
        while self._drain():
            await anyio.wait_readable(self._output)
        self._silent.set()

    def _drain(self) -> bool:
        """Take what is there to be read; say whether more may come."""
        for _ in range(_ROUNDS):
            try:
                data = os.read(self._output, _CHUNK)
            except BlockingIOError:
                return True
            self._hear(self._decoder.decode(data, final=not data))
            if not data:
                return False
        return True

    def _hear(self, text: str) -> None:
        if not text:
            return
        try:
            self.printed.add(text)
        except OSError as error:  # no room for it: the command goes on, and the answer says what is missing
            self.problem = f"some of the output was not kept: {os.strerror(error.errno or 0)}"
        news, self._news = self._news, anyio.Event()
        news.set()
        if self.listener is not None:
            try:
                self.listener(text)
            except Exception as error:  # whoever listens badly must not end the command
                self.listener = None
                self.problem = f"the output was no longer shown: {type(error).__name__}: {error}"

    def close(self) -> None:
        """Kill the group, reap the leader, read what is left; nothing here waits for another program."""
        if self._closed:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, signal.SIGKILL)
        code = self._process.wait()
        self._closed = True
        self.code = code if code >= 0 else 128 - code
        with contextlib.suppress(OSError):
            self._drain()
        self._hear(self._decoder.decode(b"", final=True))
        os.close(self._output)
        self.close_input()
        self.ended.set()
        self._news.set()


class Processes:
    """The commands of one session. Leaving it ends them all.

    async with Processes() as processes: ...

    The tasks that follow commands live in a group of whoever hands one in; then it can be left in another task than the
    one that entered it.
    """

    def __init__(self, tasks: anyio.abc.TaskGroup | None = None) -> None:
        self._running: dict[int, Running] = {}
        self._tasks = tasks
        self._own: anyio.abc.TaskGroup | None = None
        self._last = 0

    async def __aenter__(self) -> Processes:
        if self._tasks is None:
            self._tasks = self._own = anyio.create_task_group()
            await self._own.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks = None
        for running in self._running.values():
            running.scope.cancel()
        own, self._own = self._own, None
        try:
            if own is not None:
                own.cancel_scope.cancel()
                # An error of the session goes on as it is: the group must not wrap it.
                await own.__aexit__(None, None, None)
            else:
                for running in [*self._running.values()]:
                    await running.ended.wait()
        finally:
            for running in self._running.values():
                running.close()  # one whose task never had its turn
            self._running.clear()

    def start(self, launch: Launch) -> Running:
        """Start a command.

        Raises:
            ToolError: it cannot be started.
        """
        if self._tasks is None:
            raise ToolError("closed", "the session has ended")
        if sum(not each.ended.is_set() for each in self._running.values()) >= MOST:
            raise ToolError("too_many", f"{MOST} processes are running; end one first")
        process, output = _spawn(launch)
        self._last += 1
        running = Running(self._last, launch, process, output)
        self._running[running.id] = running
        self._tasks.start_soon(self._follow, running, name=f"process {running.id}")
        return running

    async def _follow(self, running: Running) -> None:
        try:
            with running.scope:
                await running.follow()
        finally:
            running.close()  # a task that is cancelled before its first step follows nothing

    def find(self, number: int) -> Running:
        """Return a command by its number (raises ToolError: there is none)."""
        try:
            return self._running[number]
        except KeyError:
            known = ", ".join(str(each) for each in self._running) or "none"
            raise ToolError("not_found", f"there is no process {number}; those known: {known}") from None

    def forget(self, running: Running) -> None:
        """Take a command out of those that can be asked for; it has ended and was told of."""
        self._running.pop(running.id, None)

    def numbers(self) -> tuple[int, ...]:
        """Return the numbers of those that can be asked for."""
        return tuple(self._running)


def _spawn(launch: Launch) -> tuple[subprocess.Popen[bytes], int]:
    output, printing = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603  # running what a model asks for is the point; `approve` decides
            launch.command,
            cwd=launch.cwd,
            env=dict(launch.environment),
            stdin=subprocess.PIPE if launch.background else subprocess.DEVNULL,
            stdout=printing,
            stderr=printing,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(output)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ToolError("io", f"{launch.command[0]!r} cannot be started in {launch.cwd}: {reason}") from None
    finally:
        os.close(printing)
    os.set_blocking(output, False)
    if process.stdin is not None:
        os.set_blocking(process.stdin.fileno(), False)
    return process, output


def members(group: int) -> list[int]:
    """Return the processes of a group that are alive, as far as the system tells."""
    found: list[int] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if name.isdecimal():
            try:
                descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                status = os.read(descriptor, 1024)
            except OSError:  # it ended in between
                continue
            finally:
                os.close(descriptor)
            state, _, its_group = status[status.rfind(b")") + 2 :].split()[:3]
            if int(its_group) == group and state not in (b"Z", b"X"):
                found.append(int(name))
    return found
