"""What a tool is, and how a call becomes an answer.

A tool is offered by its definition and run with a call and a context. What a model wrote wrongly, what a person refused
and what failed become outputs that say so: a call of `Registry.run` returns, whatever it is given. Two things end it
otherwise: cancelling the call's own scope, which still gives an output with what was printed until then, and cancelling
the task around it, which goes on to the caller after the tool has cleaned up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import anyio
import msgspec

from commonplace.agent.tools.printed import Printed
from commonplace.agent.tools.processes import Launch
from commonplace.agent.tools.remembered import Retrieved
from commonplace.context.truncate import OUTPUT_POLICY, Policy
from commonplace.errors import CommonplaceError, ToolError
from commonplace.models.tool_names import flat

Kind = Literal["function", "custom"]
Content = dict[str, Any]
"""A content item of a tool's output: `input_text` or `input_image`, as it is sent."""
INPUT: Final = "input"
"""The field that carries the text of a custom tool where an API has only functions."""


class Definition(msgspec.Struct, frozen=True):
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
        """What it is called among all tools."""
        return flat(self.name, self.namespace)


class Call(msgspec.Struct, frozen=True):
    """A call, as the model wrote it."""

    id: str
    name: str
    arguments: str
    kind: Kind = "function"
    namespace: str | None = None

    @property
    def key(self) -> str:
        """What the tool is called among all tools."""
        return flat(self.name, self.namespace) if self.namespace else self.name


class Edit(msgspec.Struct, frozen=True):
    """A file that is to change."""

    path: str
    kind: Literal["add", "update", "delete"]
    to: str | None = None


class Action(msgspec.Struct, frozen=True):
    """What a tool is about to do, for whoever has to allow it."""

    call_id: str
    tool: str
    kind: Literal["run", "change", "call"]
    """A command, a change of files, or a tool that is somebody else's."""
    cwd: Path
    command: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """The files that would change."""
    edits: tuple[Edit, ...] = ()
    """How they would change."""
    escalated: bool = False
    """It asks to run outside the sandbox."""
    arguments: Any = None
    """Of a call."""
    read_only: bool = False
    """A call that says it changes nothing."""
    reason: str | None = None
    """Why, in the model's words."""


async def allow(action: Action) -> str | None:
    """Refuse nothing."""


def unconfined(launch: Launch) -> Launch:
    """Change nothing."""
    return launch


def _no_listener(_: str) -> None:
    """Nobody listens."""


class Context(msgspec.Struct, kw_only=True):
    """What one call has around it. Each call gets its own."""

    cwd: Path
    home: Path
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))
    """The variables that commands inherit; `surroundings` takes secrets out."""
    ledger: Path | None = None
    """The thread's own file; an ephemeral one has none."""
    roots: tuple[Path, ...] = ()
    """Folders besides `cwd` in which files may be changed."""
    policy: Policy = OUTPUT_POLICY
    now: Callable[[], float] = time.monotonic
    emit: Callable[[str], None] = _no_listener
    """Gets what a command prints while it runs; called in the event loop."""
    approve: Callable[[Action], Awaitable[str | None]] = allow
    """Returns None to go on, or why not."""
    confine: Callable[[Launch], Launch] = unconfined
    """Makes of a command that was approved what is started for it."""
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    """Cancelling it ends this call alone."""
    printed: Printed | None = None
    """What the command of this call has printed so far; set by the tool."""


class Output(msgspec.Struct, kw_only=True):
    """The answer to a call."""

    content: str | list[Content]
    """For the model, already cut to the policy."""
    ok: bool = True
    exit_code: int | None = None
    seconds: float | None = None
    whole: Printed | None = None
    """All that a command printed, for the ledger."""
    retrieved: tuple[Retrieved, ...] = ()
    """What was read or searched of the memory."""
    process: int | None = None
    """The process that goes on in the background."""
    interrupted: bool = False
    detail: msgspec.Struct | None = None
    """What the tool did, for an event: a plan, or the changes of a patch."""


class Tool(Protocol):
    """Something that a model can call."""

    @property
    def definition(self) -> Definition: ...

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

    async def run(self, call: Call, context: Context) -> Output:
        """Do what was asked (raises ToolError: it cannot be done)."""
        ...


def asks(tool: Tool) -> bool:
    """Say whether a tool has its actions approved itself, one by one; most do not."""
    return bool(getattr(tool, "asks", False))


def is_external(tool: Tool) -> bool:
    """Say whether what a tool gives was written elsewhere: on the web, by a server."""
    return bool(getattr(tool, "external", False))


class Registry:
    """The tools of a session, in the order in which they are offered."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        self._names: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def replace(self, tools: Iterable[Tool], prefix: str) -> None:
        """Offer these tools in place of all whose names begin so (raises ValueError: a name is taken)."""
        self._tools = {name: tool for name, tool in self._tools.items() if not name.startswith(prefix)}
        for tool in tools:
            self.add(tool)
        self._names = {alias: each for each in self._tools.values() for alias in each.aliases} | self._tools

    def add(self, tool: Tool) -> None:
        """Offer one more tool (raises ValueError: the name is taken)."""
        name = tool.definition.key
        if name in self._tools:
            raise ValueError(f"there are two tools named {name}")
        self._tools[name] = tool
        self._names = {alias: each for each in self._tools.values() for alias in each.aliases} | self._tools

    def definitions(self, *, custom: bool = True) -> tuple[Definition, ...]:
        """Return how the tools are offered, in a stable order; without `custom`, every one as a function."""
        found = (tool.definition for tool in self._tools.values())
        return tuple(each if custom else msgspec.structs.replace(each, kind="function") for each in found)

    def find(self, name: str) -> Tool | None:
        """Return the tool that a name stands for."""
        return self._names.get(name)

    def is_parallel(self, call: Call) -> bool:
        """Say whether a call may run beside others; one that cannot run at all may."""
        tool = self.find(call.key)
        return tool is None or tool.parallel

    async def run(self, call: Call, context: Context) -> Output:
        """Run a call and return its answer. Never raises, but for the cancelling of the task around it."""
        begin = context.now()
        output: Output | None = None
        with context.scope:
            output = await self._run(call, context)
        if output is None:
            output = _interrupted(context)
        if output.seconds is None:
            output.seconds = max(context.now() - begin, 0.0)
        return output

    async def _run(self, call: Call, context: Context) -> Output:
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


def failed(text: str) -> Output:
    """Return the answer to a call that did not do what was asked."""
    return Output(content=text.encode("utf-8", "replace").decode(), ok=False)


def text_of(call: Call) -> str:
    """Return the text that a custom tool was called with, in either of its forms (raises ToolError: there is none)."""
    if call.kind == "custom" or not call.arguments.lstrip().startswith("{"):
        return call.arguments
    from commonplace.agent.tools import arguments

    given = arguments.decode(call.arguments, FreeText, {"patch": INPUT, "text": INPUT})
    return given.input


class FreeText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a custom tool takes where an API has only functions."""

    input: str


def item(call: Call, output: Output) -> dict[str, Any]:
    """Return the response item that answers a call."""
    kind = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
    return {"type": kind, "call_id": call.id, "output": output.content}


def _interrupted(context: Context) -> Output:
    printed = context.printed
    text = "aborted"
    if printed is not None and printed.size:
        text = f"aborted; it had printed:\n{printed.cut(context.policy)}"
    return Output(content=text, ok=False, whole=printed, interrupted=True)


def _shown(name: str) -> str:
    plain = name.encode("utf-8", "replace").decode()
    return repr(plain if len(plain) <= 100 else f"{plain[:100]}…")
