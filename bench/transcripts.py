"""Claude Code transcripts to measure on: made up, but shaped like real ones (a line per block, results said twice)."""

from __future__ import annotations

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 10, 1, tzinfo=UTC)
TEXT = Path(__file__).read_text("utf-8")
USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 2000, "cache_read_input_tokens": 12000, "output_tokens": 200}


class Transcript:
    """Writes one transcript of about a given size."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self.session = self._id()
        self.path = folder / f"{self.session}.jsonl"
        self._parent: str | None = None
        self._time = START + timedelta(minutes=seed)
        self._lines: list[bytes] = []

    def write(self, size: int) -> int:
        """Write the file; return how many bytes it has."""
        total = 0
        with self.path.open("wb") as file:
            while total < size:
                self._turn()
                block = b"".join(self._lines)
                self._lines.clear()
                file.write(block)
                total += len(block)
        return total

    def _turn(self) -> None:
        self._note("file-history-snapshot", messageId=self._id(), snapshot={"trackedFileBackups": {}})
        self._add("user", message={"role": "user", "content": self._text(20, 400)}, promptId=self._id())
        for _ in range(self._random.randint(2, 12)):
            answer = "msg_" + self._id().replace("-", "")[:24]
            if self._random.random() < 0.3:
                self._says(answer, {"type": "thinking", "thinking": self._text(100, 1500), "signature": "A" * 400})
            if self._random.random() < 0.6:
                self._says(answer, {"type": "text", "text": self._text(50, 600)})
            self._call(answer)

    def _call(self, answer: str) -> None:
        call = "toolu_" + self._id().replace("-", "")[:24]
        output = self._text(20, 20 + int(self._random.expovariate(1 / 2500)))
        kind = self._random.random()
        arguments: dict[str, Any] = {"command": self._text(20, 120)}
        twin: dict[str, Any] = {"stdout": output, "stderr": "", "interrupted": False}
        name = "Bash"
        if kind > 0.8:
            name, old, new = "Edit", self._text(10, 1600), self._text(10, 1600)
            arguments = {"file_path": "/repo/app/x.py", "old_string": old, "new_string": new}
            twin = {"oldString": old, "newString": new, "originalFile": self._text(100, 12000)}
            output = "The file has been updated."
        elif kind > 0.5:
            name, arguments = "Read", {"file_path": "/repo/app/x.py"}
            twin = {"type": "text", "file": {"filePath": "/repo/app/x.py", "content": output}}
        if self._random.random() < 0.01:
            output = self._text(80_000, 100_000)
        self._says(answer, {"type": "tool_use", "id": call, "name": name, "input": arguments})
        result = {
            "tool_use_id": call,
            "type": "tool_result",
            "content": output,
            "is_error": self._random.random() < 0.1,
        }
        self._add("user", message={"role": "user", "content": [result]}, toolUseResult=twin)

    def _says(self, answer: str, block: dict[str, Any]) -> None:
        message = {"model": "claude-x", "id": answer, "role": "assistant", "content": [block], "usage": USAGE}
        self._add("assistant", message=message, requestId="req_" + answer[4:])

    def _add(self, kind: str, **fields: Any) -> None:
        here = self._id()
        self._time += timedelta(seconds=self._random.random() * 4)
        envelope = {"parentUuid": self._parent, "isSidechain": False, "userType": "external", "cwd": "/repo/app"}
        envelope |= {"sessionId": self.session, "version": "2.1.100", "gitBranch": "main", "type": kind}
        stamp = {"uuid": here, "timestamp": self._time.strftime("%Y-%m-%dT%H:%M:%S.000Z")}
        self._parent = here
        self._note(**envelope, **fields, **stamp)

    def _note(self, type: str, **fields: Any) -> None:  # noqa: A002 (the key is called so)
        record = {**fields, "type": type}
        self._lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def _text(self, least: int, most: int) -> str:
        size = self._random.randint(least, max(least, most))
        start = self._random.randrange(len(TEXT))
        return (TEXT[start:] + TEXT * (size // len(TEXT) + 1))[:size]

    def _id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


def make(folder: Path, count: int, size: int) -> int:
    """Make a folder of transcripts, most of them small and a few large; return their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    spread = random.Random(count)
    sizes = [int(spread.expovariate(1 / size)) + 2000 for _ in range(count)]
    return sum(Transcript(folder, seed).write(wanted) for seed, wanted in enumerate(sizes))
