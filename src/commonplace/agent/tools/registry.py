"""What a tool is, and how a call of the model becomes an output.

A tool is offered by its definition and run with a call and a context. `Registry.run` always returns an output: bad
arguments, a refusal and a failure become outputs that say so. Cancelling the call's own scope gives an output with what
was printed until then. Only when the task around it is cancelled does the cancellation reach the caller, after the tool
has cleaned up.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable

import anyio
import msgspec

from commonplace.agent.tools import arguments
from commonplace.agent.tools.command_output import CommandOutput
from commonplace.agent.tools.memory_reads import MemoryRead
from commonplace.agent.tools.processes import Launch
from commonplace.context.truncate import OUTPUT_POLICY, TruncationPolicy
from commonplace.errors import CommonplaceError, ToolError
from commonplace.models.tool_names import flat_name

Kind = Literal["function", "custom"]
Content = dict[str, Any]
"""A content item of a tool's output: `input_text` or `input_image`, as it is sent."""
INPUT: Final = "input"
"""The field that carries the text of a custom tool where an API has only functions."""


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool as it is offered to a model."""

    name: str
    kind: Kind
    description: str
    parameters: dict[str, Any]
    """The JSON schema of its arguments; for a custom tool, of its form as a function."""
    namespace: str | None = None
    """The group that it belongs to."""

    @property
    def key(self) -> str:
        """Its name among all tools, with the namespace."""
        return flat_name(self.name, self.namespace)


@cache
def _descriptions() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("descriptions.toml").read_text("utf-8"))


def description(name: str) -> str:
    """Return the description of a tool for models, from `descriptions.toml`."""
    return _descriptions()[name].strip()


class ToolInvocation(msgspec.Struct, frozen=True):
    """A call, as the model wrote it."""

    id: str
    name: str
    arguments: str
    kind: Kind = "function"
    namespace: str | None = None

    @property
    def key(self) -> str:
        """The tool's name among all tools, with the namespace."""
        return flat_name(self.name, self.namespace) if self.namespace else self.name


class FileEdit(msgspec.Struct, frozen=True):
    """A file that is to change."""

    path: str
    kind: Literal["add", "update", "delete"]
    to: str | None = None
    diff: str = ""
    """The text of a file that is added or deleted, else the difference as a unified diff."""


class Action(msgspec.Struct, frozen=True):
    """What a tool is about to do, for the rules of consent and for the person who is asked."""

    call_id: str
    kind: Literal["run", "change", "call"]
    """A command, a change of files, or a call of a server's tool."""
    cwd: Path
    command: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """The files that would change."""
    edits: tuple[FileEdit, ...] = ()
    """How they would change."""
    escalated: bool = False
    """It asks to run outside the sandbox; of a call: it always needs consent."""
    arguments: Any = None
    """The arguments of a call."""
    read_only: bool = False
    """A call that says it changes nothing."""
    reason: str | None = None
    """Why, in the model's words."""


async def allow_all(action: Action) -> str | None:
    """Allow every action."""


def unconfined(launch: Launch) -> Launch:
    """Run a command as it is."""
    return launch


def _no_listener(_: str) -> None:
    """Ignore the text."""


def _no_input_listener(item_id: str, process: int, text: str) -> None:
    """Ignore the input."""


class ToolContext(msgspec.Struct, kw_only=True):
    """Where and how a call runs. Each call gets its own."""

    cwd: Path
    home: Path
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))
    """The variables that commands inherit; `shell_environment` takes secrets out."""
    ledger: Path | None = None
    """The thread's own file; an ephemeral one has none."""
    roots: tuple[Path, ...] = ()
    """Folders besides `cwd` in which files may be changed."""
    policy: TruncationPolicy = OUTPUT_POLICY
    now: Callable[[], float] = time.monotonic
    emit: Callable[[str], None] = _no_listener
    """Gets what a command prints while it runs; called in the event loop."""
    tell_input: Callable[[str, int, str], None] = _no_input_listener
    """Gets the call that started a process, the process, and the input that it is given; empty for a wait."""
    approve: Callable[[Action], Awaitable[str | None]] = allow_all
    """Returns None to go on, or why not."""
    confine: Callable[[Launch], Launch] = unconfined
    """Wraps a command that was approved so that it runs confined."""
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    """Cancelling it ends this call alone."""
    command_output: CommandOutput | None = None
    """What the command of this call has printed so far; set by the tool."""


class ToolOutput(msgspec.Struct, kw_only=True):
    """The output of a call."""

    content: str | list[Content]
    """What the model gets, already cut to the policy."""
    ok: bool = True
    exit_code: int | None = None
    seconds: float | None = None
    command_output: CommandOutput | None = None
    """All that a command printed, for the ledger."""
    memory_reads: tuple[MemoryRead, ...] = ()
    """The memories that a command read or searched."""
    process: int | None = None
    """The number of the process that goes on in the background."""
    detail: msgspec.Struct | None = None
    """What the tool did, for an event: a plan, or the result of a server's tool."""


class McpResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a server's tool, for an event."""

    content: list[dict[str, Any]] = []
    """The blocks of the result as the protocol has them, within bounds."""
    structured_content: Any = None
    error: str | None = None
    """Why there is no result, or the text of a result that the tool calls an error."""

    @property
    def result(self) -> dict[str, Any] | None:
        """What an event shows as the result."""
        if self.error is not None and not self.content:
            return None
        return {"content": self.content, "structured_content": self.structured_content}


class Tool(Protocol):
    """A tool that a model can call."""

    @property
    def definition(self) -> ToolDefinition: ...

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names that models know it by."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether it is safe to run beside other calls."""
        ...

    @property
    def mutates(self) -> bool:
        """Whether it can change something outside the session."""
        ...

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Run a call (raises ToolError: it cannot be done)."""
        ...


@runtime_checkable
class WrapsCalls(Protocol):
    """A tool whose calls may really be calls of another tool."""

    def inner_call(self, call: ToolInvocation) -> ToolInvocation | None:
        """Return the call that a call really is; None: one of this tool."""
        ...


def asks(tool: Tool) -> bool:
    """Return whether a tool asks for consent itself, action by action; most do not."""
    return bool(getattr(tool, "asks", False))


def may_change(tool: Tool, call: ToolInvocation) -> bool:
    """Return whether a call may change something; a tool whose calls differ has a method that says so of each."""
    own: Callable[[ToolInvocation], bool] | None = getattr(tool, "may_change", None)
    return tool.mutates if own is None else own(call)


def is_external(tool: Tool) -> bool:
    """Return whether a tool's output was written elsewhere: on the web, by a server."""
    return bool(getattr(tool, "external", False))


class Registry:
    """The tools of a session, in the order in which they are offered."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        self._names: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def replace(self, tools: Iterable[Tool], prefix: str) -> None:
        """Offer these tools in place of all whose names begin with a prefix (raises ValueError: a name is taken)."""
        self._tools = {name: tool for name, tool in self._tools.items() if not name.startswith(prefix)}
        for tool in tools:
            self.add(tool)
        self._names = {alias: each for each in self._tools.values() for alias in each.aliases} | self._tools

    def update(self, tools: Iterable[Tool]) -> None:
        """Put tools in the places of those with the same names; those that were not offered are not added."""
        self._tools |= {tool.definition.key: tool for tool in tools if tool.definition.key in self._tools}
        self._names = {alias: each for each in self._tools.values() for alias in each.aliases} | self._tools

    def withdraw(self, *names: str) -> None:
        """Offer the tools of these names no more."""
        self._tools = {name: tool for name, tool in self._tools.items() if name not in names}
        self._names = {alias: each for each in self._tools.values() for alias in each.aliases} | self._tools

    def add(self, tool: Tool) -> None:
        """Offer one more tool (raises ValueError: the name is taken)."""
        name = tool.definition.key
        if name in self._tools:
            raise ValueError(f"there are two tools named {name}")
        self._tools[name] = tool
        self._names = {alias: each for each in self._tools.values() for alias in each.aliases} | self._tools

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return how the tools are offered, in a stable order."""
        return tuple(tool.definition for tool in self._tools.values())

    def find(self, name: str) -> Tool | None:
        """Return the tool of a name or an alias; None if there is none."""
        return self._names.get(name)

    def resolve(self, call: ToolInvocation) -> ToolInvocation:
        """Return a call by the name of the tool that answers it, whatever name the model wrote."""
        tool = self.find(call.key)
        if tool is None:
            return call
        inner = tool.inner_call(call) if isinstance(tool, WrapsCalls) else None
        own = tool.definition
        return inner or msgspec.structs.replace(call, name=own.name, namespace=own.namespace)

    def is_parallel(self, call: ToolInvocation) -> bool:
        """Return whether a call may run beside others; a call of an unknown tool may."""
        tool = self.find(call.key)
        return tool is None or tool.parallel

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        """Run a call and return its output. Raises nothing, except when the task around it is cancelled."""
        begin = context.now()
        output: ToolOutput | None = None
        with context.scope:
            output = await self._run(call, context)
        if output is None:
            output = _interrupted(context)
        if output.seconds is None:
            output.seconds = max(context.now() - begin, 0.0)
        return output

    async def _run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        tool = self.find(call.key)
        if tool is None:
            return failed(f"There is no tool {_shown(call.key)}. Tools: {', '.join(self._tools)}.")
        try:
            return await tool.run(call, context)
        except ToolError as error:
            return failed(f"{tool.definition.name}: {error.sentence()}")
        except CommonplaceError as error:
            return failed(f"{tool.definition.name} failed: {error.sentence()}")
        except Exception as error:  # a tool that breaks must not end the turn
            return failed(f"{tool.definition.name} failed: {type(error).__name__}: {str(error)[:1000]}")


def failed(text: str) -> ToolOutput:
    """Return the output of a call that failed."""
    return ToolOutput(content=text.encode("utf-8", "replace").decode(), ok=False)


def text_of(call: ToolInvocation) -> str:
    """Return the text that a custom tool was called with, in either of its forms (raises ToolError: there is none)."""
    if call.kind == "custom" or not call.arguments.lstrip().startswith("{"):
        return call.arguments
    given = arguments.decode(call.arguments, FreeText, {"patch": INPUT, "text": INPUT})
    return given.input


class FreeText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a custom tool where an API has only functions."""

    input: str


def output_item(call: ToolInvocation, output: ToolOutput) -> dict[str, Any]:
    """Return the response item of a call's output."""
    kind = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
    return {"type": kind, "call_id": call.id, "output": output.content}


def _interrupted(context: ToolContext) -> ToolOutput:
    output = context.command_output
    text = "aborted"
    if output is not None and output.size:
        text = f"aborted; it had printed:\n{output.cut(context.policy)}"
    return ToolOutput(content=text, ok=False, command_output=output)


def _shown(name: str) -> str:
    plain = name.encode("utf-8", "replace").decode()
    return repr(plain if len(plain) <= 100 else f"{plain[:100]}…")
