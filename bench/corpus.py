"""Session files to measure on: made up, but shaped like real ones (turns, calls, outputs, a late checkpoint)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TIME = "2026-11-15T09:00:00.000Z"
TEXT = Path(__file__).read_text("utf-8")
"""What outputs are made of: program text, with its quotes and line breaks, as in real sessions."""


def thread_id(number: int) -> str:
    """Return the id of the n-th made-up thread."""
    return f"01a1dddc-{number >> 16 & 0xFFFF:04x}-7{number >> 4 & 0xFFF:03x}-8000-{number:012x}"


def line(kind: str, payload: Any, ordinal: int | None) -> bytes:
    """Return one line as Codex writes it."""
    envelope: dict[str, Any] = {"timestamp": TIME}
    if ordinal is not None:
        envelope["ordinal"] = ordinal
    return json.dumps({**envelope, "type": kind, "payload": payload}, separators=(",", ":")).encode() + b"\n"


def message(role: str, text: str, name: str) -> dict[str, Any]:
    """Return a message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "id": f"msg_{name}", "role": role, "content": [{"type": kind, "text": text}]}


class Session:
    """Writes one session, in the older line format or with ordinals."""

    def __init__(self, number: int, *, paginated: bool) -> None:
        self.id = thread_id(number)
        self.paginated = paginated
        self._random = random.Random(number)
        self._ordinal = 0
        self._turn = 0

    def _line(self, kind: str, payload: Any) -> bytes:
        data = line(kind, payload, self._ordinal if self.paginated else None)
        self._ordinal += 1
        return data

    def _text(self, size: int) -> str:
        start = self._random.randrange(len(TEXT))
        return (TEXT[start:] + TEXT * (size // len(TEXT) + 1))[:size]

    def head(self) -> bytes:
        """Return the first line."""
        mode = "paginated" if self.paginated else "legacy"
        meta = {"session_id": self.id, "id": self.id, "timestamp": TIME, "cwd": "/repo/demo", "originator": "bench"}
        meta |= {"cli_version": "0.166.0", "source": "cli", "model_provider": "mock", "history_mode": mode}
        return self._line("session_meta", {**meta, "base_instructions": {"text": self._text(2000)}})

    def turn(self, calls: int = 4) -> Iterator[bytes]:
        """Yield one turn: context, a prompt, calls with outputs of mixed sizes, an answer, counts."""
        self._turn += 1
        turn = f"{self.id[:24]}{self._turn:012x}"
        yield self._line("event_msg", {"type": "task_started", "turn_id": turn, "model_context_window": 258400})
        context = {"turn_id": turn, "cwd": "/repo/demo", "approval_policy": "never", "model": "gpt-5.5"}
        sandbox = {"sandbox_policy": {"type": "danger-full-access"}, "summary": "auto"}
        yield self._line("turn_context", {**context, **sandbox})
        prompt = self._text(120)
        yield self._line("response_item", message("user", prompt, f"u{turn}"))
        yield self._line("event_msg", {"type": "user_message", "message": prompt, "images": [], "local_images": []})
        for number in range(calls):
            name = f"{turn}{number}"
            arguments = json.dumps({"cmd": self._text(60)})
            call = {"type": "function_call", "id": f"fc_{name}", "name": "exec_command", "arguments": arguments}
            yield self._line("response_item", {**call, "call_id": f"call_{name}"})
            output = (
                f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{self._text(self._random.choice((200, 2000, 20000)))}"
            )
            answer = {"type": "function_call_output", "id": f"fco_{name}", "call_id": f"call_{name}", "output": output}
            yield self._line("response_item", answer)
        usage = {"total_token_usage": {"total_tokens": 1000 * self._turn}, "last_token_usage": {"total_tokens": 900}}
        yield self._line("event_msg", {"type": "token_count", "info": usage, "rate_limits": None})
        yield self._line("response_item", message("assistant", self._text(600), f"a{turn}"))
        yield self._line("event_msg", {"type": "task_complete", "turn_id": turn, "last_agent_message": None})

    def compaction(self) -> Iterator[bytes]:
        """Yield a compaction as Codex 0.166 writes it: a turn of its own with a replacement history."""
        self._turn += 1
        turn = f"{self.id[:24]}{self._turn:012x}"
        yield self._line("event_msg", {"type": "task_started", "turn_id": turn})
        history = [message("user", self._text(400), f"k{number}") for number in range(20)]
        payload: dict[str, Any] = {
            "message": "summary",
            "replacement_history": history,
            "window_number": 1,
            "resume_metadata": {},
        }
        yield self._line("compacted", payload)
        yield self._line("event_msg", {"type": "task_complete", "turn_id": turn, "last_agent_message": None})


def write_session(folder: Path, number: int, size: int, *, paginated: bool) -> Path:
    """Write a session of about `size` bytes with a checkpoint three turns before its end."""
    session = Session(number, paginated=paginated)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-11-15T09-00-00-{session.id}.jsonl"
    with path.open("wb") as file:
        written = file.write(session.head())
        while written < size:
            written += sum(file.write(data) for data in session.turn())
        file.writelines(session.compaction())
        for _ in range(3):
            file.writelines(session.turn(calls=1))
    return path


def write_many(home: Path, count: int) -> int:
    """Write many short sessions over two years of days; return their bytes."""
    total = 0
    for number in range(count):
        day = number % 730
        folder = home / "sessions" / f"{2025 + day // 365}" / f"{1 + day % 365 // 31:02}" / f"{1 + day % 365 % 31:02}"
        if number < 730:
            folder.mkdir(parents=True, exist_ok=True)
        session = Session(number, paginated=True)
        data = session.head() + b"".join(session.turn(calls=1))
        total += len(data)
        (folder / f"rollout-2026-11-15T09-00-00-{session.id}.jsonl").write_bytes(data)
    return total
