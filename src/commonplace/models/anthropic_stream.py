"""Reading Messages: content blocks become items.

A text block is a message, a tool use a call, a thinking block a reasoning item that holds the block as it came. Blocks
of the server's own tools become a web search call, or are passed over. The reader checks that a block is open before it
grows: a server that mixes them up does not speak this API.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from commonplace.models import reasoning_items
from commonplace.models.base import Completed, Event, ItemAdded, ItemDone, ReasoningDelta, Stop, TextDelta, Usage
from commonplace.models.http import StreamFailed
from commonplace.models.item_ids import NewId
from commonplace.models.sse import ServerEvent
from commonplace.models.tool_names import FlatToolNames

API: Final = "anthropic"
_STOPS: Final[dict[str, Stop]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "refusal": "refused",
    "pause_turn": "paused",
}
_FULL: Final = "model_context_window_exceeded"


class _Block(msgspec.Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    input: dict[str, Any] = {}
    partial_json: str = ""
    stop_reason: str | None = None


class _MessagesTokenDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class _MessagesUsage(msgspec.Struct):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: _MessagesTokenDetails | None = None


class _MessageStart(msgspec.Struct):
    id: str = ""
    usage: _MessagesUsage | None = None


class _MessagesEvent(msgspec.Struct):
    type: str
    index: int = 0
    message: _MessageStart = msgspec.field(default_factory=_MessageStart)
    content_block: msgspec.Raw = msgspec.Raw(b"{}")
    delta: _Block = msgspec.field(default_factory=_Block)
    usage: _MessagesUsage | None = None
    error: Any = None


class _OpenBlock:
    """A block that is being written."""

    def __init__(self, block: _Block, begun: bytes, item_id: str) -> None:
        self.block = block
        self.begun = begun
        self.item_id = item_id
        self.text = [block.text or block.thinking]
        self.signature = [block.signature]
        self.json: list[str] = []


_data = msgspec.json.Decoder(_MessagesEvent)


class MessagesReader:
    """Reads one answer."""

    def __init__(self, names: FlatToolNames, ids: NewId, model: str = "") -> None:
        self.finished = False
        self._model = model
        self._names = names
        self._ids = ids
        self._id = ""
        self._open: dict[int, _OpenBlock] = {}
        self._usage = _MessagesUsage()
        self._stop: str | None = None

    def feed(self, event: ServerEvent) -> Iterator[Event]:
        """Yield what a server's event means; unknown events and pings mean nothing."""
        data = _data.decode(event.data)
        match data.type:
            case "message_start":
                self._id = data.message.id
                self._count(data.message.usage)
            case "content_block_start":
                yield from self._begin(data.index, bytes(data.content_block))
            case "content_block_delta":
                yield from self._grow(self._block(data.index), data.delta)
            case "content_block_stop":
                yield from self._finish(self._block(data.index))
                del self._open[data.index]
            case "message_delta":
                self._stop = data.delta.stop_reason or self._stop
                self._count(data.usage)
            case "message_stop":
                yield from self._complete()
            case "error":
                raise StreamFailed({"error": data.error})
            case _:
                pass

    def end(self) -> Iterator[Event]:
        """Yield nothing: an answer is complete only if the server says so."""
        return iter(())

    def _block(self, index: int) -> _OpenBlock:
        if index not in self._open:
            raise msgspec.DecodeError(f"content block {index} was never begun")
        return self._open[index]

    def _begin(self, index: int, begun: bytes) -> Iterator[Event]:
        block = msgspec.json.decode(begun, type=_Block)
        prefix = {"text": "msg", "thinking": "rs", "redacted_thinking": "rs", "server_tool_use": "ws"}.get(block.type)
        prefix = self._names.prefix(block.name) if block.type == "tool_use" else prefix
        opened = _OpenBlock(block, begun, self._ids(prefix or "item"))
        self._open[index] = opened
        if block.type == "text":
            yield ItemAdded(opened.item_id, _encode(_message(opened.item_id, "")))
        elif block.type in ("thinking", "redacted_thinking"):
            yield ItemAdded(opened.item_id, _encode({"type": "reasoning", "id": opened.item_id, "summary": []}))
        if block.text:
            yield TextDelta(opened.item_id, block.text)
        if block.thinking:
            yield ReasoningDelta(opened.item_id, block.thinking)

    def _grow(self, opened: _OpenBlock, delta: _Block) -> Iterator[Event]:
        match delta.type:
            case "text_delta":
                opened.text.append(delta.text)
                yield TextDelta(opened.item_id, delta.text)
            case "thinking_delta":
                opened.text.append(delta.thinking)
                if delta.thinking:
                    yield ReasoningDelta(opened.item_id, delta.thinking)
            case "signature_delta":
                opened.signature.append(delta.signature)
            case "input_json_delta":
                opened.json.append(delta.partial_json)
            case _:
                pass

    def _finish(self, opened: _OpenBlock) -> Iterator[Event]:
        block, item_id, text = opened.block, opened.item_id, "".join(opened.text)
        match block.type:
            case "text":
                yield ItemDone(_encode(_message(item_id, text)))
            case "thinking":
                begun = msgspec.json.decode(opened.begun, type=dict[str, Any])
                whole = {**begun, "thinking": text, "signature": "".join(opened.signature)}
                yield ItemDone(
                    _encode(reasoning_items.item(item_id, API, bound(self._model, _encode(whole)), summary=text))
                )
            case "redacted_thinking":
                yield ItemDone(_encode(reasoning_items.item(item_id, API, bound(self._model, opened.begun))))
            case "tool_use":
                item = _encode(self._names.call(block.name, _arguments(opened), block.id, item_id))
                yield ItemAdded(item_id, item)
                yield ItemDone(item)
            case "server_tool_use" if block.name == "web_search":
                action = {"type": "search", **msgspec.json.decode(_arguments(opened), type=dict[str, Any])}
                yield ItemDone(
                    _encode({"type": "web_search_call", "id": item_id, "status": "completed", "action": action})
                )
            case _:
                pass

    def _count(self, usage: _MessagesUsage | None) -> None:
        """Keep the newest number of each kind: later events repeat earlier ones or add to them."""
        if usage is not None:
            newer = {name: value for name, value in msgspec.structs.asdict(usage).items() if value is not None}
            self._usage = msgspec.structs.replace(self._usage, **newer)

    def _complete(self) -> Iterator[Event]:
        usage = self._usage
        read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        told, said = (usage.input_tokens or 0) + read + written, usage.output_tokens or 0
        thought = (usage.output_tokens_details or _MessagesTokenDetails()).thinking_tokens or 0
        if usage.input_tokens is not None or usage.output_tokens is not None:
            yield Usage(told, read, said, thought, told + said)
        if self._stop == _FULL:
            raise StreamFailed({"code": "context_length_exceeded", "message": "the answer filled the context window"})
        self.finished = True
        stop = _STOPS.get(self._stop or "end_turn", "end")
        yield Completed(self._id, False if stop == "paused" else None, stop)


def bound(model: str, block: bytes) -> str:
    """Return a thinking block with the model that it belongs to: others refuse it, or cannot use it."""
    return f"{model} {block.decode()}"


def _message(item_id: str, text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}] if text else []
    return {"type": "message", "id": item_id, "role": "assistant", "content": content}


def _arguments(opened: _OpenBlock) -> str:
    """Return a call's arguments: in pieces as they were written, or whole from the beginning of the block."""
    return "".join(opened.json) or _encode(opened.block.input).decode()


def _encode(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value)
