"""Chat Completions, as vLLM, Ollama, llama.cpp and many others serve it.

Items become messages: instructions and leading developer messages are the system message, the turns of a dialogue
alternate, calls stand in the assistant's message and their results follow as tool messages. Pictures in a tool's
result come in a user message after it, because tool messages hold text. Reasoning text (`reasoning_content`, or
`reasoning` in newer servers) is given back only within the turn that it belongs to: models need it between their own
tool calls and templates drop or refuse it elsewhere.

Only what a request asks for is sent: small servers refuse, or misread, fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from commonplace.models.base import CustomTool, FunctionTool, HostedTool, Request, Tool
from commonplace.models.chat_stream import ChatReader
from commonplace.models.dialogue import (
    Assistant,
    DialogueCall,
    Thought,
    User,
    dialogue,
    output_text,
    pictures,
    plain_text,
)
from commonplace.models.item_ids import NewId, new_id
from commonplace.models.reasoning_items import stored_reasoning
from commonplace.models.tool_names import FlatToolNames, declaration
from commonplace.protocol.items import Content

API: Final = "chat"
Json = dict[str, Any]


class Chat:
    """Speaks Chat Completions."""

    path = "/chat/completions"

    def __init__(self, ids: NewId = new_id) -> None:
        self._ids = ids

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request) -> bytes:
        """Return the JSON of a request."""
        body: Json = {
            "model": request.model,
            "messages": messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [_definition(tool) for tool in request.tools]
            body["parallel_tool_calls"] = request.parallel_tool_calls
        if wanted := request.output_schema:
            named = {"name": wanted.name, "strict": wanted.strict, "schema": dict(wanted.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        optional = {
            "reasoning_effort": request.effort,
            "verbosity": request.verbosity,
            "prompt_cache_key": request.prompt_cache_key,
            "service_tier": request.service_tier,
            "max_tokens": request.max_output_tokens,
            "metadata": dict(request.metadata) if request.store and request.metadata else None,
            "store": True if request.store else None,
        }
        body.update({name: value for name, value in optional.items() if value is not None})
        return msgspec.json.encode(body)

    def reader(self, request: Request) -> ChatReader:
        """Return a reader for the answer to this request."""
        return ChatReader(FlatToolNames(request.tools), self._ids)


def _definition(tool: Tool) -> Any:
    match tool:
        case HostedTool():
            return msgspec.Raw(tool.definition)
        case FunctionTool() | CustomTool():
            return {"type": "function", "function": declaration(tool, "parameters")}


def messages(request: Request) -> list[Json]:
    """Return the messages of a request."""
    spoken = dialogue(request.input)
    system = "\n\n".join(text for text in (request.instructions, *spoken.system) if text)
    found: list[Json] = [{"role": "system", "content": system}] if system else []
    asked = max((n for n, turn in enumerate(spoken.turns) if isinstance(turn, User) and turn.parts), default=-1)
    for number, turn in enumerate(spoken.turns):
        if isinstance(turn, User):
            found.extend(_user_messages(turn))
        elif message := _assistant_message(turn, with_reasoning=number > asked):
            found.append(message)
    return found


def _user_messages(turn: User) -> list[Json]:
    found: list[Json] = []
    shown: list[Content] = []
    for result in turn.results:
        images = pictures(result.output)
        text = output_text(result.output) or ("(A picture follows.)" if images else "")
        found.append({"role": "tool", "tool_call_id": result.id, "content": text})
        shown.extend(images)
    if parts := shown + turn.parts:
        found.append({"role": "user", "content": _content(parts)})
    return found


def _content(parts: list[Content]) -> str | list[Json]:
    """Return text as one string where there is nothing else: some servers take no list."""
    if all(part.text is not None and not part.image_url for part in parts):
        return "\n\n".join(part.text or "" for part in parts)
    return [_part(part) for part in parts]


def _part(part: Content) -> Json:
    if part.image_url:
        return {"type": "image_url", "image_url": {"url": part.image_url}}
    if part.audio_url:
        head, _, data = part.audio_url.partition(",")
        kind = head.removeprefix("data:").partition(";")[0].rpartition("/")[2] or "wav"
        return {"type": "input_audio", "input_audio": {"data": data or part.audio_url, "format": kind}}
    return {"type": "text", "text": part.text or ""}


def _assistant_message(turn: Assistant, *, with_reasoning: bool) -> Json | None:
    text = plain_text([part for part in turn.parts if isinstance(part, Content)])
    calls = [
        {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
        for part in turn.parts
        if isinstance(part, DialogueCall)
    ]
    thoughts = [
        part for part in turn.parts if isinstance(part, Thought) and stored_reasoning(API, part.stored) is not None
    ]
    if not text and not calls:
        return None  # reasoning alone says nothing to a model that cannot read it
    message: Json = {"role": "assistant", "content": text or None}
    if thoughts and with_reasoning:
        message["reasoning_content"] = "\n\n".join(part.text for part in thoughts)
    if calls:
        message["tool_calls"] = calls
    return message
