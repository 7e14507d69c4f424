"""`shell` runs a command line; `process` looks after one that goes on in the background.

A call waits for its command and tells exit code, time and output. With `background`, or when `yield_time_ms` is over,
it returns before the command ends, with a number by which the command is asked for later. A foreground command has no
input. A command that is too slow is ended with all its children, and so is one whose call is cancelled.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Collection
from functools import cache
from typing import Annotated, Final, Literal

import anyio
import msgspec
from msgspec import Meta

from commonplace.agent.tools import remembered, scripts, surroundings
from commonplace.agent.tools.arguments import Renamed, bad, decode, schema
from commonplace.agent.tools.described import description
from commonplace.agent.tools.printed import Printed
from commonplace.agent.tools.processes import Launch, Processes, Running
from commonplace.agent.tools.registry import Action, Call, Context, Definition, Output, Tool, failed
from commonplace.context.truncate import Policy

DEFAULT_SECONDS: Final = 120.0
MOST_SECONDS: Final = 3_600.0
TIMED_OUT: Final = 124
"""The exit code of what took too long, as the program `timeout` has it."""
_FIRST_WAIT: Final = 1.0
"""How long a call that starts something in the background waits for what it prints first."""
_QUIET: Final = 0.2
"""A process that prints nothing for so long has said what it had to say."""
_INTERRUPT: Final = "\x03"
_PATCHERS: Final = frozenset({"apply_patch", "applypatch"})
_PATCH: Final = re.compile(r"apply_?patch\s+<<-?\s*(['\"]?)(?P<mark>\w+)\1\n(?P<text>.*)\n(?P=mark)", re.DOTALL)


class ShellArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `shell` takes."""

    command: Annotated[
        str | Annotated[list[str], Meta(min_length=1)],
        Meta(description="A command line for the shell, or a program and its arguments as a list."),
    ]
    workdir: Annotated[str, Meta(description="Folder to run in, from the session's own.")] | None = None
    timeout_ms: (
        Annotated[int, Meta(ge=1, description="Milliseconds until it is ended with all its children.")] | None
    ) = None
    background: Annotated[
        bool, Meta(description="Return at once; ask for the process by its number with the tool `process`.")
    ] = False
    yield_time_ms: (
        Annotated[int, Meta(ge=0, description="Milliseconds to wait; what takes longer goes on in the background.")]
        | None
    ) = None
    max_output_tokens: Annotated[int, Meta(ge=1, description="Show at most about so many tokens.")] | None = None
    escalate: Annotated[
        bool | Literal["require_escalated", "use_default"],
        Meta(description="Run outside the sandbox; a person is asked first, so say why in `justification`."),
    ] = False
    justification: Annotated[str, Meta(description="Why this is needed, for the person who allows it.")] | None = None


class ProcessArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `process` takes."""

    id: Annotated[int, Meta(description="The number that `shell` told.")]
    input: Annotated[str, Meta(description="Text for its input; U+0003 alone interrupts it.")] = ""
    close_input: Annotated[bool, Meta(description="No more input comes after this.")] = False
    end: Annotated[bool, Meta(description="End it with all its children.")] = False
    wait_ms: Annotated[int, Meta(ge=0, description="Milliseconds to wait for its end or for output.")] = 5_000
    max_output_tokens: Annotated[int, Meta(ge=1, description="Show at most about so many tokens.")] | None = None


_SHELL_NAMES: Final[Renamed] = {
    "cmd": "command",
    "cwd": "workdir",
    "timeout": "timeout_ms",
    "login": None,
    "shell": None,
    "tty": None,
    "prefix_rule": None,
    "additional_permissions": None,
    "sandbox_permissions": "escalate",
    "with_escalated_permissions": "escalate",
}
_PROCESS_NAMES: Final[Renamed] = {"session_id": "id", "chars": "input", "yield_time_ms": "wait_ms"}


class Shell:
    """Runs command lines."""

    aliases = ("exec_command", "shell_command", "local_shell", "container.exec", "bash")
    parallel = False
    mutates = True
    asks = True

    def __init__(
        self,
        processes: Processes,
        *,
        allowed: Collection[str] = (),
        withheld: Collection[str] = (),
        seconds: float = DEFAULT_SECONDS,
        patch: Tool | None = None,
    ) -> None:
        self._processes = processes
        self._patch = patch
        """Takes the patches that models give to a program `apply_patch`, which is none."""
        self._allowed = frozenset(allowed)
        self._withheld = frozenset(withheld)
        self._seconds = seconds
        self.definition = Definition("shell", "function", description("shell"), schema(ShellArguments))

    async def run(self, call: Call, context: Context) -> Output:
        """Run a command."""
        wanted = decode(call.arguments, ShellArguments, _SHELL_NAMES)
        if self._patch is not None and (text := patch_in(wanted.command)) is not None:
            return await self._patch.run(Call(call.id, "apply_patch", text, "custom"), context)
        launch = self._launch(wanted, context)
        action = Action(
            call.id,
            "shell",
            "run",
            launch.cwd,
            launch.command,
            escalated=wanted.escalate in (True, "require_escalated"),
            reason=wanted.justification,
        )
        if (why := await context.approve(action)) is not None:
            return failed(f"The command was not run: {why}")
        running = self._processes.start(context.confine(launch))
        context.printed = running.printed
        running.listener = context.emit
        begin = context.now()
        try:
            await _wait(running, wanted)
        except BaseException:
            await running.end()
            self._processes.forget(running)
            raise
        finally:
            running.listener = None
        output = _told(running, context, begin, wanted.max_output_tokens)
        if output.process is None:
            self._processes.forget(running)
        output.retrieved = remembered.of_command(
            wanted.command, cwd=str(launch.cwd), home=str(context.home), user=context.environment.get("HOME", "")
        )
        return output

    def _launch(self, wanted: ShellArguments, context: Context) -> Launch:
        given = wanted.command
        words = (_shell(), "-c", given) if isinstance(given, str) else tuple(given)
        if any("\0" in word for word in words) or not words[0] or (isinstance(given, str) and not given.strip()):
            raise bad("the command is empty or holds a NUL character")
        folder = context.cwd / wanted.workdir if wanted.workdir else context.cwd
        outlives = wanted.background or wanted.yield_time_ms is not None
        given_seconds = None if wanted.timeout_ms is None else wanted.timeout_ms / 1000
        seconds = given_seconds if outlives else min(given_seconds or self._seconds, MOST_SECONDS)
        environment = surroundings.of_command(context.environment, allowed=self._allowed, withheld=self._withheld)
        return Launch(words, folder, environment, wanted.background, seconds)


class Process:
    """Looks after what runs in the background."""

    aliases = ("write_stdin",)
    parallel = True
    mutates = True

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.definition = Definition("process", "function", description("process"), schema(ProcessArguments))

    async def run(self, call: Call, context: Context) -> Output:
        """Write to a process, wait for it, or end it."""
        wanted = decode(call.arguments, ProcessArguments, _PROCESS_NAMES)
        running = self._processes.find(wanted.id)
        begin = context.now()
        running.listener = context.emit
        try:
            if wanted.input == _INTERRUPT:
                running.signal(signal.SIGINT)
            elif wanted.input:
                await running.write(wanted.input, max(wanted.wait_ms / 1000, _FIRST_WAIT))
            if wanted.close_input:
                running.close_input()
            if wanted.end:
                await running.end()
            with anyio.move_on_after(wanted.wait_ms / 1000):
                await running.settled(_QUIET)
        finally:
            running.listener = None
        output = _told(running, context, begin, wanted.max_output_tokens)
        if output.process is None:
            self._processes.forget(running)
        return output


async def _wait(running: Running, wanted: ShellArguments) -> None:
    if wanted.yield_time_ms is not None:
        with anyio.move_on_after(wanted.yield_time_ms / 1000):
            await running.ended.wait()
    elif wanted.background:
        with anyio.move_on_after(_FIRST_WAIT):
            await running.settled(_QUIET)
    else:
        await running.ended.wait()


def _told(running: Running, context: Context, begin: float, tokens: int | None) -> Output:
    """Return the answer of a call about a process, and begin what the next is told."""
    seconds = max(context.now() - begin, 0.0)
    printed = running.take()
    policy = _smaller(context.policy, tokens)
    if not running.ended.is_set():
        told = f"Wall time: {seconds:.1f} seconds\nOutput:\n{printed.cut(policy)}"
        text = _with(told, f"still running as process {running.id}")
        return Output(content=text, seconds=seconds, whole=printed, process=running.id)
    code = TIMED_OUT if running.timed_out else running.code
    assert code is not None
    text = printed.told(code, seconds, policy)
    for note in _notes(running, printed):
        text = _with(text, note)
    return Output(content=text, ok=code == 0, exit_code=code, seconds=seconds, whole=printed)


def _notes(running: Running, printed: Printed) -> list[str]:
    """Return what else a model should know of a command that has ended."""
    notes: list[str] = []
    if running.timed_out:
        notes.append(f"ended after {running.launch.seconds:g} seconds, with all its children; it took too long")
    elif running.left:
        notes.append(f"{running.left} processes that it left behind were ended; use `background` to keep them")
    if running.problem:
        notes.append(running.problem)
    if printed.missing:
        notes.append(f"{printed.missing} bytes in the middle of the output were not kept")
    return notes


def _with(text: str, note: str) -> str:
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{note}]"


def _smaller(policy: Policy, tokens: int | None) -> Policy:
    wished = policy if tokens is None else policy.with_token_limit(tokens)
    return wished if wished.budget < policy.budget else policy


def patch_in(command: str | list[str]) -> str | None:
    """Return the patch that a command hands to `apply_patch` and nothing else."""
    script = scripts.script_of(command)
    if not isinstance(script, str):
        return script[1] if len(script) == 2 and script[0] in _PATCHERS else None
    found = _PATCH.fullmatch(script.strip())
    return found["text"] if found else None


@cache
def _shell() -> str:
    return shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "/bin/sh"
