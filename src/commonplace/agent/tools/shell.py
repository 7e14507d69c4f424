"""`shell` runs a command line; `process` reads from, writes to or ends one that runs in the background.

A call waits for its command and returns exit code, time and output. With `background`, or when `yield_time_ms` is over,
it returns before the command ends, with a number by which `process` finds the command. A foreground command has no
input. A command that takes too long is ended with all its children, and so is one whose call is cancelled.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection
from typing import Annotated, Final, Literal

import anyio
import msgspec
from msgspec import Meta

from commonplace.agent.tools import memory_reads, shell_environment, shell_script
from commonplace.agent.tools.arguments import Renamed, bad_arguments, decode, schema
from commonplace.agent.tools.command_output import CommandOutput
from commonplace.agent.tools.processes import Launch, Processes, RunningCommand
from commonplace.agent.tools.registry import (
    Action,
    Tool,
    ToolContext,
    ToolDefinition,
    ToolInvocation,
    ToolOutput,
    description,
    failed,
)
from commonplace.context.truncate import TruncationPolicy
from commonplace.errors import ToolError
from commonplace.patterns import regex

DEFAULT_SECONDS: Final = 120.0
"""How long a command may run by default: long enough for a test suite, short enough to notice a hang."""
MOST_SECONDS: Final = 3_600.0
"""The longest time that a foreground command can ask for."""
TIMED_OUT: Final = 124
"""The exit code of a command that took too long, as the program `timeout` has it."""
_FIRST_WAIT: Final = 1.0
"""How many seconds a call with `background` waits for the first output."""
_QUIET: Final = 0.2
"""Output counts as complete for now when nothing follows for so many seconds."""
_INTERRUPT: Final = "\x03"
_PATCHERS: Final = frozenset({"apply_patch", "applypatch"})
_PATCH: Final = regex(r"apply_?patch\s+<<-?\s*(['\"]?)(?P<mark>\w+)\1\n(?P<text>.*)\n(?P=mark)", re.DOTALL)


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
        withheld: Collection[str] = (),
        seconds: float = DEFAULT_SECONDS,
        patch: Tool | None = None,
    ) -> None:
        self._processes = processes
        self._patch = patch
        """Runs the patches that models give to a shell command `apply_patch`, which does not exist."""
        self._withheld = frozenset(withheld)
        self._seconds = seconds
        self.definition = ToolDefinition("shell", "function", description("shell"), schema(ShellArguments))

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Run a command."""
        if self._patch is not None and (inner := self.inner_call(call)) is not None:
            return await self._patch.run(inner, context)
        wanted = decode(call.arguments, ShellArguments, _SHELL_NAMES)
        launch = self._launch(wanted, context)
        action = Action(
            call.id,
            "run",
            launch.cwd,
            launch.command,
            escalated=wanted.escalate in (True, "require_escalated"),
            reason=wanted.justification,
        )
        if (why := await context.approve(action)) is not None:
            return failed(f"The command was not run: {why}")
        running = self._processes.start(context.confine(launch))
        context.command_output = running.output
        running.item_id, running.listener = call.id, context.emit
        begin = context.now()
        try:
            await _wait(running, wanted)
        except BaseException:
            running.listener = None
            await running.end()
            self._processes.forget(running)
            raise
        output = _output(running, context, begin, wanted.max_output_tokens)
        if output.process is None:
            self._processes.forget(running)
        output.memory_reads = memory_reads.reads_of(
            wanted.command, cwd=str(launch.cwd), home=str(context.home), user=context.environment.get("HOME", "")
        )
        return output

    def inner_call(self, call: ToolInvocation) -> ToolInvocation | None:
        """Return the call of `apply_patch` that a command line is; None for other command lines."""
        try:
            wanted = decode(call.arguments, ShellArguments, _SHELL_NAMES)
        except ToolError:
            return None
        text = patch_in(wanted.command) if self._patch is not None else None
        return None if text is None else ToolInvocation(call.id, "apply_patch", text, "custom")

    def _launch(self, wanted: ShellArguments, context: ToolContext) -> Launch:
        given = wanted.command
        words = (shell_script.shell_path(), "-c", given) if isinstance(given, str) else tuple(given)
        if any("\0" in word for word in words) or not words[0] or (isinstance(given, str) and not given.strip()):
            raise bad_arguments("the command is empty or holds a NUL character")
        folder = context.cwd / wanted.workdir if wanted.workdir else context.cwd
        outlives = wanted.background or wanted.yield_time_ms is not None
        given_seconds = None if wanted.timeout_ms is None else wanted.timeout_ms / 1000
        seconds = given_seconds if outlives else min(given_seconds or self._seconds, MOST_SECONDS)
        environment = shell_environment.command_variables(context.environment, self._withheld)
        return Launch(words, folder, environment, wanted.background, seconds)


class Process:
    """Reads from, writes to or ends processes in the background."""

    aliases = ("write_stdin",)
    parallel = True
    mutates = True

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.definition = ToolDefinition("process", "function", description("process"), schema(ProcessArguments))

    def may_change(self, call: ToolInvocation) -> bool:
        """Return whether a call gives a process something to work on; waiting for it and ending it change nothing."""
        try:
            wanted = decode(call.arguments, ProcessArguments, _PROCESS_NAMES)
        except ToolError:  # it will not run
            return False
        return wanted.close_input or wanted.input not in ("", _INTERRUPT)

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Write to a process, wait for it, or end it."""
        wanted = decode(call.arguments, ProcessArguments, _PROCESS_NAMES)
        running = self._processes.find(wanted.id)
        begin = context.now()
        context.tell_input(running.item_id, running.id, wanted.input)
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
        output = _output(running, context, begin, wanted.max_output_tokens)
        if output.process is None:
            self._processes.forget(running)
        return output


async def _wait(running: RunningCommand, wanted: ShellArguments) -> None:
    if wanted.yield_time_ms is not None:
        with anyio.move_on_after(wanted.yield_time_ms / 1000):
            await running.ended.wait()
    elif wanted.background:
        with anyio.move_on_after(_FIRST_WAIT):
            await running.settled(_QUIET)
    else:
        await running.ended.wait()


def _output(running: RunningCommand, context: ToolContext, begin: float, tokens: int | None) -> ToolOutput:
    """Return the output of a call about a process; what it printed until now is not returned again."""
    seconds = max(context.now() - begin, 0.0)
    output = running.take()
    policy = _smaller(context.policy, tokens)
    if not running.ended.is_set():
        report = f"Wall time: {seconds:.1f} seconds\nOutput:\n{output.cut(policy)}"
        text = _with(report, f"still running as process {running.id}")
        return ToolOutput(content=text, seconds=seconds, command_output=output, process=running.id)
    code = exit_code(running)
    text = output.report(code, seconds, policy)
    for note in _notes(running, output):
        text = _with(text, note)
    return ToolOutput(content=text, ok=code == 0, exit_code=code, seconds=seconds, command_output=output)


def exit_code(running: RunningCommand) -> int:
    """Return the exit code of a command that has ended."""
    code = TIMED_OUT if running.timed_out else running.code
    assert code is not None
    return code


def _notes(running: RunningCommand, output: CommandOutput) -> list[str]:
    """Return what else a model should know about a command that has ended."""
    notes: list[str] = []
    if running.timed_out:
        notes.append(f"ended after {running.launch.seconds:g} seconds, with all its children; it took too long")
    elif running.left:
        notes.append(f"{running.left} processes that it left behind were ended; use `background` to keep them")
    if running.problem:
        notes.append(running.problem)
    if output.missing:
        notes.append(f"{output.missing} bytes in the middle of the output were not kept")
    return notes


def _with(text: str, note: str) -> str:
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{note}]"


def _smaller(policy: TruncationPolicy, tokens: int | None) -> TruncationPolicy:
    wished = policy if tokens is None else policy.with_token_limit(tokens)
    return wished if wished.budget < policy.budget else policy


def patch_in(command: str | list[str]) -> str | None:
    """Return the patch of a command that only calls `apply_patch`; None for other commands."""
    script = shell_script.script_of(command)
    if not isinstance(script, str):
        return script[1] if len(script) == 2 and script[0] in _PATCHERS else None
    found = _PATCH.fullmatch(script.strip())
    return found["text"] if found else None
