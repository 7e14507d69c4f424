"""Claude Code transcripts as tests want them: a few words per record, the rest filled in as the program writes it."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 11, 15, 6, 0, tzinfo=UTC)


def uid(number: int) -> str:
    """Return a record's id by number."""
    return str(uuid.UUID(int=0xC0DE_0000_0000_4000_8000_0000_0000_0000 + number))


class Transcript:
    """A file that grows by one record at a time; each hangs on the one before it unless told otherwise."""

    def __init__(self, folder: Path, session: str = "6ac42589-1bd0-4e41-b0ff-ba06dc9add47", *, first: int = 1) -> None:
        self.path = folder / f"{session}.jsonl"
        self.session = session
        self.records: list[dict[str, Any]] = []
        self.last: str | None = None
        self.first = self._next = first

    def add(self, kind: str, *, parent: object = ..., **fields: Any) -> str:
        """Append a threaded record; return its id."""
        here = uid(self._next)
        moment = START + timedelta(seconds=self._next)
        self._next += 1
        above = self.last if parent is ... else parent
        record = {
            "parentUuid": above,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/repo/app",
            "sessionId": self.session,
            "version": "2.1.197",
            "gitBranch": "main",
            "type": kind,
            "uuid": here,
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        }
        self.records.append(record | fields)
        self.last = here
        return here

    def says(self, content: Any, **fields: Any) -> str:
        """A user record."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answers(self, *blocks: Any, answer: str = "", model: str = "claude-x", **fields: Any) -> str:
        """An assistant record; a string is a text block."""
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        message = {"role": "assistant", "id": answer or f"msg_{self._next}", "model": model, "content": content}
        return self.add("assistant", message=message, **fields)

    def calls(self, name: str, call: str, **arguments: Any) -> str:
        return self.answers({"type": "tool_use", "id": call, "name": name, "input": arguments})

    def gives(self, call: str, content: Any, *, error: bool = False, **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": error}
        return self.says([block], **fields)

    def attaches(self, kind: str, **fields: Any) -> str:
        return self.add("attachment", attachment={"type": kind, **fields})

    def notes(self, kind: str, **fields: Any) -> None:
        """A record that is not part of the thread."""
        self.records.append({"type": kind, "sessionId": self.session, **fields})

    def lines(self) -> list[bytes]:
        return [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in self.records]

    def write(self, count: int | None = None) -> Path:
        """Write the file, or only its first records."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"".join(self.lines()[:count]))
        return self.path
