"""The OpenAI Responses API: items go out and come back as they are.

An item that the server finished is handed on as the very bytes it sent (encrypted reasoning included) and sent back
with nothing but our bookkeeping taken off. Hosted tools are the server's affair: their definitions and their call
items pass through. Reasoning that another API stored is left out, because this server refuses what it did not encrypt.

An input that ends with a `compaction_trigger` asks the server to sum up the conversation itself (remote compaction):
its answer is exactly one compaction item, and everything else in it is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from commonplace.errors import RequestRefused
from commonplace.models.base import (
    Completed,
    CustomTool,
    Event,
    FunctionTool,
    HostedTool,
    ItemAdded,
    ItemDone,
    ReasoningDelta,
    Request,
    Stop,
    TextDelta,
    Tool,
    Usage,
)
from commonplace.models.http import StreamFailed
from commonplace.models.reasoning_items import is_ours
from commonplace.models.sse import ServerEvent
from commonplace.protocol import items

TRIGGER: Final = "compaction_trigger"
_COMPACTIONS: Final = ("compaction", "compaction_summary")
_SUMMARY: Final = "response.reasoning_summary_text.delta"


class Responses:
    """Speaks the Responses API."""

    path = "/responses"

    def __init__(self) -> None:
        self._before: tuple[list[bytes], list[msgspec.Raw | None]] = ([], [])
        """The last request's items and what was sent for each: the next request begins with most of them."""

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request) -> bytes:
        """Return the JSON of a request."""
        body: dict[str, Any] = {"model": request.model}
        first: list[Any] = [_developer(request.instructions)] if request.instructions else []
        body["input"] = first + self._sent(request.input)
        body["tools"] = definitions(request.tools)
        body["tool_choice"] = "auto"
        body["parallel_tool_calls"] = request.parallel_tool_calls
        # `none` is an effort, but no kind of summary
        wanted = {"effort": request.effort, "summary": None if request.summary == "none" else request.summary}
        if reasoning := {name: value for name, value in wanted.items() if value}:
            body["reasoning"] = reasoning
            body["include"] = ["reasoning.encrypted_content"]
        body["store"] = request.store
        body["stream"] = True
        if text := _text(request):
            body["text"] = text
        optional = {
            "prompt_cache_key": request.prompt_cache_key,
            "service_tier": request.service_tier,
            "max_output_tokens": request.max_output_tokens,
            "client_metadata": dict(request.metadata) or None,
        }
        body.update({name: value for name, value in optional.items() if value is not None})
        return msgspec.json.encode(body)

    def _sent(self, given: tuple[bytes, ...]) -> list[Any]:
        """Return the items as they are sent; those that are the very objects of the last request cost nothing."""
        before, made = self._before
        same = next(
            (place for place, (one, other) in enumerate(zip(before, given, strict=False)) if one is not other), None
        )
        same = min(len(before), len(given)) if same is None else same
        fresh = [None if is_ours(item) else msgspec.Raw(items.wire(item)) for item in given[same:]]
        self._before = ([*given], made[:same] + fresh)
        return [raw for raw in self._before[1] if raw is not None]

    def reader(self, request: Request) -> ResponsesReader:
        """Return a reader for the answer to this request."""
        return ResponsesReader(compacts=bool(request.input) and items.kind(request.input[-1]) == TRIGGER)


def _developer(text: str) -> dict[str, Any]:
    """Return base instructions as Codex 0.166 sends them: as the first message of the input."""
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}


def _text(request: Request) -> dict[str, Any]:
    text: dict[str, Any] = {}
    if request.verbosity:
        text["verbosity"] = request.verbosity
    if wanted := request.output_schema:
        text["format"] = {
            "type": "json_schema",
            "name": wanted.name,
            "strict": wanted.strict,
            "schema": dict(wanted.schema),
        }
    return text


def definitions(tools: Iterable[Tool]) -> list[Any]:
    """Return tools as this API has them; those of one namespace stand together where the first of them stood."""
    found: list[Any] = []
    spaces: dict[str, list[Any]] = {}
    for tool in tools:
        match tool:
            case HostedTool():
                found.append(msgspec.Raw(tool.definition))
            case CustomTool():
                free: dict[str, Any] = {"type": "custom", "name": tool.name, "description": tool.description}
                found.append({**free, "format": dict(tool.format)} if tool.format else free)
            case FunctionTool(namespace=None):
                found.append(_function(tool))
            case FunctionTool(namespace=str() as space):
                if space not in spaces:
                    spaces[space] = []
                    found.append({"type": "namespace", "name": space, "description": "", "tools": spaces[space]})
                spaces[space].append(_function(tool))
            case _:
                raise AssertionError(tool)
    return found


def _function(tool: FunctionTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "strict": tool.strict,
        "parameters": dict(tool.parameters),
    }


class _ResponsesTokenDetails(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _ResponsesUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int | None = None
    input_tokens_details: _ResponsesTokenDetails | None = None
    output_tokens_details: _ResponsesTokenDetails | None = None


class _IncompleteDetails(msgspec.Struct):
    reason: str = ""


class _Response(msgspec.Struct):
    id: str = ""
    usage: _ResponsesUsage | None = None
    end_turn: bool | None = None
    error: Any = None
    incomplete_details: _IncompleteDetails | None = None


class _ResponsesEvent(msgspec.Struct):
    type: str
    item: msgspec.Raw = msgspec.Raw()
    item_id: str = ""
    delta: Any = ""
    summary_index: int = 0
    response: _Response = msgspec.field(default_factory=_Response)


class _Id(msgspec.Struct):
    id: str = ""


_data = msgspec.json.Decoder(_ResponsesEvent)
_id = msgspec.json.Decoder(_Id)
_WHY: Final[dict[str, Stop]] = {"max_output_tokens": "length", "content_filter": "refused"}


def _line(item: msgspec.Raw) -> bytes:
    """Return an item on one line: where data came in several, their ends are white space between its fields."""
    return bytes(item).replace(b"\n", b" ")


class ResponsesReader:
    """Reads one answer."""

    def __init__(self, *, compacts: bool = False) -> None:
        self.finished = False
        self._compacts = compacts
        self._compactions = 0
        self._calls = False
        self._refused = False

    def feed(self, event: ServerEvent) -> Iterator[Event]:
        """Yield what a server's event means; unknown events mean nothing."""
        if event.data == b"[DONE]":
            return
        data = _data.decode(event.data)
        match data.type:
            case "response.output_item.added" if not self._compacts:
                yield ItemAdded(_id.decode(data.item).id, _line(data.item))
            case "response.output_text.delta" | "response.refusal.delta" if not self._compacts:
                self._refused = self._refused or data.type == "response.refusal.delta"
                yield TextDelta(data.item_id, str(data.delta))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" if not self._compacts:
                yield ReasoningDelta(data.item_id, str(data.delta), summary=data.type == _SUMMARY)
            case "response.reasoning_summary_part.added" if data.summary_index and not self._compacts:
                yield ReasoningDelta(data.item_id, "\n\n")
            case "response.output_item.done":
                yield from self._done(_line(data.item))
            case "response.completed" | "response.done" | "response.incomplete":
                yield from self._completed(data.response)
            case "response.failed":
                raise StreamFailed(data.response.error)
            case "error":
                raise StreamFailed(msgspec.json.decode(event.data))
            case _:
                pass

    def end(self) -> Iterator[Event]:
        """Yield nothing: an answer is complete only if the server says so."""
        return iter(())

    def _done(self, item: bytes) -> Iterator[Event]:
        kind = items.kind(item)
        self._calls = self._calls or kind in ("function_call", "custom_tool_call", "local_shell_call")
        if kind in _COMPACTIONS:
            self._compactions += 1
        if not self._compacts or kind in _COMPACTIONS:
            yield ItemDone(item)

    def _completed(self, response: _Response) -> Iterator[Event]:
        if self._compacts and self._compactions != 1:
            # Not a BadAnswer, which would be tried again: the whole window again, for the same result.
            raise RequestRefused(
                f"The server was to sum up the conversation and sent {self._compactions} summaries.",
                hint="Compact with a summary of our own instead.",
                compactions=self._compactions,
            )
        if (usage := response.usage) is not None:
            cached = (usage.input_tokens_details or _ResponsesTokenDetails()).cached_tokens or 0
            thought = (usage.output_tokens_details or _ResponsesTokenDetails()).reasoning_tokens or 0
            total = usage.total_tokens or usage.input_tokens + usage.output_tokens
            yield Usage(usage.input_tokens, cached, usage.output_tokens, thought, total)
        self.finished = True
        stop: Stop = "tools" if self._calls else "refused" if self._refused else "end"
        if response.incomplete_details is not None:
            stop = _WHY.get(response.incomplete_details.reason, "length")
        yield Completed(response.id, response.end_turn, stop)
