"""Items and events of a session as updates for an editor. Pure.

A live item and a stored one take the same way, through the format in which the ledger keeps it, so that a session that
is loaded shows what it showed while it ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import acp
import msgspec
from acp.helpers import SessionUpdate as HelperUpdate
from acp.helpers import ToolCallContentVariant
from acp.schema import ToolCallLocation, ToolCallStatus, ToolKind, UsageUpdate

from commonplace.agent import events, ledger_lines
from commonplace.agent.tools.shell_script import typed
from commonplace.patterns import regex

Json = dict[str, Any]
SessionUpdate = HelperUpdate | UsageUpdate
_STATUS: Final[dict[str, ToolCallStatus]] = {
    "in_progress": "in_progress",
    "inProgress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "declined": "failed",
}
_AGENT_TOOLS: Final = {
    "spawn_agent": "Start",
    "send_input": "Tell",
    "resume_agent": "Open again",
    "wait": "Wait for",
    "close_agent": "Close",
}
_NO_NEWLINE: Final = "\\"
_STEP: Final = regex(r"\[([x ])\] (.*)")
"""A step of a plan, as the ledger has it."""


class SessionUpdates:
    """Turns the events of a session into updates; what was told in pieces is not told again as a whole."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        """Items of which a piece was told."""

    def of(self, event: events.Event) -> Iterator[SessionUpdate]:
        """Yield what an event tells; questions and ends are no updates."""
        match event:
            case events.TextDelta() | events.PlanDelta():
                self._told.add(event.item_id)
                yield acp.update_agent_message_text(event.text)
            case events.ReasoningDelta():
                self._told.add(event.item_id)
                yield acp.update_agent_thought_text(event.text)
            case events.ItemStarted() | events.ItemUpdated() | events.ItemCompleted():
                yield from self._item(event)
            case events.Warned():
                yield acp.update_agent_thought_text(f"{event.message}\n")
            case events.TokenCount():
                if event.info is not None and event.info.model_context_window:
                    used = event.info.last_token_usage.total_tokens
                    size = event.info.model_context_window
                    yield UsageUpdate(session_update="usage_update", used=max(0, used), size=size)
            case _:
                pass

    def _item(self, event: events.ItemStarted | events.ItemUpdated | events.ItemCompleted) -> Iterator[SessionUpdate]:
        item = event.item
        if isinstance(item, events.Plan):
            if not isinstance(event, events.ItemCompleted):
                yield _plan(item)
        elif isinstance(item, events.UserMessage):
            pass  # the editor shows what it sent
        elif isinstance(item, events.AgentMessage | events.Reasoning | events.ProposedPlan):
            if isinstance(event, events.ItemCompleted) and item.id not in self._told:
                yield from stored(ledger_lines.shown(item))
        elif isinstance(event, events.ItemUpdated):
            call = tool_call(ledger_lines.shown(item))
            if call is not None:  # it goes on in the background, where the editor does not wait for it
                yield finished(msgspec.structs.replace(call, status="completed"))
        else:
            call = tool_call(ledger_lines.shown(item))
            if call is not None and (item.id not in self._told):
                self._told.add(item.id)
                yield started(call)
            elif call is not None:
                yield finished(call)


class ShownCall(msgspec.Struct, frozen=True):
    """A call of a tool, as editors show it."""

    id: str
    title: str
    kind: ToolKind
    status: ToolCallStatus
    content: tuple[ToolCallContentVariant, ...] = ()
    paths: tuple[str, ...] = ()
    given: Any = None
    result: Any = None


def visible(text: str) -> str:
    """Return a title in which no character is unseen, or changes the order of others: such are written as numbers."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{{{ord(char):x}}}" for char in text)


def started(call: ShownCall) -> SessionUpdate:
    """Return the update that shows a call for the first time."""
    return acp.start_tool_call(
        call.id,
        visible(call.title),
        kind=call.kind,
        status=call.status,
        content=call.content,
        locations=_locations(call),
        raw_input=call.given,
        raw_output=call.result,
    )


def finished(call: ShownCall) -> SessionUpdate:
    """Return the update that shows how a call went."""
    return acp.update_tool_call(
        call.id,
        title=visible(call.title),
        status=call.status,
        content=call.content,
        locations=_locations(call),
        raw_output=call.result,
    )


def _locations(call: ShownCall) -> list[ToolCallLocation]:
    return [ToolCallLocation(path=path) for path in call.paths]


def stored(item: Json) -> Iterator[SessionUpdate]:
    """Yield the updates of an item as the ledger has it; none for a damaged one, or one of an unknown kind."""
    try:
        yield from _stored(item)
    except (KeyError, TypeError, ValueError, AttributeError):
        return


def _stored(item: Json) -> Iterator[SessionUpdate]:
    match item["type"]:
        case "UserMessage":
            for part in cast("list[Json]", item["content"]):
                if part.get("type") == "text":
                    yield acp.update_user_message_text(str(part["text"]))
                elif image := _image(str(part.get("image_url") or "")):
                    yield acp.update_user_message(image)
                elif path := part.get("path"):  # a file that a client of the app server named
                    yield acp.update_user_message_text(f"[{part.get('name') or Path(path).name}]({path})")
        case "AgentMessage":
            text = "".join(str(part.get("text", "")) for part in cast("list[Json]", item["content"]))
            if text:
                yield acp.update_agent_message_text(text)
        case "Plan":
            yield _stored_plan(str(item["text"]))
        case "Reasoning":
            if text := "\n".join([*item.get("summary_text", ()), *item.get("raw_content", ())]):
                yield acp.update_agent_thought_text(text)
        case _:
            call = tool_call(item)
            if call is not None:
                yield started(call)


def _stored_plan(text: str) -> SessionUpdate:
    """Return a plan: the steps of the work, or the text that the model proposed."""
    steps = [_STEP.fullmatch(line) for line in text.split("\n")]
    if not all(steps):
        return acp.update_agent_message_text(text)
    return acp.update_plan(
        [acp.plan_entry(step[2], status="completed" if step[1] == "x" else "pending") for step in steps if step]
    )


def _image(url: str) -> Any:
    head, _, data = url.partition(";base64,")
    return acp.image_block(data, head.removeprefix("data:")) if data and head.startswith("data:") else None


def tool_call(item: Json) -> ShownCall | None:
    """Return the call of a tool that an item shows; None if it shows none (raises KeyError: it is damaged)."""
    name = str(item["id"])
    status = _STATUS.get(str(item.get("status")), "completed")
    match item["type"]:
        case "CommandExecution":
            command = [str(word) for word in cast("list[Any]", item["command"])]
            text = typed(command)
            output = item.get("aggregated_output")
            given = {"command": command, "cwd": item.get("cwd")}
            result = None if status == "in_progress" else {"exitCode": item.get("exit_code")}
            return ShownCall(name, text, "execute", status, _text(output), (), given, result)
        case "FileChange":
            changes = cast("dict[str, Json]", item["changes"])
            title = f"Change {', '.join(Path(path).name for path in changes)}"
            diffs = tuple(each for path, change in changes.items() for each in diff(path, change))
            return ShownCall(name, title, "edit", status, diffs, tuple(changes))
        case "McpToolCall":
            result: Json | None = item.get("result") or item.get("error")
            title = f"{item['server']}: {item['tool']}"
            return ShownCall(name, title, "other", status, _results(item), (), item.get("arguments"), result)
        case "DynamicToolCall":
            arguments = item.get("arguments")
            texts = [str(part["text"]) for part in item.get("content_items") or () if "text" in part]
            return ShownCall(name, str(item["tool"]), "other", status, _text("\n".join(texts)), (), arguments)
        case "CollabAgentToolCall":
            return ShownCall(name, _agent_title(item), "other", status, _text("\n".join(_agent_states(item))))
        case "FunctionCallOutput":
            return ShownCall(name, f"{item['name']} says", "other", status, _text(item.get("output")))
        case "WebSearch":
            return ShownCall(name, f"Search the web: {item.get('query') or ''}", "fetch", status)
        case "ContextCompaction":
            return ShownCall(name, "Shorten what the model is shown", "think", status)
        case _:
            return None


def _agent_title(item: Json) -> str:
    agents = cast("list[Json]", item.get("receiver_agents") or [])
    names = ", ".join(str(each.get("agent_nickname") or each["thread_id"]) for each in agents) or "an agent"
    prompt = item.get("prompt")
    return f"{_AGENT_TOOLS[item['tool']]} {names}" + (f": {prompt}" if prompt else "")


def _agent_states(item: Json) -> Iterator[str]:
    """Yield what the agents of a call did and said last."""
    states: Json = item.get("agents_states") or {}
    for state in states.values():
        if isinstance(state, str):
            yield state
        else:
            for kind, message in cast("Json", state).items():
                yield f"{kind}: {message}" if message else kind


def _text(output: Any) -> tuple[ToolCallContentVariant, ...]:
    return (acp.tool_content(acp.text_block(output)),) if isinstance(output, str) and output else ()


def _results(item: Json) -> tuple[ToolCallContentVariant, ...]:
    error: Json | None = item.get("error")
    parts = cast("list[Json]", cast("Json", item.get("result") or {}).get("content") or [])
    texts = [str(part["text"]) for part in parts if part.get("type") == "text"]
    return _text("\n".join([*texts, *([str(error["message"])] if error else [])]))


def diff(path: str, change: Mapping[str, Any]) -> Iterator[ToolCallContentVariant]:
    """Yield a change of a file, each stretch of it as the text before and after."""
    to = str(change.get("move_path") or path)
    match change["type"]:
        case "add":
            yield acp.tool_diff_content(path, str(change["content"]))
        case "delete":
            yield acp.tool_diff_content(path, "", str(change["content"]))
        case _:
            for old, new in stretches(str(change["unified_diff"]).splitlines()):
                yield acp.tool_diff_content(to, new, old)


def stretches(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the text before and after, for each stretch of a unified diff."""
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield "".join(old), "".join(new)
            old, new = [], []
            continue
        sign, text = line[:1], f"{line[1:]}\n"
        if sign == _NO_NEWLINE:
            continue
        if sign != "+":
            old.append(text)
        if sign != "-":
            new.append(text)


def _plan(item: events.Plan) -> SessionUpdate:
    return acp.update_plan([acp.plan_entry(step.text, status=step.status) for step in item.steps])
