"""What a person sees of tool calls: a command line, changes to files, a plan, or just that a tool was called. Pure."""

from __future__ import annotations

import msgspec

from commonplace.agent import events
from commonplace.agent.tools.plan import Plan
from commonplace.agent.tools.registry import Action, Call, Output


def begun(action: Action) -> events.Item:
    """Return what is about to happen."""
    if action.kind == "call":
        _, server, tool, *_ = action.command
        return events.McpToolCall(id=action.call_id, server=server, tool=tool, arguments=action.arguments)
    if action.kind == "run":
        return events.CommandExecution(id=action.call_id, command=action.command, cwd=str(action.cwd))
    edits = tuple(events.Change(each.path, each.kind, each.to) for each in action.edits)
    return events.FileChange(id=action.call_id, changes=edits)


def called(call: Call) -> events.ToolCall:
    """Return a call of which nothing else is shown."""
    return events.ToolCall(id=call.id, tool=call.key, arguments=call.arguments)


def ended(item: events.Item, output: Output, *, declined: bool = False) -> events.Item:
    """Return what came of it."""
    status: events.Status = "declined" if declined else "completed" if output.ok else "failed"
    match item:
        case events.CommandExecution():
            return msgspec.structs.replace(
                item,
                output=output.whole.text() if output.whole is not None else "",
                exit_code=output.exit_code,
                seconds=output.seconds,
                process=output.process,
                status=status,
            )
        case events.FileChange():
            return msgspec.structs.replace(item, status=status)
        case events.McpToolCall():
            return _of_server(item, output, status)
        case events.ToolCall():
            return msgspec.structs.replace(item, output=_told(output), status=status)
        case _:
            return item


def _of_server(item: events.McpToolCall, output: Output, status: events.Status) -> events.McpToolCall:
    from commonplace.agent.servers.results import McpResult  # most sessions have no servers

    if isinstance(output.detail, McpResult):
        return msgspec.structs.replace(item, result=output.detail.result, error=output.detail.error, status=status)
    return msgspec.structs.replace(item, error=None if output.ok else _told(output), status=status)


def _told(output: Output) -> str:
    if output.whole is not None:
        return output.whole.text()
    if isinstance(output.content, str):
        return output.content
    return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in output.content)


def plan(output: Output, before: events.Plan | None, turn_id: str) -> events.Plan | None:
    """Return the plan that a call gave, if it gave one."""
    if not isinstance(output.detail, Plan):
        return None
    steps = tuple(events.Step(step.step, step.status) for step in output.detail.plan)
    return events.Plan(id=before.id if before is not None else f"plan_{turn_id}", steps=steps)
