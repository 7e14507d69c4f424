"""A model's server for whole programs: threads and real sockets, so that it serves processes; a function answers.

It speaks the Responses API. What it is asked is kept, parsed; what it says is decided by `answer`, which gets the body
of a request and returns what the model says, a `Call` of a tool, or a `Refusal`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: Any


@dataclass(frozen=True)
class Refusal:
    """The server answers with an error."""

    status: int
    code: str = "scripted"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Silence:
    """The server takes the request and says nothing for as long as it serves."""


Said = str | Call | Sequence["str | Call"]
Answer = Callable[[Body], Said | Refusal | Silence]


class ModelServer:
    """Serves for as long as the block lasts."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Body] = []
        """Every request, in the order in which they came."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer._lock:
                    outer.asked.append(body)
                said = outer.answer(body)
                if isinstance(said, Silence):
                    outer._closing.wait(60)
                    self.close_connection = True
                    return
                if isinstance(said, Refusal):
                    self._send(said.status, _refusal(said), "application/json", dict(said.headers))
                else:
                    self._send(200, stream(said), "text/event-stream", {})

            def _send(self, status: int, data: bytes, kind: str, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def provider(self, **fields: Any) -> str:
        """The lines of config.toml that name it `here`, without second tries unless told otherwise."""
        row = {"api": "responses", "base_url": self.url, "retries": 0, **fields}
        return "[providers.here]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in row.items())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join(60)
        self._server.server_close()


def _refusal(said: Refusal) -> bytes:
    return json.dumps({"error": {"code": said.code, "type": said.code, "message": "scripted"}}).encode()


def stream(said: Said) -> bytes:
    """What goes over the wire for an answer."""
    parts = [said] if isinstance(said, str | Call) else list(said)
    events: list[Body] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            content = [{"type": "output_text", "text": part}]
            item: Body = {"type": "message", "id": f"m{number}", "role": "assistant", "content": content}
            events.append({"type": "response.output_item.added", "item": {**item, "content": []}})
            events.append({"type": "response.output_text.delta", "item_id": f"m{number}", "delta": part})
        else:
            arguments = part.arguments if isinstance(part.arguments, str) else json.dumps(part.arguments)
            named = {"name": part.name, "arguments": arguments, "call_id": f"c{number}"}
            item = {"type": "function_call", "id": f"f{number}", **named}
        events.append({"type": "response.output_item.done", "item": item})
    usage = {"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}
    events.append({"type": "response.completed", "response": {"id": "r", "usage": usage}})
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


def first_words(body: Body) -> str:
    """The first line that the person says in the session that a request for extraction is about."""
    texts = [part["text"] for item in body["input"] for part in item["content"]]
    session = next(text for text in texts if "\nPERSON\n  " in text)
    return str(session.partition("\nPERSON\n  ")[2].partition("\n")[0])


def extraction(body: Body) -> str:
    """An answer to a request for extraction: the person's first words, quoted."""
    words = first_words(body)
    lesson = {"task": 1, "section": "preference", "text": words, "quote": words, "turn": 1, "scope": "project"}
    tasks = [{"title": "t", "outcome": "success"}]
    whole = {"title": "t", "slug": "a-slug", "keywords": ["k"], "tasks": tasks}
    return json.dumps({**whole, "lessons": [{**lesson, "what_to_do": ""}]})
