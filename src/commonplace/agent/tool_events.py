"""Tool calls as events: a command line, changes of files, a plan, or just that a tool was called. Pure."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from commonplace.agent import events
from commonplace.agent.tools.plan import PlanUpdate
from commonplace.agent.tools.processes import RunningCommand
from commonplace.agent.tools.registry import Action, McpResult, ToolInvocation, ToolOutput
from commonplace.agent.tools.shell import exit_code


def started(action: Action) -> events.Item:
    """Return the item of an action that is about to begin."""
    if action.kind == "call":
        _, server, tool, *_ = action.command
        return events.McpToolCall(id=action.call_id, server=server, tool=tool, arguments=action.arguments)
    if action.kind == "run":
        return events.CommandExecution(id=action.call_id, command=action.command, cwd=str(action.cwd))
    edits = tuple(events.Change(each.path, each.kind, each.to, each.diff) for each in action.edits)
    return events.FileChange(id=action.call_id, changes=edits)


@runtime_checkable
class ShowsItsCalls(Protocol):
    """A tool whose calls are shown as items of their own from their beginning."""

    def started(self, call: ToolInvocation) -> events.Item | None:
        """Return the item of a call; None: it is shown as any other call."""
        ...


def tool_call(call: ToolInvocation) -> events.ToolCall:
    """Return the item of a call of which nothing else is shown."""
    return events.ToolCall(id=call.id, tool=call.key, arguments=call.arguments)


def finished(item: events.Item, output: ToolOutput, *, declined: bool = False) -> events.Item:
    """Return an item with the output of its call."""
    status: events.Status = "declined" if declined else "completed" if output.ok else "failed"
    match item:
        case events.CommandExecution() if output.process is not None:
            return msgspec.structs.replace(item, process=output.process)
        case events.CommandExecution():
            return msgspec.structs.replace(
                item,
                output=output.command_output.text() if output.command_output is not None else "",
                exit_code=output.exit_code,
                seconds=output.seconds,
                status=status,
            )
        case events.FileChange():
            return msgspec.structs.replace(item, status=status)
        case events.McpToolCall():
            return _of_server(item, output, status)
        case events.AgentCall():
            return output.detail if isinstance(output.detail, events.AgentCall) else _with_status(item, status)
        case events.ToolCall():
            return msgspec.structs.replace(item, output=_text(output), status=status)
        case _:
            return item


def ended(item: events.CommandExecution, running: RunningCommand, seconds: float) -> events.CommandExecution:
    """Return the item of a command that went on in the background and has ended."""
    code, output = exit_code(running), running.whole or running.output
    return msgspec.structs.replace(
        item,
        output=output.text(),
        exit_code=code,
        seconds=seconds,
        status="completed" if code == 0 else "failed",
    )


def _with_status(item: events.AgentCall, status: events.Status) -> events.AgentCall:
    return msgspec.structs.replace(item, status="failed" if status == "declined" else status)


def _of_server(item: events.McpToolCall, output: ToolOutput, status: events.Status) -> events.McpToolCall:
    if isinstance(output.detail, McpResult):
        return msgspec.structs.replace(item, result=output.detail.result, error=output.detail.error, status=status)
    return msgspec.structs.replace(item, error=None if output.ok else _text(output), status=status)


def _text(output: ToolOutput) -> str:
    if output.command_output is not None:
        return output.command_output.text()
    if isinstance(output.content, str):
        return output.content
    return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in output.content)


def plan(output: ToolOutput, before: events.Plan | None, turn_id: str) -> events.Plan | None:
    """Return the plan that a call made, as a new version of the plan before; None if it made none."""
    if not isinstance(output.detail, PlanUpdate):
        return None
    steps = tuple(events.Step(step.step, step.status) for step in output.detail.plan)
    return events.Plan(id=before.id if before is not None else f"plan_{turn_id}", steps=steps)
