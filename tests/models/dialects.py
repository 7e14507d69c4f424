"""One answer in three languages: how each API streams the same text, thoughts, calls and counts.

A `Said` is what a test wants a model to say. A `Dialect` turns it into the server-sent events of its API, makes a model
that speaks it, and knows how its vendors word their errors; so one test body runs over all of them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from scripted_http import Json, Reply, refusal, whole

from commonplace.models.anthropic import Messages
from commonplace.models.base import Event, FunctionTool, ItemDone, Request
from commonplace.models.chat import Chat
from commonplace.models.http import Api, Endpoint, HttpModel
from commonplace.models.responses import Responses
from commonplace.models.retries import RetryPolicy

KEY = "sk-test-0123456789abcdefghijklmnop"
SHELL = FunctionTool("shell", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})


@dataclass(frozen=True)
class Said:
    """What the model says."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Name, arguments, id."""
    usage: tuple[int, int, int] | None = (120, 20, 30)
    """Input (with the cached part), cached, output."""


Frames = list[tuple[str, Json | str]]


def framed(frames: Frames, newline: bytes = b"\n") -> bytes:
    """Return events as bytes."""
    out = b""
    for name, data in frames:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        lines = ([f"event: {name}"] if name else []) + [f"data: {text}", "", ""]
        out += newline.join(line.encode() for line in lines)
    return out


def halves(text: str) -> Iterator[str]:
    """Yield a text in two pieces."""
    middle = (len(text) + 1) // 2
    yield from (piece for piece in (text[:middle], text[middle:]) if piece)


@dataclass
class Dialect:
    """One API."""

    name: str
    api: Callable[[Callable[[str], str]], Api]
    frames: Callable[[Said], Frames]
    failed: Callable[[str], Frames]
    """The frames of an answer that fails in the middle, with a server's own word for being overloaded."""
    errors: dict[str, Callable[[], Reply]] = field(default_factory=dict[str, Callable[[], Reply]])

    def model(self, base_url: str, pace: RetryPolicy | None = None, key: str | None = KEY) -> HttpModel:
        counter = itertools.count(1)
        endpoint = Endpoint(provider="here", base_url=base_url, key=key, key_variable="HERE_KEY")
        return HttpModel(endpoint, self.api(lambda prefix: f"{prefix}_{next(counter)}"), pace or patient())

    def reply(self, said: Said) -> Reply:
        return Reply(whole(framed(self.frames(said))))

    def spoken(self, said: Said) -> bytes:
        return framed(self.frames(said))


@dataclass
class Slept:
    """A sleep that takes no time and remembers."""

    seconds: list[float] = field(default_factory=list[float])

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def patient(**changes: Any) -> RetryPolicy:
    """Return a pace that never really waits."""
    values: Json = {"sleep": Slept(), "chance": lambda: 0.5, "wall": lambda: 1_000_000.0, "linger": 5.0}
    return RetryPolicy(**{**values, **changes})


def ask(text: str = "hello", **changes: Any) -> Request:
    """Return a request with one message of a user."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    values: Json = {"model": "m-1", "input": (msgspec.json.encode(item),), **changes}
    return Request(**values)


async def collected(events: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in events]


def done(events: list[Event]) -> list[Json]:
    """Return the finished items."""
    return [msgspec.json.decode(event.item) for event in events if isinstance(event, ItemDone)]


# --- Responses


def _responses(said: Said) -> Frames:
    found: Frames = [("response.created", {"type": "response.created", "response": {"id": "resp_1"}})]

    def item(index: int, value: Json, deltas: Frames) -> None:
        begun: Json = {**value, "content": []} if value["type"] == "message" else value
        added = {"type": "response.output_item.added", "output_index": index, "item": begun}
        ended = {"type": "response.output_item.done", "output_index": index, "item": value}
        found.extend([("response.output_item.added", added), *deltas, ("response.output_item.done", ended)])

    if said.thought:
        name = "response.reasoning_summary_text.delta"
        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": said.thought}]}
        deltas: Frames = [(name, {"type": name, "item_id": "rs_1", "delta": half}) for half in halves(said.thought)]
        item(0, {**thought, "encrypted_content": "gAAA"}, deltas)
    if said.text:
        name = "response.output_text.delta"
        parts = [{"type": "output_text", "text": said.text}]
        deltas = [(name, {"type": name, "item_id": "msg_1", "delta": half}) for half in halves(said.text)]
        item(1, {"type": "message", "id": "msg_1", "role": "assistant", "content": parts}, deltas)
    for number, (name, arguments, call_id) in enumerate(said.calls):
        call = {"type": "function_call", "id": f"fc_{number}", "name": name, "arguments": arguments}
        item(2 + number, {**call, "call_id": call_id}, [])
    response: Json = {"id": "resp_1", "status": "completed"}
    if said.usage:
        told, cached, out = said.usage
        usage: Json = {"input_tokens": told, "output_tokens": out, "total_tokens": told + out}
        response["usage"] = {**usage, "input_tokens_details": {"cached_tokens": cached}}
    return [*found, ("response.completed", {"type": "response.completed", "response": response})]


def _responses_failed(code: str) -> Frames:
    error = {"code": code, "message": f"scripted {code}"}
    return [("response.failed", {"type": "response.failed", "response": {"id": "resp_1", "error": error}})]


def openai_error(status: int, code: str, message: str = "scripted", **headers: str) -> Callable[[], Reply]:
    body = {"error": {"message": message, "type": "invalid_request_error", "code": code}}
    return lambda: refusal(status, body, **headers)


RESPONSES = Dialect(
    "responses",
    lambda ids: Responses(),
    _responses,
    _responses_failed,
    {
        "context": openai_error(400, "context_length_exceeded", "Your input exceeds the context window of this model."),
        "quota": openai_error(429, "insufficient_quota", "You exceeded your current quota."),
        "key": openai_error(401, "invalid_api_key", f"Incorrect API key provided: {KEY}."),
        "rate": openai_error(429, "rate_limit_exceeded", "Slow down.", retry_after="7"),
        "down": openai_error(500, "server_error", "The server had an error."),
        "refused": openai_error(400, "unknown_parameter", "Unknown parameter."),
    },
)

# --- Chat Completions


def _chat(said: Said) -> Frames:
    found: Frames = []

    def delta(value: Json, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": value, "finish_reason": finish}
        found.append(("", {"id": "resp_1", "object": "chat.completion.chunk", "choices": [choice]}))

    delta({"role": "assistant", "content": ""})
    for half in halves(said.thought):
        delta({"reasoning_content": half})
    for half in halves(said.text):
        delta({"content": half})
    for number, (name, arguments, call_id) in enumerate(said.calls):
        begun = {"index": number, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        delta({"tool_calls": [begun]})
        for half in halves(arguments):
            delta({"tool_calls": [{"index": number, "function": {"arguments": half}}]})
    delta({}, "tool_calls" if said.calls else "stop")
    if said.usage:
        told, cached, out = said.usage
        usage = {"prompt_tokens": told, "completion_tokens": out, "total_tokens": told + out}
        usage_chunk = {**usage, "prompt_tokens_details": {"cached_tokens": cached}}
        found.append(("", {"id": "resp_1", "choices": [], "usage": usage_chunk}))
    return [*found, ("", "[DONE]")]


def _chat_failed(code: str) -> Frames:
    return [("", {"error": {"message": f"scripted {code}", "type": code, "code": 500}}), ("", "[DONE]")]


def _vllm(status: int, message: str, **headers: str) -> Callable[[], Reply]:
    kind = "BadRequestError" if status == 400 else "Error"
    return lambda: refusal(status, {"object": "error", "message": message, "type": kind, "code": status}, **headers)


CHAT = Dialect(
    "chat",
    Chat,
    _chat,
    _chat_failed,
    {
        "context": _vllm(400, "This model's maximum context length is 4096 tokens. However, you requested 5000."),
        "quota": openai_error(402, "billing", "Please add credit."),
        "key": _vllm(401, f"Unauthorized: {KEY}"),
        "rate": _vllm(429, "Too many requests", retry_after="7"),
        "down": lambda: refusal(502, "<html>Bad gateway</html>"),
        "refused": _vllm(404, "The model `m-1` does not exist."),
    },
)

# --- Messages


def _messages(said: Said) -> Frames:
    usage: Json = {}
    if said.usage:
        told, cached, _ = said.usage
        usage = {"input_tokens": told - cached - 5, "cache_creation_input_tokens": 5}
        usage |= {"cache_read_input_tokens": cached, "output_tokens": 1}
    started: Json = {"id": "resp_1", "type": "message", "role": "assistant", "content": []}
    if usage:
        started["usage"] = usage
    found: Frames = [("message_start", {"type": "message_start", "message": started}), ("ping", {"type": "ping"})]
    index = itertools.count()

    def block(begun: Json, *deltas: Json) -> None:
        number = next(index)
        place = {"index": number}
        found.append(("content_block_start", {"type": "content_block_start", **place, "content_block": begun}))
        for delta in deltas:
            found.append(("content_block_delta", {"type": "content_block_delta", **place, "delta": delta}))
        found.append(("content_block_stop", {"type": "content_block_stop", **place}))

    if said.thought:
        pieces = [{"type": "thinking_delta", "thinking": half} for half in halves(said.thought)]
        begun: Json = {"type": "thinking", "thinking": "", "signature": ""}
        block(begun, *pieces, {"type": "signature_delta", "signature": "c2ln"})
    if said.text:
        block({"type": "text", "text": ""}, *({"type": "text_delta", "text": half} for half in halves(said.text)))
    for name, arguments, call_id in said.calls:
        begun: Json = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        block(begun, *({"type": "input_json_delta", "partial_json": half} for half in halves(arguments)))
    stop = {"stop_reason": "tool_use" if said.calls else "end_turn", "stop_sequence": None}
    ended: Json = {"type": "message_delta", "delta": stop}
    if said.usage:
        ended["usage"] = {"output_tokens": said.usage[2]}
    return [*found, ("message_delta", ended), ("message_stop", {"type": "message_stop"})]


def _messages_failed(code: str) -> Frames:
    return [("error", {"type": "error", "error": {"type": code, "message": f"scripted {code}"}})]


def _anthropic(status: int, kind: str, message: str, **headers: str) -> Callable[[], Reply]:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return lambda: refusal(status, body, **headers)


MESSAGES = Dialect(
    "anthropic",
    lambda ids: Messages(ids=ids),
    _messages,
    _messages_failed,
    {
        "context": _anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "quota": _anthropic(400, "invalid_request_error", "Your credit balance is too low to access the API."),
        "key": _anthropic(401, "authentication_error", f"invalid x-api-key {KEY}"),
        "rate": _anthropic(429, "rate_limit_error", "Number of requests exceeded.", retry_after="7"),
        "down": _anthropic(529, "overloaded_error", "Overloaded"),
        "refused": _anthropic(404, "not_found_error", "model: m-1"),
    },
)

ALL = (RESPONSES, CHAT, MESSAGES)
