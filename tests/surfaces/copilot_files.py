"""Sessions of Copilot CLI as tests want them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

SESSION = "51854430-83f7-4543-a9bf-ec76ead71f59"
TIME = "2026-09-28T10:00:00.000Z"
_numbers = itertools.count()


def event(kind: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": f"e{next(_numbers)}", "timestamp": TIME, "parentId": None, **more}


def start(**more: Any) -> dict[str, Any]:
    place = {"cwd": "/srv/shop/api", "gitRoot": "/srv/shop", "branch": "main", "repository": "acme/shop"}
    data = {"sessionId": SESSION, "version": 1, "copilotVersion": "0.0.407", "startTime": TIME, "context": place}
    return event("session.start", {**data, **more}, id="start")


def result(tool: str, given: dict[str, Any], **data: Any) -> list[dict[str, Any]]:
    """A call and what it gave."""
    call = {"toolCallId": "c1", "name": tool, "arguments": given, "type": "function"}
    return [
        event("assistant.message", {"messageId": "m1", "content": "", "toolRequests": [call]}),
        event("tool.execution_start", {"toolCallId": "c1", "toolName": tool, "arguments": given}),
        event("tool.execution_complete", {"toolCallId": "c1", **data}),
    ]


def two_turns() -> list[dict[str, Any]]:
    call = {"toolCallId": "c1", "name": "bash", "arguments": {"command": "make test"}, "type": "function"}
    output = {"content": "1 failed\n<exited with exit code 2>"}
    return [
        start(),
        event("user.message", {"content": "fix the tests"}, id="u1"),
        event("assistant.reasoning", {"content": "Tests first."}, id="a0"),
        event(
            "assistant.message",
            {"content": "I run them.", "reasoningText": "Tests first.", "toolRequests": [call]},
            id="a1",
        ),
        event("tool.execution_start", {"toolCallId": "c1", "toolName": "bash"}, id="t1"),
        event("tool.execution_complete", {"toolCallId": "c1", "success": True, "result": output}, id="t2"),
        event("assistant.turn_end", {"turnId": "0"}, id="a2"),
        event("user.message", {"content": "try again"}, id="u2"),
        event("assistant.message", {"content": "Done.", "toolRequests": []}, id="a3"),
    ]


def session(folder: Path) -> Path:
    """A session of two turns; returns its file."""
    path = folder / "session-state" / SESSION / "events.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in two_turns()))
    return path
