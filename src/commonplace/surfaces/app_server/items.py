"""Items of a session as clients see them. Pure: events and ledger items in, shapes out.

A live item and a stored one take the same way, through the format in which the ledger keeps it, so that a client that
reads a thread later finds what it was told while the turn ran.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec

from commonplace.agent import events, ledger_lines
from commonplace.agent.tools.shell_script import typed
from commonplace.patterns import regex
from commonplace.surfaces.app_server import item_shapes as shapes
from commonplace.surfaces.app_server.item_shapes import ItemStatus, ThreadItem

Json = dict[str, Any]
_STATUS: Final[dict[str, ItemStatus]] = {
    "in_progress": "inProgress",
    "inProgress": "inProgress",
    "completed": "completed",
    "failed": "failed",
    "declined": "declined",
}
_ACTIONS: Final = {"search": "search", "open_page": "openPage", "find_in_page": "findInPage"}
_NAMED: Final = regex(r"\[([$@])([^\]\n]+)\]\(([^)\n]+)\)")
"""A skill or a mention, as `inputs` writes it for the model; it is a part of its own."""
_SIGNS: Final = {"$": "skill", "@": "mention"}
_IMAGE: Final = "<image name=[Image #"
_IMAGE_END: Final = "</image>"


def live(item: events.Item) -> ThreadItem:
    """Return an item of a running turn."""
    found = stored(ledger_lines.shown(item))
    assert found is not None
    if isinstance(found, shapes.CommandExecutionItem) and found.status == "inProgress":
        return msgspec.structs.replace(found, aggregated_output=None, duration_ms=None)
    return found


def all_stored(items: Iterable[Json]) -> list[ThreadItem]:
    """Return the items of a stored turn; kinds that clients do not know are left out."""
    return [found for item in items if (found := stored(item)) is not None]


def stored(item: Json) -> ThreadItem | None:
    """Return an item as the ledger has it; None for one that is of no known kind, or damaged."""
    make = _KINDS.get(str(item.get("type")))
    try:
        return None if make is None else make(str(item["id"]), item)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _user(name: str, item: Json) -> ThreadItem:
    return shapes.UserMessageItem(id=name, client_id=item.get("client_id"), content=_input(item["content"]))


def _input(parts: list[Json]) -> list[Json]:
    """Return the parts of an input as a client sends them; texts around a picture are ours, where no client sent it."""
    found: list[Json] = []
    path: str | None = None
    for part in parts:
        if (kept := _CODEX_PARTS.get(str(part.get("type")))) is not None:
            found.append(kept(part))
            continue
        text = part.get("text")
        if isinstance(text, str) and text.startswith(_IMAGE) and text.endswith('">'):
            path = text[:-2].partition(' path="')[2]
        elif isinstance(text, str) and text == _IMAGE_END:
            path = None
        elif isinstance(text, str) and (named := _NAMED.fullmatch(text)) is not None:
            found.append({"type": _SIGNS[named[1]], "name": named[2], "path": named[3]})
        elif isinstance(text, str):
            elements = [_text_element(element) for element in part.get("text_elements") or ()]
            found.append({"type": "text", "text": text, "text_elements": elements})
        elif path is not None:
            found.append({"type": "localImage", "path": path, "detail": part.get("detail")})
        else:
            url = str(part.get("image_url") or part.get("url") or "")
            found.append({"type": "image", "url": url, "detail": part.get("detail")})
    return found


_CODEX_PARTS: Final[dict[str, Callable[[Json], Json]]] = {
    "local_image": lambda part: {"type": "localImage", "path": part["path"], "detail": part.get("detail")},
    "audio": lambda part: {"type": "audio", "url": part["audio_url"]},
    "local_audio": lambda part: {"type": "localAudio", "path": part["path"]},
    "skill": lambda part: {"type": "skill", "name": part["name"], "path": part["path"]},
    "mention": lambda part: {"type": "mention", "name": part["name"], "path": part["path"]},
}
"""The parts of an input that are told apart by their type alone, from their form in the ledger."""


def _text_element(element: Json) -> Json:
    stretch: Json = element.get("byte_range") or {}
    shown = {"start": stretch.get("start", 0), "end": stretch.get("end", 0)}
    return {"byteRange": shown, "placeholder": element.get("placeholder")}


def _agent(name: str, item: Json) -> ThreadItem:
    text = "".join(str(part.get("text", "")) for part in item["content"])
    return shapes.AgentMessageItem(
        id=name, text=text, phase=item.get("phase"), memory_citation=_citation(item.get("memory_citation"))
    )


def _citation(found: Json | None) -> shapes.MemoryCitationShape | None:
    if not isinstance(found, dict):
        return None
    return shapes.MemoryCitationShape(entries=found["entries"], thread_ids=found.get("rolloutIds") or [])


def _reasoning(name: str, item: Json) -> ThreadItem:
    return shapes.ReasoningItem(id=name, summary=item.get("summary_text") or [], content=item.get("raw_content") or [])


def command_text(command: Iterable[str]) -> str:
    """Return a command line as a person reads it."""
    return shlex.join(command)


def actions(command: list[str]) -> list[Json]:
    """Return what a command does, as far as that is told: its text."""
    return [{"type": "unknown", "command": typed(command)}]


def _command(name: str, item: Json) -> ThreadItem:
    command: list[str] = item["command"]
    duration: Json = item.get("duration") or {}
    process = item.get("process_id")
    return shapes.CommandExecutionItem(
        id=name,
        command=command_text(command),
        cwd=str(item.get("cwd", "")),
        process_id=process,
        source="agent" if process is None else "unifiedExecStartup",
        status=_STATUS[item["status"]],
        command_actions=actions(command),
        aggregated_output=None if item["status"] == "declined" else item.get("aggregated_output"),
        exit_code=item.get("exit_code"),
        duration_ms=int(duration.get("secs", 0) * 1000 + duration.get("nanos", 0) / 1e6),
    )


def _changes(name: str, item: Json) -> ThreadItem:
    changes = [_change(path, change) for path, change in cast("dict[str, Json]", item["changes"]).items()]
    return shapes.FileChangeItem(id=name, changes=changes, status=_STATUS[item["status"]])


def _change(path: str, change: Json) -> Json:
    kind: Json = {"type": change["type"]}
    if change["type"] == "update":
        kind["move_path"] = change.get("move_path")
    return {"path": path, "kind": kind, "diff": change.get("unified_diff") or change.get("content") or ""}


def _settled(status: str) -> Any:
    """Return the status of a call, which cannot be declined."""
    return "failed" if status == "declined" else _STATUS[status]


def _server_tool(name: str, item: Json) -> ThreadItem:
    result: Json | None = item.get("result")
    return shapes.McpToolCallItem(
        id=name,
        server=item["server"],
        tool=item["tool"],
        status=_settled(item["status"]),
        arguments=item.get("arguments"),
        result=None if result is None else {"content": [], **result},
        error=item.get("error"),
    )


def _tool(name: str, item: Json) -> ThreadItem:
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError):
            arguments = {"input": arguments}
    status = _settled(item["status"])
    success = None if status == "inProgress" else bool(item.get("success"))
    return shapes.DynamicToolCallItem(
        id=name,
        tool=item["tool"],
        arguments=arguments,
        status=status,
        content_items=item.get("content_items"),
        success=success,
    )


_AGENT_TOOLS: Final[dict[str, Any]] = {
    "spawn_agent": "spawnAgent",
    "send_input": "sendInput",
    "resume_agent": "resumeAgent",
    "wait": "wait",
    "close_agent": "closeAgent",
}
_AGENT_STATES: Final[dict[str, Any]] = {
    "pending_init": "pendingInit",
    "running": "running",
    "interrupted": "interrupted",
    "completed": "completed",
    "errored": "errored",
    "shutdown": "shutdown",
    "not_found": "notFound",
}


def _agent_call(name: str, item: Json) -> ThreadItem:
    states: Json = item.get("agents_states") or {}
    return shapes.CollabAgentToolCallItem(
        id=name,
        tool=_AGENT_TOOLS[item["tool"]],
        status=_settled(item["status"]),
        sender_thread_id=item["sender_thread_id"],
        receiver_thread_ids=item.get("receiver_thread_ids") or [],
        prompt=item.get("prompt"),
        model=item.get("model"),
        reasoning_effort=item.get("reasoning_effort"),
        agents_states={key: _agent_state(state) for key, state in states.items()},
    )


def _agent_state(state: str | Json) -> shapes.CollabAgentState:
    """Return a status, which has a message if it is a table."""
    if isinstance(state, str):
        return shapes.CollabAgentState(status=_AGENT_STATES[state])
    ((kind, message),) = state.items()
    return shapes.CollabAgentState(status=_AGENT_STATES[kind], message=message)


def _activity(name: str, item: Json) -> ThreadItem:
    kind: Any = item["kind"]
    return shapes.SubAgentActivityItem(
        id=name, kind=kind, agent_thread_id=item["agent_thread_id"], agent_path=str(item.get("agent_path") or "")
    )


def _search(name: str, item: Json) -> ThreadItem:
    action: Json | None = item.get("action")
    if action is not None:
        action = {**action, "type": _ACTIONS.get(str(action.get("type")), "other")}
    return shapes.WebSearchItem(id=name, query=str(item.get("query") or ""), action=action)


_KINDS: Final[dict[str, Callable[[str, Json], ThreadItem]]] = {
    "UserMessage": _user,
    "AgentMessage": _agent,
    "Plan": lambda name, item: shapes.PlanItem(id=name, text=item["text"]),
    "Reasoning": _reasoning,
    "CommandExecution": _command,
    "FileChange": _changes,
    "McpToolCall": _server_tool,
    "DynamicToolCall": _tool,
    "FunctionCallOutput": lambda name, item: shapes.FunctionCallOutputItem(
        id=name, name=str(item["name"]), namespace=item.get("namespace"), output=item["output"]
    ),
    "CollabAgentToolCall": _agent_call,
    "SubAgentActivity": _activity,
    "WebSearch": _search,
    "ContextCompaction": lambda name, item: shapes.ContextCompactionItem(id=name),
}
