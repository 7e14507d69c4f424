"""Reading Chat Completions: chunks of deltas become items.

An answer has at most one reasoning item and one message, and any number of calls. Servers differ: ids may be missing
or come late, whole calls may arrive in one chunk under the same index, `finish_reason` may come without `[DONE]` or the
other way round, usage stands in a last chunk without choices, in the last one with them, or nowhere. An answer is
complete when either end mark was seen; a stream that stops before is broken.
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

_STOPS: Final[dict[str, Stop]] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _ChatTokenDetails(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _ChatUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _ChatTokenDetails | None = None
    completion_tokens_details: _ChatTokenDetails | None = None


class _Chunk(msgspec.Struct):
    id: str | None = None
    choices: list[_Choice] | None = None
    usage: _ChatUsage | None = None
    error: Any = None


class _Slot:
    """A call that is being written."""

    def __init__(self, index: int | None, call_id: str) -> None:
        self.index = index
        self.call_id = call_id
        self.name = ""
        self.arguments: list[str] = []


_chunk = msgspec.json.Decoder(_Chunk)


class ChatReader:
    """Reads one answer."""

    def __init__(self, names: FlatToolNames, ids: NewId) -> None:
        self.finished = False
        self._names = names
        self._ids = ids
        self._id = ""
        self._reasoning_id = ""
        self._reasoning: list[str] = []
        self._reasoned = False
        self._message_id = ""
        self._text: list[str] = []
        self._calls: list[_Slot] = []
        self._usage: _ChatUsage | None = None
        self._stop: Stop | None = None
        self._refused = False

    def feed(self, event: ServerEvent) -> Iterator[Event]:
        """Yield what a chunk adds."""
        if event.data == b"[DONE]":
            yield from self._complete()
            return
        chunk = _chunk.decode(event.data)
        if chunk.error:
            raise StreamFailed({"error": chunk.error})
        if event.name == "error":
            raise StreamFailed(msgspec.json.decode(event.data))
        self._id = chunk.id or self._id
        self._usage = chunk.usage or self._usage
        for choice in (chunk.choices or [])[:1]:
            if choice.delta is not None:
                yield from self._delta(choice.delta)
            if choice.finish_reason:
                self._stop = _STOPS.get(choice.finish_reason, "end")

    def end(self) -> Iterator[Event]:
        """Yield what is left when the server closed without saying `[DONE]`."""
        if self._stop is not None:
            yield from self._complete()

    def _delta(self, delta: _Delta) -> Iterator[Event]:
        if (thought := delta.reasoning_content or delta.reasoning) and not self._reasoned:
            if not self._reasoning_id:
                self._reasoning_id = self._ids("rs")
                yield ItemAdded(self._reasoning_id, _encode(self._thought()))
            self._reasoning.append(thought)
            yield ReasoningDelta(self._reasoning_id, thought, summary=False)
        self._refused = self._refused or bool(delta.refusal)
        if text := delta.content or delta.refusal:
            yield from self._thought_through()
            if not self._message_id:
                self._message_id = self._ids("msg")
                yield ItemAdded(self._message_id, _encode(self._message()))
            self._text.append(text)
            yield TextDelta(self._message_id, text)
        for call in delta.tool_calls or []:
            yield from self._thought_through()
            self._call(call)

    def _thought_through(self) -> Iterator[Event]:
        """End the reasoning, once, when something else begins."""
        if self._reasoning_id and not self._reasoned:
            self._reasoned = True
            yield ItemDone(_encode(self._thought()))

    def _call(self, delta: _ToolCall) -> None:
        slot = next((slot for slot in self._calls if slot.index == delta.index), None)
        named_again = slot is not None and bool(slot.name and delta.function.name)
        if slot is None or (named_again and (delta.id != slot.call_id if delta.id else delta.index is None)):
            slot = _Slot(delta.index, delta.id or self._ids("call"))
            self._calls.insert(0, slot)  # the newest of an index is the one that grows
        slot.name = slot.name or delta.function.name or ""
        arguments = delta.function.arguments
        if arguments:
            slot.arguments.append(arguments if isinstance(arguments, str) else _encode(arguments).decode())

    def _complete(self) -> Iterator[Event]:
        if self.finished:
            return
        yield from self._thought_through()
        if self._message_id:
            yield ItemDone(_encode(self._message()))
        for slot in reversed(self._calls):
            arguments = "".join(slot.arguments) or "{}"
            item_id = self._ids(self._names.prefix(slot.name))
            item = _encode(self._names.call(slot.name, arguments, slot.call_id, item_id))
            yield ItemAdded(item_id, item)
            yield ItemDone(item)
        if (usage := self._usage) is not None:
            yield _counted(usage)
        self.finished = True
        stop = "refused" if self._refused else self._stop or "end"
        yield Completed(self._id, stop="tools" if self._calls and stop == "end" else stop)

    def _message(self) -> dict[str, Any]:
        content = [{"type": "output_text", "text": "".join(self._text)}] if self._text else []
        return {"type": "message", "id": self._message_id, "role": "assistant", "content": content}

    def _thought(self) -> dict[str, Any]:
        return reasoning_items.item(self._reasoning_id, "chat", "", text="".join(self._reasoning))


def _counted(usage: _ChatUsage) -> Usage:
    cached = usage.prompt_tokens_details or _ChatTokenDetails()
    thought = usage.completion_tokens_details or _ChatTokenDetails()
    told, output = usage.prompt_tokens or 0, usage.completion_tokens or 0
    total = usage.total_tokens or told + output
    return Usage(told, cached.cached_tokens or 0, output, thought.reasoning_tokens or 0, total)


def _encode(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value)
