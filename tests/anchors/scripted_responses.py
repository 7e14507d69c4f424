"""A scripted model: the Responses API on loopback, answering from a list.

The real Codex binary needs something that speaks `POST /v1/responses` with server-sent events. This
server is given its answers beforehand, one per expected request, and keeps the JSON body of every request
so that a test can say what the model was shown.

It is strict in both directions: a request beyond the script is answered with an error, an answer nobody
asked for stays on the list, and leaving the `with` block raises `ScriptError` for either. Requests are
served by one thread each but take their answers under one lock, so request *n* always gets answer *n*; a
script whose callers run in parallel (sub-agents) uses callables, which see the request and decide.

An answer may `hold`: the response is opened, then nothing is sent until the event is set. That is how
tests steer, interrupt or kill a client while "the model is thinking".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]


class ScriptError(AssertionError):
    """The client asked for more or fewer answers than the script has, or for something else."""


@dataclass(frozen=True)
class Answer:
    """One model response: output items and usage, or an error instead."""

    items: tuple[Json, ...] = ()
    input_tokens: int = 100
    output_tokens: int = 10
    error: str | None = None
    """An error code such as `context_length_exceeded`; sent as `response.failed` after `response.created`."""
    hold: threading.Event | None = None
    """When given, nothing after `response.created` is sent until it is set (or the server closes)."""
    pause: threading.Event | None = None
    """When given, a message stops at its middle until it is set (or the server closes)."""
    status: int = 200
    """Another one answers with `error` as an HTTP error, without a stream."""
    named: str | None = None
    """The model that the answer says it comes from."""


Step: TypeAlias = Answer | Callable[[Json], Answer]


def say(text: str, *, phase: str | None = None, item_id: str | None = None) -> Json:
    """Return an assistant message item."""
    item: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    if phase is not None:
        item["phase"] = phase
    if item_id is not None:
        item["id"] = item_id
    return item


def call(name: str, arguments: Json, call_id: str, *, namespace: str | None = None) -> Json:
    """Return a function call item; `arguments` become the JSON string the wire wants."""
    item: Json = {
        "type": "function_call",
        "name": name,
        "arguments": json.dumps(arguments),
        "call_id": call_id,
    }
    if namespace is not None:
        item["namespace"] = namespace
    return item


def custom_call(name: str, text: str, call_id: str) -> Json:
    """Return a free-form tool call item."""
    return {
        "type": "custom_tool_call",
        "name": name,
        "input": text,
        "call_id": call_id,
        "status": "completed",
    }


def answer(
    *items: Json, input_tokens: int = 100, output_tokens: int = 10, hold: threading.Event | None = None
) -> Answer:
    """Return an answer made of items."""
    return Answer(items, input_tokens, output_tokens, None, hold)


def reply(text: str, *, input_tokens: int = 100) -> Answer:
    """Return an answer that is one assistant message."""
    return answer(say(text), input_tokens=input_tokens)


def halted(text: str, pause: threading.Event) -> Answer:
    """Return an answer that is one message, which stops at its middle until the event is set."""
    return Answer((say(text),), pause=pause)


def looking(call_id: str) -> Answer:
    """Answer, after a moment, with a search for tools: Codex asks its model before the servers have started."""
    threading.Event().wait(0.05)
    arguments = {"query": "search memory"}
    kinds = {"type": "tool_search_call", "execution": "client", "status": "completed"}
    return answer({**kinds, "call_id": call_id, "arguments": arguments})


def failure(code: str) -> Answer:
    """Return an answer that fails with an error code."""
    return Answer(error=code)


def refusal(status: int, code: str) -> Answer:
    """Return an HTTP error."""
    return Answer(error=code, status=status)


@dataclass
class _State:
    """What the handler threads share; every field is guarded by `changed`."""

    steps: list[Step]
    requests: list[Json] = field(default_factory=list[Json])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    problems: list[str] = field(default_factory=list[str])
    items_sent: int = 0
    is_dropped: bool = False
    closed: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)


class ScriptedResponses:
    """The server; use as a context manager."""

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self._state = _State(list(steps))
        self._server = _Server(self._state)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        """The address for `model_providers.*.base_url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def requests(self) -> list[Json]:
        """The bodies of all requests so far, in order of arrival."""
        with self._state.changed:
            return list(self._state.requests)

    @property
    def headers(self) -> list[dict[str, str]]:
        """The headers of all requests so far, names in lower case."""
        with self._state.changed:
            return list(self._state.headers)

    def inputs(self) -> list[list[Json]]:
        """Return the `input` list of each request: what the model was shown."""
        return [cast("list[Json]", body["input"]) for body in self.requests]

    def add(self, *steps: Step) -> None:
        """Append answers to the script."""
        with self._state.changed:
            self._state.steps.extend(steps)

    def drop(self) -> None:
        """Forget the answers that nobody asked for: how many those are is not always for a test to say.

        A client that was ended may have asked just before: a request that is only read now is refused and no problem.
        """
        with self._state.changed:
            self._state.steps.clear()
            self._state.is_dropped = True

    def wait_for_requests(self, count: int, timeout: float = 30.0) -> None:
        """Block until `count` requests have arrived.

        Raises:
            TimeoutError: fewer arrived in time.
        """
        with self._state.changed:
            arrived = self._state.changed.wait_for(lambda: len(self._state.requests) >= count, timeout)
            if not arrived:
                raise TimeoutError(f"{len(self._state.requests)} of {count} requests after {timeout} s")

    def __enter__(self) -> ScriptedResponses:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._state.changed:
            self._state.closed = True
            self._state.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if kind is None:
            self._check()

    def _check(self) -> None:
        problems = list(self._state.problems)
        if self._state.steps:
            problems.append(f"{len(self._state.steps)} answers were never asked for")
        if problems:
            raise ScriptError("; ".join(problems))


class _Server(ThreadingHTTPServer):
    """The HTTP server with the state its handlers share."""

    daemon_threads = True
    request_queue_size = 256  # a hundred turns connect at once; beyond the queue the kernel makes them try again later

    def __init__(self, state: _State) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state = state


class _Handler(BaseHTTPRequestHandler):
    """Answers one request from the script."""

    protocol_version = "HTTP/1.1"

    @property
    def state(self) -> _State:
        return cast("_Server", self.server).state

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the base class names it so
        """Stay silent; the requests are kept instead."""

    def do_GET(self) -> None:
        self._refuse(404, f"unexpected GET {self.path}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        if not self.path.endswith("/responses"):
            self._refuse(404, f"unexpected POST {self.path}")
            return
        number, chosen = self._take(cast("Json", json.loads(raw)))
        if chosen is None:
            self._refuse(400, f"request {number + 1} is not in the script")
            return
        if chosen.status != 200:
            self._http_error(chosen.status, str(chosen.error), f"scripted {chosen.error}")
            return
        try:
            self._stream(chosen, f"resp_{number}")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was interrupted or killed, as some scripts intend

    def _take(self, body: Json) -> tuple[int, Answer | None]:
        """Keep a request and return its number with the answer that is next in the script."""
        state = self.state
        with state.changed:
            number = len(state.requests)
            state.requests.append(body)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            step = state.steps.pop(0) if state.steps else None
            state.changed.notify_all()
        return number, step(body) if callable(step) else step

    def _refuse(self, status: int, problem: str) -> None:
        with self.state.changed:
            if not self.state.is_dropped:
                self.state.problems.append(problem)
        self._http_error(status, "script", problem)

    def _http_error(self, status: int, code: str, message: str) -> None:
        text = json.dumps({"error": {"code": code, "message": message}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stream(self, chosen: Answer, response_id: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        if chosen.named is not None:
            self.send_header("openai-model", chosen.named)
        self.end_headers()
        self.close_connection = True
        self._event("response.created", {"response": {"id": response_id, "status": "in_progress"}})
        if chosen.hold is not None:
            _wait_for_release(chosen.hold, self.state)
        if chosen.error is not None:
            error = {"code": chosen.error, "message": f"scripted {chosen.error}"}
            self._event("response.failed", {"response": {"id": response_id, "status": "failed", "error": error}})
            return
        for index, item in enumerate(chosen.items):
            self._item(index, _with_id(item, self.state), chosen.pause)
        completed: Json = {"id": response_id, "status": "completed", "output": [], "usage": _usage(chosen)}
        self._event("response.completed", {"response": completed})

    def _item(self, index: int, item: Json, pause: threading.Event | None) -> None:
        is_message = item["type"] == "message"
        opened: Json = {**item, "content": []} if is_message else item
        self._event("response.output_item.added", {"output_index": index, "item": opened})
        for part_index, part in enumerate(cast("list[Json]", item["content"]) if is_message else []):
            place: Json = {"item_id": item["id"], "output_index": index, "content_index": part_index}
            text = cast("str", part["text"])
            if pause is not None:
                self._event("response.output_text.delta", {**place, "delta": text[: len(text) // 2]})
                _wait_for_release(pause, self.state)
                text = text[len(text) // 2 :]
            self._event("response.output_text.delta", {**place, "delta": text})
        self._event("response.output_item.done", {"output_index": index, "item": item})

    def _event(self, name: str, data: Json) -> None:
        text = json.dumps({"type": name, **data})
        self.wfile.write(f"event: {name}\ndata: {text}\n\n".encode())
        self.wfile.flush()


def _wait_for_release(hold: threading.Event, state: _State) -> None:
    """Block until `hold` is set; a closing server releases everybody."""
    while not hold.wait(0.05):
        with state.changed:
            if state.closed:
                return


_ID_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "reasoning": "rs",
    "compaction": "cmp",
}
"""The id prefixes the real service uses, so that recordings look like real ones."""


def _with_id(item: Json, state: _State) -> Json:
    """Give an item a server-made id unless the script gave one."""
    with state.changed:
        state.items_sent += 1
        number = state.items_sent
    prefix = _ID_PREFIXES.get(str(item["type"]), "item")
    return {"id": f"{prefix}_{number}", **item}


def _usage(chosen: Answer) -> Json:
    return {
        "input_tokens": chosen.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": chosen.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": chosen.input_tokens + chosen.output_tokens,
    }
