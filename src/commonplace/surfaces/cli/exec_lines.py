"""The events of a turn as the JSON lines of `exec --json`. Pure: events in, lines out.

Items get ids of their own, `item_0`, `item_1`, …, when they are first seen. Deltas, user messages and pictures are not
told; a plan is told as a to-do list that is completed with its turn; tools of our own are told as those of a server
called `commonplace`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from commonplace.agent import events
from commonplace.context.usage import TokenInfo, TokenUsage

Line = dict[str, Any]
OWN_SERVER: Final = "commonplace"
_SILENT: Final = frozenset({"view_image", "update_plan"})


class EventLines:
    """Turns the events of one run into lines."""

    def __init__(self) -> None:
        self._count = 0
        self._ids: dict[str, str] = {}
        """Of the items that are going on; a server may use an id again for another one."""
        self._told: dict[str, Line] = {}
        """Items that were started and are not completed."""

    def opening(self, thread_id: str) -> Line:
        """Return the first line."""
        return {"type": "thread.started", "thread_id": thread_id}

    def of(self, event: events.Event) -> Iterator[Line]:
        """Yield the lines of an event."""
        match event:
            case events.TurnStarted():
                yield {"type": "turn.started"}
            case events.ItemStarted() | events.ItemUpdated() | events.ItemCompleted():
                yield from self._item(event)
            case events.Warned():
                yield {
                    "type": "item.completed",
                    "item": {"id": self._next(), "type": "error", "message": event.message},
                }
            case events.Retrying():
                yield {"type": "error", "message": f"Reconnecting... {event.attempt}/{event.limit} ({event.reason})"}
            case events.TurnCompleted() | events.TurnFailed() | events.TurnAborted():
                yield from self._end(event)
            case _:
                pass

    def _item(self, event: events.ItemStarted | events.ItemUpdated | events.ItemCompleted) -> Iterator[Line]:
        kind = str(event.__struct_config__.tag).removeprefix("item_")
        if kind == "updated" and not isinstance(event.item, events.Plan):
            self._told.pop(event.item.id, None)  # it goes on in the background: told when it ends, as in Codex
            return
        fields = _fields(event.item)
        if fields is None or (kind != "completed" and isinstance(event.item, events.AgentMessage | events.Reasoning)):
            return
        name = event.item.id
        if name not in self._ids:
            self._ids[name] = self._next()
        line = {"id": self._ids[name], **fields}
        if kind == "completed":
            self._told.pop(name, None)
            del self._ids[name]
        else:
            self._told[name] = line
        yield {"type": f"item.{kind}", "item": line}

    def _end(self, event: events.End) -> Iterator[Line]:
        for line in self._told.values():
            yield {"type": "item.completed", "item": line}
        self._told.clear()
        self._ids.clear()
        if isinstance(event, events.TurnCompleted):
            yield {"type": "turn.completed", "usage": usage(event.info)}
        elif isinstance(event, events.TurnFailed):
            message = event.error.sentence()
            yield {"type": "error", "message": message}
            yield {"type": "turn.failed", "error": {"message": message}}

    def _next(self) -> str:
        self._count += 1
        return f"item_{self._count - 1}"


def usage(info: TokenInfo | None) -> dict[str, int]:
    """Return what the thread used so far."""
    total = info.total_token_usage if info is not None else TokenUsage()
    return {
        "input_tokens": total.input_tokens,
        "cached_input_tokens": total.cached_input_tokens,
        "cache_write_input_tokens": total.cache_write_input_tokens,
        "output_tokens": total.output_tokens,
        "reasoning_output_tokens": total.reasoning_output_tokens,
    }


def _fields(item: events.Item) -> Line | None:
    """Return what is told of an item; None if nothing is."""
    match item:
        case events.AgentMessage():
            return {"type": "agent_message", "text": item.text}
        case events.Reasoning():
            text = "\n".join(item.summary or item.text)
            return {"type": "reasoning", "text": text} if text.strip() else None
        case events.CommandExecution():
            return {
                "type": "command_execution",
                "command": shlex.join(item.command),
                "aggregated_output": item.output,
                "exit_code": item.exit_code,
                "status": item.status,
            }
        case events.FileChange():
            status = "failed" if item.status == "declined" else item.status
            changes = [{"path": each.path, "kind": each.kind} for each in item.changes]
            return {"type": "file_change", "changes": changes, "status": status}
        case events.McpToolCall():
            return _mcp(item)
        case events.ToolCall():
            return None if item.tool in _SILENT else _own(item)
        case events.AgentCall():
            return _agent_call(item)
        case events.WebSearch():
            return {"type": "web_search", "query": item.query, "action": item.action or {"type": "other"}}
        case events.Plan():
            steps = [{"text": step.text, "completed": step.status == "completed"} for step in item.steps]
            return {"type": "todo_list", "items": steps}
        case events.UserMessage() | events.ExternalMessage() | events.ProposedPlan() | events.ContextCompaction():
            return None


def _agent_call(item: events.AgentCall) -> Line:
    states = {name: _agent_state(state) for name, state in item.states.items()}
    return {
        "type": "collab_tool_call",
        "tool": "wait" if item.tool == "resume_agent" else item.tool,  # as the consumers of these lines know it
        "sender_thread_id": item.sender,
        "receiver_thread_ids": [name for name, _ in item.receivers],
        "prompt": item.prompt,
        "agents_states": states,
        "status": item.status,
    }


def _agent_state(state: Any) -> Line:
    if isinstance(state, str):
        return {"status": state, "message": None}
    ((kind, message),) = state.items()
    return {"status": kind, "message": message}


def _own(item: events.ToolCall) -> Line:
    content = [] if item.output is None else [{"type": "text", "text": item.output}]
    failed = item.status in ("failed", "declined")
    result = None if item.output is None or failed else {"content": content, "structured_content": None}
    called = events.McpToolCall(id=item.id, server=OWN_SERVER, tool=item.tool, result=result, status=item.status)
    error = item.output if failed else None
    return _mcp(msgspec.structs.replace(called, arguments=_arguments(item.arguments), error=error))


def _arguments(text: str) -> Any:
    """Return what a model wrote as arguments: JSON if it is, else its words."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _mcp(call: events.McpToolCall) -> Line:
    return {
        "type": "mcp_tool_call",
        "server": call.server,
        "tool": call.tool,
        "arguments": call.arguments,
        "result": call.result,
        "error": None if call.error is None else {"message": call.error},
        "status": "failed" if call.status == "declined" else call.status,
    }
