"""Anthropic Messages.

A dialogue maps onto it directly: results stand first in the user's turn after their calls. Thinking blocks are kept
as they came, signature and all, inside reasoning items, and are sent back unchanged before what followed them, to the
model that thought them: a signature is good for no other.

Structured output uses the API's own parameter (`output_config.format`), not a forced tool: a forced tool excludes
thinking and other tools, newer models refuse it, and every model of the catalogue has the parameter. The answer is
then the text of an ordinary message, as with the other two APIs.

Cache breakpoints (four are allowed) stand at the end of the system prompt, which covers the tools before it, and at the
end of the last two user turns: the newest makes this request's prefix readable for the next one, the one before it
finds what the previous request wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from commonplace.models.anthropic_stream import API, MessagesReader
from commonplace.models.base import CustomTool, FunctionTool, HostedTool, Request, Tool
from commonplace.models.catalog import ModelInfo, model_info
from commonplace.models.dialogue import Assistant, DialogueCall, DialogueResult, Thought, User, dialogue, fields
from commonplace.models.item_ids import NewId, new_id
from commonplace.models.reasoning_items import stored_reasoning
from commonplace.models.tool_names import FlatToolNames, arguments_of, declaration
from commonplace.protocol.items import Content

VERSION: Final = "2023-06-01"
BUDGETS: Final = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 24_000, "xhigh": 32_000, "max": 32_000}
"""Tokens of thinking per effort, for models that take a budget and no effort."""
EARLIER: Final = "(Earlier messages are not shown.)"
CACHED: Final = {"type": "ephemeral"}
Json = dict[str, Any]


class Messages:
    """Speaks the Messages API."""

    path = "/messages"

    def __init__(self, info: Callable[[str], ModelInfo] = model_info, ids: NewId = new_id) -> None:
        self._info = info
        self._ids = ids

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the headers that carry the key and the version."""
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def body(self, request: Request) -> bytes:
        """Return the JSON of a request."""
        spoken = dialogue(request.input)
        info = self._info(request.model)
        room = request.max_output_tokens or info.max_output
        body: Json = {"model": request.model, "max_tokens": room, "stream": True}
        if request.tools:
            body["tools"] = [_definition(tool) for tool in request.tools]
            alone = {} if request.parallel_tool_calls else {"disable_parallel_tool_use": True}
            body["tool_choice"] = {"type": "auto", **alone}
        system: list[Json] = [
            {"type": "text", "text": text} for text in (request.instructions, *spoken.system) if text.strip()
        ]
        if system:
            system[-1]["cache_control"] = CACHED
            body["system"] = system
        body["messages"] = _messages(spoken.turns, request.model)
        body.update(_thinking(request, info, room))
        if request.service_tier:
            body["service_tier"] = request.service_tier
        if user := request.metadata.get("user_id"):
            body["metadata"] = {"user_id": user}  # the only key that this API takes
        return msgspec.json.encode(body)

    def reader(self, request: Request) -> MessagesReader:
        """Return a reader for the answer to this request."""
        return MessagesReader(FlatToolNames(request.tools), self._ids, request.model)


def _thinking(request: Request, info: ModelInfo, room: int) -> Json:
    found: Json = {}
    config: Json = {}
    if request.effort and request.effort != "none":
        if info.thinking == "budget":
            found["thinking"] = {"type": "enabled", "budget_tokens": min(BUDGETS.get(request.effort, 4096), room - 1)}
        else:
            found["thinking"] = {"type": "adaptive"}
            if request.summary and request.summary != "none":
                found["thinking"]["display"] = "summarized"
            config["effort"] = "low" if request.effort == "minimal" else request.effort
    if wanted := request.output_schema:
        config["format"] = {"type": "json_schema", "schema": dict(wanted.schema)}
    return {**found, "output_config": config} if config else found


def _definition(tool: Tool) -> Any:
    match tool:
        case HostedTool():
            return msgspec.Raw(tool.definition)
        case FunctionTool() | CustomTool():
            return declaration(tool, "input_schema")


def _messages(turns: list[Assistant | User], model: str) -> list[Json]:
    found: list[Json] = []
    for turn in turns:
        role = "user" if isinstance(turn, User) else "assistant"
        blocks = _user_blocks(turn) if isinstance(turn, User) else _assistant_blocks(turn, model)
        if not blocks:
            continue
        if found and found[-1]["role"] == role:  # a turn between them had nothing that this API can be shown
            found[-1]["content"].extend(blocks)
        else:
            found.append({"role": role, "content": blocks})
    if not found or found[0]["role"] != "user":
        found.insert(0, {"role": "user", "content": [{"type": "text", "text": EARLIER}]})
    for message in [each for each in found if each["role"] == "user"][-2:]:
        message["content"][-1]["cache_control"] = CACHED
    return found


def _user_blocks(turn: User) -> list[Json]:
    blocks: list[Json] = [_result(result) for result in turn.results]
    return blocks + [block for part in turn.parts if (block := _block(part))]


def _result(result: DialogueResult) -> Json:
    if isinstance(result.output, str):
        content: Any = result.output or None
    else:
        content = [block for part in result.output if (block := _block(part))] or None
    return fields({"type": "tool_result", "tool_use_id": result.id, "content": content})


def _block(part: Content) -> Json | None:
    if part.image_url:
        return {"type": "image", "source": _source(part.image_url)}
    if part.audio_url:
        return {"type": "text", "text": "(A sound was attached, which this model cannot hear.)"}
    return {"type": "text", "text": part.text} if part.text and part.text.strip() else None


def _source(url: str) -> Json:
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {"type": "base64", "media_type": head[5:-7], "data": data}
    return {"type": "url", "url": url}


def _assistant_blocks(turn: Assistant, model: str) -> list[Any]:
    blocks: list[Any] = []
    for part in turn.parts:
        match part:
            case Thought():
                whose, _, block = (stored_reasoning(API, part.stored) or "").partition(" ")
                if block and whose == model:
                    blocks.append(msgspec.Raw(block.encode()))
            case DialogueCall():
                call = {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_of(part.arguments)}
                blocks.append(call)
            case Content():
                blocks.append({"type": "text", "text": part.text})
    if blocks and all(isinstance(block, msgspec.Raw) for block in blocks):
        return []  # thinking that led to nothing, because the turn was interrupted
    return blocks
