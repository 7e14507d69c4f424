"""A scripted model for Claude Code: the Messages API on loopback, answering from a list.

Like `scripted_responses`, but for `POST /v1/messages`. Claude Code also asks small things on the side (a title, whether
there is quota); only requests that carry tools take an answer from the script, the others get a short text. The body of
each scripted request is kept, so that a test can say what the model was shown.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]


def say(text: str) -> Json:
    """Return a block of text."""
    return {"type": "text", "text": text}


def use(name: str, arguments: Json, call_id: str) -> Json:
    """Return a call of a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


class ScriptedMessages:
    """The server; use as a context manager. Each step is the list of blocks of one answer."""

    def __init__(self, steps: Sequence[list[Json]] = ()) -> None:
        self.steps = list(steps)
        self.requests: list[Json] = []
        self.unexpected: list[str] = []
        self.lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        """The address for ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, body: Json) -> list[Json]:
        """Keep a request and return the answer to it."""
        with self.lock:
            if not body.get("tools"):
                return [say("ok")]
            self.requests.append(body)
            return self.steps.pop(0) if self.steps else [say("The script has ended.")]

    def __enter__(self) -> ScriptedMessages:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: ScriptedMessages) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def script(self) -> ScriptedMessages:
        return cast("_Server", self.server).script

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the base class names it so
        """Stay silent; the requests are kept instead."""

    def do_HEAD(self) -> None:
        self._json(200, {})

    def do_GET(self) -> None:
        self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": 100})
        elif not path.endswith("/v1/messages"):
            with self.script.lock:
                self.script.unexpected.append(self.path)
            self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})
        else:
            body = cast("Json", json.loads(raw))
            blocks = self.script.take(body)
            try:
                self._stream(blocks) if body.get("stream") else self._json(200, _whole(blocks))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    def _json(self, status: int, value: Json) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _stream(self, blocks: list[Json]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        whole = _whole(blocks)
        self._event("message_start", {"message": {**whole, "content": [], "stop_reason": None}})
        for index, block in enumerate(blocks):
            self._block(index, block)
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        self._event("message_delta", {"delta": delta, "usage": {"output_tokens": 10}})
        self._event("message_stop", {})

    def _block(self, index: int, block: Json) -> None:
        opened: Json
        delta: Json
        if block["type"] == "text":
            opened, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            opened = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        self._event("content_block_start", {"index": index, "content_block": opened})
        self._event("content_block_delta", {"index": index, "delta": delta})
        self._event("content_block_stop", {"index": index})

    def _event(self, name: str, data: Json) -> None:
        text = json.dumps({"type": name, **data})
        self.wfile.write(f"event: {name}\ndata: {text}\n\n".encode())
        self.wfile.flush()


def _whole(blocks: list[Json]) -> Json:
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{uuid.uuid4().hex}",  # blocks of one answer share it, and no other answer has it
        "type": "message",
        "role": "assistant",
        "model": "claude-scripted",
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }
