"""Running commands: each in a session and process group of its own, read by one task, ended with all its children.

The task that reads a command's output owns it. However that task ends, it kills the group and reaps the command, so
that closing `Processes`, or cancelling the task around it, leaves no child behind. The group is killed before its
leader is reaped: until then the system gives the number of the group to no other process.

When the leader of a command ends, the rest of its group is ended too, unless the command runs in the background.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from commonplace.agent.tools.command_output import CommandOutput
from commonplace.agent.tools.process_table import group_members
from commonplace.errors import ToolError

MOST: Final = 32
"""How many commands of one session may run at once; a model that starts more has lost track of them."""
GRACE_SECONDS: Final = 2.0
"""How long a group has between being asked to end and being killed."""
KEPT_OF_LONG: Final = 2**20
"""Bytes of the beginning, and of the end, that are kept of a command that goes on in the background, as in Codex."""
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
    """Its input stays open, and it runs until nobody holds its output any more, even if its leader has ended."""
    seconds: float | None = None
    """How long it may run."""


class RunningCommand:
    """A command that was started."""

    def __init__(self, number: int, launch: Launch, process: subprocess.Popen[bytes], output: int) -> None:
        self.id = number
        self.launch = launch
        self.ended = anyio.Event()
        self.code: int | None = None
        """The exit code as shells give it: 128 plus the signal for a command that was killed."""
        self.left: int = 0
        """How many processes of its group were ended after its leader."""
        self.timed_out = False
        self.problem: str | None = None
        self.listener: Callable[[str], None] | None = None
        self.item_id = ""
        """The call that started it."""
        self.output = CommandOutput()
        """What was printed and not taken yet."""
        self.whole: CommandOutput | None = None
        """All that was printed, once part of it was taken."""
        self._when_ended: list[Callable[[RunningCommand], None]] = []
        self._news = anyio.Event()
        self._silent = anyio.Event()
        """Set when no more output is waited for."""
        self._process = process
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._closed = False
        self.scope = anyio.CancelScope()
        """Cancelling it ends the task that reads the command, and so the command."""

    @property
    def group(self) -> int:
        """The number of its process group."""
        return self._process.pid

    def take(self) -> CommandOutput:
        """Return what was printed since the last call."""
        taken, self.output = self.output, CommandOutput()
        if self.whole is None and not self.ended.is_set():
            self.whole = CommandOutput(kept=KEPT_OF_LONG, last=KEPT_OF_LONG)
            self.whole.add(taken.text())
        return taken

    def when_ended(self, then: Callable[[RunningCommand], None]) -> None:
        """Call a function when the command has ended; at once if it has."""
        if self.ended.is_set():
            then(self)
        else:
            self._when_ended.append(then)

    async def settled(self, quiet: float) -> None:
        """Return when something was printed and nothing followed for a while, or when the command has ended."""
        while not self.ended.is_set():
            news = self._news
            if not self.output.size:
                await news.wait()
                continue
            with anyio.move_on_after(quiet):
                await news.wait()
                continue
            return

    async def write(self, text: str, seconds: float) -> None:
        """Write to its input, for at most `seconds` (raises ToolError: the command did not read all of it)."""
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
        """Close its input."""
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
            self.signal(signal.SIGCONT)  # a stopped process does not get SIGTERM
            with anyio.move_on_after(GRACE_SECONDS):
                await self.ended.wait()
            self._kill()
            await self.ended.wait()

    def _kill(self) -> None:
        """Kill the group; a process that left it and still holds the output is not waited for."""
        self.signal(signal.SIGKILL)
        self._silent.set()

    async def follow(self) -> None:
        """Read the output until the command ends; then end what is left of its group."""
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
        """Kill what is left of the group and wait for its end; return how many processes that were."""
        rest = group_members(self.group)
        with contextlib.ExitStack() as opened:
            watched: list[int] = []
            for process in rest:
                with contextlib.suppress(AttributeError, OSError):  # not Linux, or gone already
                    watched.append(os.pidfd_open(process))
                    opened.callback(os.close, watched[-1])
            self.signal(signal.SIGKILL)
            with anyio.move_on_after(GRACE_SECONDS):  # a process that hangs in the kernel ends later
                for descriptor in watched:
                    await anyio.wait_readable(descriptor)
                # Without pidfd nothing signals the end of a process, so it is polled.
                while len(watched) < len(rest) and group_members(self.group):  # noqa: ASYNC110
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
        """Read the output until nobody holds it open."""
        while self._drain():
            await anyio.wait_readable(self._output)
        self._silent.set()

    def _drain(self) -> bool:
        """Read what is available; return whether more may come."""
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
            self.output.add(text)
            if self.whole is not None:
                self.whole.add(text)
        except OSError as error:  # the disk is full: the command goes on, and the output says what is missing
            self.problem = f"some of the output was not kept: {os.strerror(error.errno or 0)}"
        news, self._news = self._news, anyio.Event()
        news.set()
        if self.listener is not None:
            try:
                self.listener(text)
            except Exception as error:  # a broken listener must not end the command
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
        while self._when_ended:
            self._when_ended.pop()(self)


class Processes:
    """The commands of one session; `close` ends them all.

    The tasks that read commands run in the task group that is handed in; without one, use it as a context manager.
    """

    def __init__(self, tasks: anyio.abc.TaskGroup | None = None) -> None:
        self._running: dict[int, RunningCommand] = {}
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
        await self.close()

    async def close(self) -> None:
        """End all commands; return when nothing is left of them."""
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

    def start(self, launch: Launch) -> RunningCommand:
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
        running = RunningCommand(self._last, launch, process, output)
        self._running[running.id] = running
        self._tasks.start_soon(self._follow, running, name=f"process {running.id}")
        return running

    async def _follow(self, running: RunningCommand) -> None:
        try:
            with running.scope:
                await running.follow()
        finally:
            running.close()  # a task that is cancelled before its first step reads nothing

    def find(self, number: int) -> RunningCommand:
        """Return a command by its number (raises ToolError: there is none)."""
        try:
            return self._running[number]
        except KeyError:
            known = ", ".join(str(each) for each in self._running) or "none"
            raise ToolError("not_found", f"there is no process {number}; those known: {known}") from None

    def forget(self, running: RunningCommand) -> None:
        """Drop a command that has ended and whose output was returned."""
        self._running.pop(running.id, None)


def _let_commands_be_interrupted() -> None:
    """Ignore SIGINT by a handler where it is ignored: programs inherit what is ignored, and no handlers.

    Shells start background jobs with SIGINT ignored, and what is ignored at the start of a shell no `trap` catches.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: None)


def _spawn(launch: Launch) -> tuple[subprocess.Popen[bytes], int]:
    _let_commands_be_interrupted()
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
