"""Building session files in tests: a `Script` of lines in the order they happened, written as Codex writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

THREAD = "0198c0de-0000-7000-8000-000000000001"
TIME = "2026-11-15T09:00:00.000Z"
FILE = f"rollout-2026-11-15T09-00-00-{THREAD}.jsonl"

Json = dict[str, Any]


def message(role: str, text: str, item_id: str | None = None, **more: Any) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    item: Json = {"type": "message", "role": role, "content": [{"type": kind, "text": text}], **more}
    return {**item, "id": item_id} if item_id else item


def user(text: str, item_id: str | None = None, **more: Any) -> Json:
    return message("user", text, item_id, **more)


def assistant(text: str, item_id: str | None = None, **more: Any) -> Json:
    return message("assistant", text, item_id, **more)


def function_call(call_id: str, name: str = "exec_command", arguments: str = "{}") -> Json:
    return {"type": "function_call", "id": f"fc_{call_id}", "name": name, "arguments": arguments, "call_id": call_id}


def function_output(call_id: str, output: Any = "ok") -> Json:
    return {"type": "function_call_output", "id": f"fco_{call_id}", "call_id": call_id, "output": output}


class Script:
    """Lines of one session file; every method appends and returns the script."""

    def __init__(self, thread_id: str = THREAD, *, paginated: bool = False, **meta: Any) -> None:
        self.thread_id = thread_id
        self.paginated = paginated
        self.lines: list[bytes] = []
        self._turn = 0
        payload = {
            "id": thread_id,
            "session_id": thread_id,
            "timestamp": TIME,
            "cwd": "/repo/demo",
            "originator": "test",
            "cli_version": "0.0.0",
            "source": "cli",
            "history_mode": "paginated" if paginated else "legacy",
            **meta,
        }
        base: Json = meta.get("history_base") or {}
        self._ordinal: int = base.get("end_ordinal_exclusive") or 0
        self.line("session_meta", payload)

    def line(self, line_type: str, payload: Any, **siblings: Any) -> Script:
        envelope: Json = {"timestamp": TIME}
        if self.paginated:
            envelope["ordinal"] = self._ordinal
            self._ordinal += 1
        return self.raw(json.dumps({**envelope, "type": line_type, "payload": payload, **siblings}).encode())

    def raw(self, data: bytes) -> Script:
        """Append any bytes as a line."""
        self.lines.append(data)
        return self

    def item(self, *items: Json, **siblings: Any) -> Script:
        for item in items:
            self.line("response_item", item, **siblings)
        return self

    def event(self, kind: str, **fields: Any) -> Script:
        return self.line("event_msg", {"type": kind, **fields})

    def turn(self, *items: Json) -> Script:
        """Append items as a whole turn, between its two events."""
        self._turn += 1
        turn_id = f"turn-{self._turn}"
        self.event("task_started", turn_id=turn_id)
        self.line("turn_context", {"turn_id": turn_id, "cwd": "/repo/demo", "model": f"model-{self._turn}"})
        self.item(*items)
        return self.event("task_complete", turn_id=turn_id, last_agent_message=None)

    def compacted(self, replacement: list[Json] | None = None, message: str = "summary", **more: Any) -> Script:
        payload: Json = {"message": message, **more}
        if replacement is not None:
            payload["replacement_history"] = replacement
        return self.line("compacted", payload)

    def rollback(self, turns: int) -> Script:
        return self.event("thread_rolled_back", num_turns=turns)

    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def write(self, folder: Path, name: str | None = None) -> Path:
        """Write the file into a folder (made if need be) and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"rollout-2026-11-15T09-00-00-{self.thread_id}.jsonl")
        path.write_bytes(self.data())
        return path

    def write_home(self, home: Path) -> Path:
        """Write the file where a home keeps sessions of its day."""
        return self.write(home / "sessions" / "2026" / "11" / "15")
