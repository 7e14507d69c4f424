"""The payloads of the lines that a session writes into its ledger, in the format of Codex 0.166. Pure.

A thread is written in the *paginated* mode: items as the model sees them (`response_item`), and beside them items as a
person saw them (`item_completed`), with the whole output of commands.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from commonplace.agent import events
from commonplace.agent.profile import Profile
from commonplace.agent.tools.shell_script import typed
from commonplace.context.sections import Collaboration
from commonplace.context.usage import TokenInfo
from commonplace.models.base import Limit
from commonplace.protocol.ids import wire_time
from commonplace.protocol.rollout import GitInfo
from commonplace.version import __version__

ABORTED: Final = (
    "<turn_aborted>\nThe person stopped this turn on purpose. Commands that were running were ended and may have done "
    "part of their work; look at the present state before going on from there.\n</turn_aborted>"
)


def session_meta(
    profile: Profile, thread_id: str, window_id: str, now: datetime, git: GitInfo | None = None
) -> dict[str, Any]:
    """Return the payload of the first line of a thread."""
    meta: dict[str, Any] = {
        "session_id": thread_id,
        "id": thread_id,
        "timestamp": wire_time(now),
        "cwd": str(profile.cwd),
        "runtime_workspace_roots": [str(profile.cwd), *map(str, profile.roots)],
        "originator": profile.originator,
        "cli_version": __version__,
        "source": profile.source,
        "thread_source": profile.thread_source,
        "model_provider": profile.choice.name,
        "base_instructions": {
            "text": profile.base,
            "provenance": {"type": "model", "model": profile.choice.slug},
        },
        "history_mode": "paginated",
        "context_window": {"window_id": window_id},
    }
    if profile.memory_mode == "disabled":
        meta["memory_mode"] = "disabled"
    if git is not None:
        meta["git"] = msgspec.to_builtins(git)
    return meta if profile.agent is None else meta | profile.agent.meta()


def turn_context(profile: Profile, turn_id: str, now: datetime, sandbox_policy: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of a `turn_context` line: the settings of a turn."""
    mode = Collaboration(profile.choice.slug, profile.mode, profile.mode_words)
    fields: dict[str, Any] = {
        "turn_id": turn_id,
        "root_turn_id": turn_id,
        "cwd": str(profile.cwd),
        "workspace_roots": [str(profile.cwd), *map(str, profile.roots)],
        "current_date": now.date().isoformat(),
        "timezone": profile.timezone,
        "approval_policy": profile.approval_policy,
        "approvals_reviewer": "user",
        "sandbox_policy": sandbox_policy,
        "model": profile.choice.slug,
        "personality": profile.personality,
        "collaboration_mode": mode.setting(profile.effective_effort),
        "effort": profile.effective_effort,
        "summary": "auto",
    }
    return {key: value for key, value in fields.items() if value is not None}


def turn_started(turn_id: str, now: datetime, window: int | None, mode: str) -> dict[str, Any]:
    """Return the event with which a turn begins."""
    return {
        "type": "task_started",
        "turn_id": turn_id,
        "root_turn_id": turn_id,
        "started_at": int(now.timestamp()),
        "model_context_window": window,
        "collaboration_mode_kind": mode,
    }


class Timing(msgspec.Struct, frozen=True):
    """When a turn began and ended."""

    began: datetime
    ended: datetime
    seconds: float
    first_token: float | None = None

    def fields(self) -> dict[str, Any]:
        """Return the times as fields of an event."""
        found: dict[str, Any] = {
            "started_at": int(self.began.timestamp()),
            "completed_at": int(self.ended.timestamp()),
            "duration_ms": round(self.seconds * 1000),
        }
        if self.first_token is not None:
            found["time_to_first_token_ms"] = round(self.first_token * 1000)
        return found


def turn_ended(end: events.End, timing: Timing) -> dict[str, Any]:
    """Return the event with which a turn ends."""
    turn: dict[str, Any] = {"root_turn_id": end.turn_id, "turn_id": end.turn_id}
    match end:
        case events.TurnAborted():
            return {"type": "turn_aborted", **turn, "reason": end.reason, **timing.fields()}
        case events.TurnCompleted():
            return {"type": "task_complete", **turn, "last_agent_message": end.message, **timing.fields()}
        case events.TurnFailed():
            error = {"message": end.error.sentence(), "code": end.error.code}
            return {"type": "task_complete", **turn, "last_agent_message": None, "error": error, **timing.fields()}


def token_count(info: TokenInfo | None, limits: tuple[Limit, ...]) -> dict[str, Any]:
    """Return the event with the tokens that were used so far, and the rate limits."""
    rates = {"limits": msgspec.to_builtins(limits)} if limits else None
    return {"type": "token_count", "info": None if info is None else msgspec.to_builtins(info), "rate_limits": rates}


def item_completed(thread_id: str, turn_id: str, item: events.Item, now: datetime, began: datetime) -> dict[str, Any]:
    """Return the event of an item that is finished."""
    return {
        "type": "item_completed",
        "thread_id": thread_id,
        "turn_id": turn_id,
        "item": shown(item),
        "started_at_ms": int(began.timestamp() * 1000),
        "completed_at_ms": int(now.timestamp() * 1000),
    }


def shown(item: events.Item) -> dict[str, Any]:
    """Return an item in the format of Codex."""
    match item:
        case events.UserMessage():
            client = {} if item.client_id is None else {"client_id": item.client_id}
            content = item.shown if item.shown is not None else [_input(part) for part in item.content]
            return {"type": "UserMessage", "id": item.id, **client, "content": content}
        case events.AgentMessage():
            found: dict[str, Any] = {
                "type": "AgentMessage",
                "id": item.id,
                "content": [{"type": "Text", "text": item.text}],
            }
            optional = {"phase": item.phase, "memory_citation": msgspec.to_builtins(item.citation)}
            return found | {key: value for key, value in optional.items() if value is not None}
        case events.Reasoning():
            return {"type": "Reasoning", "id": item.id, "summary_text": item.summary, "raw_content": item.text}
        case events.CommandExecution():
            return _command(item)
        case events.FileChange():
            changes = {each.path: _change(each) for each in item.changes}
            return {"type": "FileChange", "id": item.id, "changes": changes, "status": item.status}
        case events.McpToolCall() | events.ToolCall() | events.ExternalMessage():
            return _tool(item)
        case events.AgentCall():
            return _agent_call(item)
        case events.WebSearch():
            return {"type": "WebSearch", "id": item.id, "query": item.query, "action": item.action}
        case events.Plan():
            text = "\n".join(f"[{'x' if step.status == 'completed' else ' '}] {step.text}" for step in item.steps)
            return {"type": "Plan", "id": item.id, "text": text}
        case events.ProposedPlan():
            return {"type": "Plan", "id": item.id, "text": item.text}
        case events.ContextCompaction():
            return {"type": "ContextCompaction", "id": item.id}


def _tool(item: events.McpToolCall | events.ToolCall | events.ExternalMessage) -> dict[str, Any]:
    match item:
        case events.McpToolCall():
            return {
                "type": "McpToolCall",
                "id": item.id,
                "server": item.server,
                "tool": item.tool,
                "arguments": item.arguments,
                "status": item.status,
                "result": item.result,
                "error": None if item.error is None else {"message": item.error},
            }
        case events.ExternalMessage():
            inside = {} if item.namespace is None else {"namespace": item.namespace}
            return {"type": "FunctionCallOutput", "id": item.id, "name": item.name, **inside, "output": item.output}
        case events.ToolCall():
            shown = {} if item.output is None else {"content_items": [{"type": "inputText", "text": item.output}]}
            return {
                "type": "DynamicToolCall",
                "id": item.id,
                "tool": item.tool,
                "arguments": item.arguments,
                "status": item.status,
                "success": item.status == "completed",
                **shown,
            }


def _agent_call(item: events.AgentCall) -> dict[str, Any]:
    receivers = [{"thread_id": name, "agent_nickname": nickname} for name, nickname in item.receivers]
    fields: dict[str, Any] = {
        "type": "CollabAgentToolCall",
        "id": item.id,
        "tool": item.tool,
        "status": item.status,
        "sender_thread_id": item.sender,
        "receiver_thread_ids": [name for name, _ in item.receivers],
        "receiver_agents": receivers,
        "prompt": item.prompt,
        "model": item.model,
        "reasoning_effort": item.effort,
        "agents_states": item.states,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _input(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") == "input_text":
        return {"type": "text", "text": part.get("text", ""), "text_elements": []}
    return {"type": "image", "image_url": part.get("image_url", "")}


def _command(item: events.CommandExecution) -> dict[str, Any]:
    whole = item.seconds or 0.0
    return {
        "type": "CommandExecution",
        "id": item.id,
        "process_id": None if item.process is None else str(item.process),
        "command": list(item.command),
        "cwd": item.cwd,
        "parsed_cmd": [{"type": "unknown", "cmd": typed(item.command)}],
        "source": "agent",
        "status": item.status,
        "aggregated_output": item.output,
        "exit_code": item.exit_code,
        "duration": {"secs": int(whole), "nanos": int(whole % 1 * 1e9)},
    }


def _change(change: events.Change) -> dict[str, Any]:
    if change.kind == "update":
        return {"type": "update", "unified_diff": change.diff, "move_path": change.to}
    return {"type": change.kind, "content": change.diff}
