"""Gold sessions as the files that agents write: Codex rollouts and Claude Code transcripts, ready to be imported."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from commonplace.learning.evaluate.cases import Case, CaseSession
from commonplace.protocol.ids import uuid7

_STEP: Final = timedelta(seconds=20)
_FENCES: Final = {
    "agents_md": ("# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\n", "\n</INSTRUCTIONS>"),
    "environment": ("<environment_context>\n", "\n</environment_context>"),
    "skill": ("<skill>\n", "\n</skill>"),
    "hook": ("<external_hook>\n", "\n</external_hook>"),
    "reminder": ("<external_reminder>\n", "\n</external_reminder>"),
}


def write(case: Case, folder: Path, now: datetime) -> list[tuple[CaseSession, str, Path]]:
    """Write a case's sessions below a folder; return each with its thread id and its file."""
    found: list[tuple[CaseSession, str, Path]] = []
    for number, session in enumerate(case.sessions):
        started = now - timedelta(days=session.days_ago)
        if session.agent == "codex":
            thread, path = _Codex(case.id, number, session, started).write(folder / "codex")
        else:
            thread, path = _Claude(case.id, number, session, started).write(folder / "claude")
        found.append((session, thread, path))
    return found


def _seed(name: str, number: int) -> bytes:
    return hashlib.sha256(f"{name}/{number}".encode()).digest()


class _Codex:
    def __init__(self, name: str, number: int, session: CaseSession, started: datetime) -> None:
        self.session = session
        self.started = self.time = started
        self.thread = uuid7(int(started.timestamp() * 1000), _seed(name, number)[:10])
        self.lines: list[dict[str, Any]] = []
        self.calls = 0

    def write(self, home: Path) -> tuple[str, Path]:
        source: Any = self.session.source
        if source == "subagent":
            source = {"subagent": {"thread_spawn": {"parent_thread_id": str(uuid.UUID(int=7)), "depth": 1}}}
        elif source == "ephemeral":
            source = {"internal": "ephemeral"}
        meta: dict[str, Any] = {
            "id": self.thread,
            "timestamp": self._stamp(),
            "cwd": self.session.cwd,
            "source": source,
        }
        meta |= {"originator": "codex_cli_rs", "cli_version": "0.166.0", "git": {"repository_url": self.session.remote}}
        self._line("session_meta", meta)
        for event in self.session.events:
            self._event(event)
        folder = home / "sessions" / f"{self.started:%Y/%m/%d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{self.started:%Y-%m-%dT%H-%M-%S}-{self.thread}.jsonl"
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines), "utf-8")
        return self.thread, path

    def _stamp(self) -> str:
        self.time += _STEP
        return self.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def _line(self, kind: str, payload: dict[str, Any]) -> None:
        self.lines.append({"timestamp": self._stamp(), "type": kind, "payload": payload})

    def _message(self, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text}]
        self._line("response_item", {"type": "message", "role": role, "content": content})

    def _call(self, payload: dict[str, Any], output: str) -> None:
        self.calls += 1
        call = f"call_{self.calls}"
        custom = payload["type"] == "custom_tool_call"
        self._line("response_item", {**payload, "call_id": call})
        answer = "custom_tool_call_output" if custom else "function_call_output"
        self._line("response_item", {"type": answer, "call_id": call, "output": output})

    def _event(self, event: dict[str, Any]) -> None:
        if "user" in event:
            self._message("user", event["user"])
        elif "assistant" in event:
            self._message("assistant", event["assistant"])
        elif "call" in event:
            self._tool(event)
        elif "memory" in event:
            payload = {
                "type": "function_call",
                "namespace": "memories",
                "name": "search",
                "arguments": '{"queries":["x"]}',
            }
            self._call(payload, event["output"])
        elif "injected" in event:
            self._injected(event["injected"], event["text"])
        elif "interrupt" in event:
            self._message("user", "<turn_aborted>\nThe user interrupted.\n</turn_aborted>")
            self._line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
        elif "reject" in event:
            self._rejected(event)
        elif "compaction" in event:
            content = [{"type": "input_text", "text": event["compaction"]}]
            kept = [{"type": "message", "role": "user", "content": content}]
            self._line("compacted", {"message": event["compaction"], "replacement_history": kept})
        elif "rollback" in event:
            self._line("event_msg", {"type": "thread_rolled_back", "num_turns": event["rollback"]})

    def _tool(self, event: dict[str, Any]) -> None:
        name, output = event["call"], event.get("output", "")
        if name == "shell":
            arguments = json.dumps({"cmd": event["command"]})
            text = f"Exit code: {event.get('exit', 0)}\nWall time: 1.0 seconds\nOutput:\n{output}"
            self._call({"type": "function_call", "name": "exec_command", "arguments": arguments}, text)
        elif name == "apply_patch":
            text = f"Exit code: {0 if event.get('ok', True) else 1}\nWall time: 0.1 seconds\nOutput:\n{output}"
            self._call({"type": "custom_tool_call", "name": name, "input": event.get("input", "")}, text)
        else:
            failed = "" if event.get("ok", True) else "error: "
            arguments = json.dumps(event.get("arguments", {}))
            self._call({"type": "function_call", "name": name, "arguments": arguments}, failed + output)

    def _rejected(self, event: dict[str, Any]) -> None:
        arguments = json.dumps({"cmd": event.get("command", "")})
        self._call(
            {"type": "function_call", "name": "exec_command", "arguments": arguments}, "exec command rejected by user"
        )
        if event.get("note"):
            self._message("user", event["note"])

    def _injected(self, kind: str, text: str) -> None:
        if kind == "memory":
            body = (
                f"## Memory\n========= MEMORY_SUMMARY BEGINS =========\n{text}\n========= MEMORY_SUMMARY ENDS ========="
            )
            self._message("developer", body)
        else:
            before, after = _FENCES[kind]
            self._message("user", before + text + after)


class _Claude:
    def __init__(self, name: str, number: int, session: CaseSession, started: datetime) -> None:
        self.session = session
        self.started = self.time = started
        self.seed = _seed(name, number)
        self.id = str(uuid.UUID(bytes=self.seed[:16], version=4))
        self.lines: list[dict[str, Any]] = []
        self.parent: str | None = None
        self.prompts: list[str | None] = []
        self.calls = 0

    def write(self, home: Path) -> tuple[str, Path]:
        for event in self.session.events:
            self._event(event)
        folder = home / "projects" / "".join(char if char.isalnum() else "-" for char in self.session.cwd)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"agent-{self.id[:8]}" if self.session.source == "subagent" else self.id
        path = folder / f"{name}.jsonl"
        if self.session.source != "ephemeral":
            path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines), "utf-8")
        return self.id, path

    def _add(self, kind: str, **fields: Any) -> str:
        self.time += _STEP
        here = str(
            uuid.UUID(
                bytes=hashlib.sha256(self.seed + bytes([len(self.lines) % 256, len(self.lines) // 256])).digest()[:16],
                version=4,
            )
        )
        side = self.session.source == "subagent"
        record: dict[str, Any] = {"parentUuid": self.parent, "isSidechain": side, "userType": "external", "type": kind}
        record |= {"cwd": self.session.cwd, "sessionId": self.id, "version": "2.1.120", "uuid": here, **fields}
        record["timestamp"] = self.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        if side:
            record["agentId"] = self.id[:8]
        self.lines.append(record)
        self.parent = here
        return here

    def _user(self, content: Any, **fields: Any) -> None:
        self._add("user", message={"role": "user", "content": content}, **fields)

    def _says(self, block: dict[str, Any]) -> None:
        answer = f"msg_{self.id[:8]}{len(self.lines):04}"
        self._add("assistant", message={"role": "assistant", "id": answer, "model": "claude-x", "content": [block]})

    def _call(self, name: str, arguments: dict[str, Any], output: str, *, ok: bool = True) -> None:
        self.calls += 1
        call = f"toolu_{self.id[:8]}{self.calls:04}"
        self._says({"type": "tool_use", "id": call, "name": name, "input": arguments})
        block = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": not ok}
        self._user([block])

    def _event(self, event: dict[str, Any]) -> None:
        if "user" in event:
            self.prompts.append(self.parent)
            self._user(event["user"])
        elif "assistant" in event:
            self._says({"type": "text", "text": event["assistant"]})
        elif "call" in event:
            self._tool(event)
        elif "memory" in event:
            self._call("mcp__commonplace__search", {"query": "x"}, event["output"])
        elif "injected" in event:
            self._injected(event["injected"], event["text"])
        elif "interrupt" in event:
            self._user([{"type": "text", "text": "[Request interrupted by user]"}])
        elif "reject" in event:
            note = event.get("note", "")
            said = f" To tell you how to proceed, the user said:\n{note}" if note else ""
            text = f"The user doesn't want to proceed with this tool use. The tool use was rejected.{said}"
            self._call("Bash", {"command": event.get("command", "")}, text, ok=False)
        elif "compaction" in event:
            self.parent = self._add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
            text = f"This session is being continued from a previous conversation. {event['compaction']}"
            self._user(text, isCompactSummary=True)
        elif "rollback" in event:
            self.parent = self.prompts[-event["rollback"]]
            del self.prompts[-event["rollback"] :]

    def _tool(self, event: dict[str, Any]) -> None:
        name, output = event["call"], event.get("output", "")
        if name == "shell":
            code = event.get("exit", 0)
            self._call(
                "Bash", {"command": event["command"]}, f"Exit code {code}\n{output}" if code else output, ok=not code
            )
        elif name == "apply_patch":
            self._call("Edit", {"file_path": "x", "patch": event.get("input", "")}, output, ok=event.get("ok", True))
        else:
            self._call(name, event.get("arguments", {}), output, ok=event.get("ok", True))

    def _injected(self, kind: str, text: str) -> None:
        if kind == "memory":
            self._add("attachment", attachment={"type": "hook_success", "content": f"<commonplace_memory>\n{text}"})
        elif kind == "hook":
            self._add("attachment", attachment={"type": "hook_additional_context", "content": [text]})
        elif kind == "agents_md":
            self._add(
                "attachment", attachment={"type": "nested_memory", "content": {"path": "CLAUDE.md", "content": text}}
            )
        elif kind == "skill":
            self._user(text, isMeta=True)
        else:
            self._user(f"<system-reminder>\n{text}\n</system-reminder>")
