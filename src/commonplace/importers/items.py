"""The payloads that converters make: response items in the form that Codex writes.

Texts may be given as `str` or, to copy them without decoding, as the raw JSON of a string. Each part of a user's or
developer's message carries its kind, so that nobody has to guess later whose words it holds:

    user.text             the person's own words
    imported.KIND         put there by the agent (KIND as in `WHOSE`)
    memory.KIND           came out of a memory
    compaction.summary    a model's summary of what was cut
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.importers.converter import Payload
from commonplace.protocol.items import PASSTHROUGH
from commonplace.protocol.rollout import Origin

Text = str | msgspec.Raw
Part = tuple[str, Text]
"""Kind and text of one part of a message."""

USER: Final = "user.text"
SUMMARY: Final = "compaction.summary"
WHOSE: Final = frozenset(
    {"injected", "slash_command", "user_shell", "interrupt", "subagent_prompt", "demo", "hook", "file", "instructions"}
    | {"reply", "user_memory"}
)
"""`reply` is what a person answered to a tool: to a question, or in refusing a call; `user_memory` what they asked to
have remembered."""


def imported_kind(kind: str) -> str:
    """Return the name of a kind of text that the agent put there."""
    assert kind in WHOSE, kind
    return f"imported.{kind}"


def message(role: str, parts: list[Part], origin: Origin, media: list[dict[str, Any]] | None = None) -> Payload:
    """Return a message of role user or developer, each part with its kind; `media` are finished content items.

    Media beside no text at all are the person's.
    """
    content: list[dict[str, Any]] = [{"type": "input_text", "text": text} for _, text in parts]
    kinds = [kind for kind, _ in parts]
    for item in media or ():
        content.append(item)
        kinds.append("user.image" if USER in kinds or not parts else "imported.image")
    noted = {"content_item_kinds": kinds}
    return Payload("response_item", {"type": "message", "role": role, "content": content, PASSTHROUGH: noted}, origin)


def answer(text: Text, origin: Origin) -> Payload:
    """Return a message of the model."""
    content = [{"type": "output_text", "text": text}]
    return Payload("response_item", {"type": "message", "role": "assistant", "content": content}, origin)


def reasoning(text: Text, origin: Origin) -> Payload:
    """Return a model's reasoning."""
    content = [{"type": "reasoning_text", "text": text}]
    return Payload("response_item", {"type": "reasoning", "summary": [], "content": content}, origin)


def call(name: str, arguments: Text, call_id: str, origin: Origin) -> Payload:
    """Return a tool call; `arguments` is JSON text."""
    value = {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}
    return Payload("response_item", value, origin)


def output(call_id: str, value: Text | list[dict[str, Any]], origin: Origin) -> Payload:
    """Return what a call gave: one text, or content items made by `text_item` and `image`."""
    return Payload("response_item", {"type": "function_call_output", "call_id": call_id, "output": value}, origin)


def text_item(text: Text) -> dict[str, Any]:
    """Return a text inside an output of several parts."""
    return {"type": "input_text", "text": text}


def image(media_type: str, data: str) -> dict[str, Any]:
    """Return an image, from its base64 text."""
    return {"type": "input_image", "image_url": f"data:{media_type};base64,{data}"}


def compacted(summary: str, replacement: list[dict[str, Any]] | None) -> Payload:
    """Return a compaction: from here on the model saw `replacement` and nothing before it."""
    value: dict[str, Any] = {"message": summary}
    if replacement is not None:
        value["replacement_history"] = replacement
    return Payload("compacted", value)


def summary_item(summary: Text) -> dict[str, Any]:
    """Return the message that a compaction leaves in place of what it cut."""
    content = [{"type": "input_text", "text": summary}]
    return {"type": "message", "role": "user", "content": content, PASSTHROUGH: {"content_item_kinds": [SUMMARY]}}


def rolled_back(turns: int) -> Payload:
    """Return the event by which the last turns are no longer part of the conversation."""
    return Payload("event_msg", {"type": "thread_rolled_back", "num_turns": turns})


def settings(model: str, cwd: str) -> Payload:
    """Return the settings that the following turn ran under."""
    return Payload("turn_context", {"cwd": cwd, "model": model})
