"""One message of an OpenCode session as payloads: whose words each part holds, what was called and what came back.

A user's text is the person's unless OpenCode marked it as its own (`synthetic`: what a file that was named holds, what
goes with a mode) or the session is a sub-agent's. The model's texts, its reasoning and its calls are parts, each a
record of its own, and so is the output of a call: a part is written before it is finished, and what was imported before
must not change by that. A field of the wrong type is a field that is not there.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.importers import items
from commonplace.importers.converter import Payload
from commonplace.importers.items import Part, Text
from commonplace.importers.json_values import (
    MANY,
    as_text,
    elements_of,
    first_byte,
    is_blank,
    opening,
    text_of,
    word_of,
)
from commonplace.protocol.items import PASSTHROUGH
from commonplace.protocol.memory_traces import is_memory_text, is_memory_tool, reads_memory
from commonplace.protocol.rollout import Origin

_NONE: Final = msgspec.Raw()
_REFUSED: Final = "The user rejected permission to use this specific tool call"
_FEEDBACK: Final = " with the following feedback: "
_OWN_TOOLS: Final = frozenset({
    "apply_patch", "bash", "codesearch", "edit", "glob", "grep", "list", "ls", "lsp", "multiedit", "patch", "question",
    "read", "skill", "task", "todoread", "todowrite", "webfetch", "websearch", "write",
})  # fmt: skip
"""OpenCode's tools. What a server's tool calls its error is that program's text, also where it reads like a refusal."""
_DISMISSED: Final = "The user dismissed this question"
_SHELL: Final = "The following tool was executed by the user"
ABORTED: Final = "MessageAbortedError"


class MessageInfo(msgspec.Struct, gc=False):
    """The facts of a message."""

    id: msgspec.Raw = _NONE
    role: msgspec.Raw = _NONE
    time: msgspec.Raw = _NONE
    model: msgspec.Raw = _NONE
    model_id: msgspec.Raw = msgspec.field(default=_NONE, name="modelID")
    provider_id: msgspec.Raw = msgspec.field(default=_NONE, name="providerID")
    summary: msgspec.Raw = _NONE
    error: msgspec.Raw = _NONE
    path: msgspec.Raw = _NONE


class MessagePart(msgspec.Struct, gc=False):
    """A part of any type."""

    id: msgspec.Raw = _NONE
    type: msgspec.Raw = _NONE
    text: msgspec.Raw = _NONE
    synthetic: msgspec.Raw = _NONE
    ignored: msgspec.Raw = _NONE
    time: msgspec.Raw = _NONE
    prompt: msgspec.Raw = _NONE
    mime: msgspec.Raw = _NONE
    url: msgspec.Raw = _NONE
    filename: msgspec.Raw = _NONE
    tool: msgspec.Raw = _NONE
    call_id: msgspec.Raw = msgspec.field(default=_NONE, name="callID")
    state: msgspec.Raw = _NONE


class _CallState(msgspec.Struct, gc=False):
    status: msgspec.Raw = _NONE
    input: msgspec.Raw = _NONE
    output: msgspec.Raw = _NONE
    error: msgspec.Raw = _NONE
    metadata: msgspec.Raw = _NONE
    attachments: msgspec.Raw = _NONE


class Fields(msgspec.Struct, gc=False):
    """Fields of the small objects inside messages, parts and sessions."""

    created: msgspec.Raw = _NONE
    completed: msgspec.Raw = _NONE
    start: msgspec.Raw = _NONE
    end: msgspec.Raw = _NONE
    name: msgspec.Raw = _NONE
    data: msgspec.Raw = _NONE
    message: msgspec.Raw = _NONE
    cwd: msgspec.Raw = _NONE
    exit: msgspec.Raw = _NONE
    answers: msgspec.Raw = _NONE
    questions: msgspec.Raw = _NONE
    question: msgspec.Raw = _NONE
    model_id: msgspec.Raw = msgspec.field(default=_NONE, name="modelID")
    provider_id: msgspec.Raw = msgspec.field(default=_NONE, name="providerID")
    message_id: msgspec.Raw = msgspec.field(default=_NONE, name="messageID")
    part_id: msgspec.Raw = msgspec.field(default=_NONE, name="partID")


_part = msgspec.json.Decoder(MessagePart)
_info = msgspec.json.Decoder(MessageInfo)
_fields = msgspec.json.Decoder(Fields)
_state = msgspec.json.Decoder(_CallState)


def decode_info(raw: bytes | msgspec.Raw) -> MessageInfo:
    """Return the facts of a message."""
    return _info.decode(raw)


def decode_part(raw: bytes | msgspec.Raw) -> MessagePart:
    """Return a part."""
    return _part.decode(raw)


def fields(raw: msgspec.Raw) -> Fields:
    """Return the fields of an object; none for any other value."""
    return _fields.decode(raw) if first_byte(raw) == b"{" else Fields()


def model_of(info: MessageInfo) -> tuple[str, str]:
    """Return the provider and the model of a message."""
    chosen = fields(info.model)
    provider = word_of(info.provider_id) or word_of(chosen.provider_id)
    return provider, word_of(info.model_id) or word_of(chosen.model_id)


def user_message(parts: list[MessagePart], origin: Origin, *, is_subagent: bool) -> Payload | None:
    """Return what a user message says; None if it says nothing."""
    said: list[Part] = []
    media: list[dict[str, Any]] = []
    for part in parts:
        kind = word_of(part.type)
        if kind == "text" and (text := text_of(part.text)) is not None and not is_blank(text):
            said.append((_kind_of(part, text, is_subagent=is_subagent), text))
        elif kind == "subtask" and (text := text_of(part.prompt)) is not None:
            said.append((items.imported_kind("slash_command"), text))
        elif kind == "file" and (image := _image(part)) is not None:
            media.append(image)
        elif kind == "file" and (name := word_of(part.filename)):
            said.append((items.imported_kind("file"), name))
    if not said and not media:
        return None
    recalled = all(name == "memory.injected" for name, _ in said) and not media
    return items.message("user", said, Origin(id=origin.id, memory=recalled), media)


def _kind_of(part: MessagePart, text: Text, *, is_subagent: bool) -> str:
    if is_memory_text(opening(text)):
        return "memory.injected"
    if bytes(part.synthetic) == b"true" or bytes(part.ignored) == b"true":
        return items.imported_kind("user_shell" if opening(text).startswith(_SHELL) else "injected")
    return items.imported_kind("subagent_prompt") if is_subagent else items.USER


def _image(part: MessagePart) -> dict[str, Any] | None:
    """Return an image that a part holds in itself."""
    mime, raw = word_of(part.mime), text_of(part.url)
    if not mime.startswith("image/") or raw is None or opening(raw, 5) != "data:":
        return None
    url = raw if isinstance(raw, str) else msgspec.json.decode(raw, type=str)
    return {"type": "input_image", "image_url": url}


def is_own(payload: Payload) -> bool:
    """Say whether a message holds words or pictures of the person, so that a turn begins with it."""
    kinds: list[str] = payload.value[PASSTHROUGH]["content_item_kinds"]
    return any(kind.startswith("user.") for kind in kinds)


def spoken(part: MessagePart, origin: Origin) -> Payload | None:
    """Return a text or the reasoning of the model; None for any other part, or an empty one."""
    text = text_of(part.text)
    if text is None or is_blank(text):
        return None
    match word_of(part.type):
        case "text":
            return items.answer(text, origin)
        case "reasoning":
            return items.reasoning(text, origin)
        case _:
            return None


def call(part: MessagePart, key: str, call_id: str) -> list[list[Payload]]:
    """Return a tool's call, and (if it ended) its output with what the person said to it, each a record's payloads."""
    name = word_of(part.tool) or "tool"
    state = _state.decode(part.state) if first_byte(part.state) == b"{" else _CallState()
    arguments = as_text(state.input) if first_byte(state.input) == b"{" else "{}"
    recalled = _is_memory_tool(name) or (isinstance(arguments, str) and reads_memory(arguments))
    records = [[items.call(name, arguments, call_id, Origin(id=key, memory=recalled))]]
    status = word_of(state.status)
    if status not in ("completed", "error"):
        return records
    text = text_of(state.error if status == "error" else state.output)
    is_own = status == "error" and name in _OWN_TOOLS
    error = opening(text, len(_REFUSED)) if is_own and text is not None else ""
    refused = error.startswith((_REFUSED, _DISMISSED))
    noted = Origin(id=f"{key}#output", ok=_ok(name, status, state), memory=recalled, refused=refused)
    output = [items.output(call_id, _output(text, state), noted)]
    if reply := _reply(name, text if refused else None, state):
        output.append(items.message("user", [(items.imported_kind("reply"), reply)], Origin(id=noted.id)))
    return [*records, output]


def _ok(name: str, status: str, state: _CallState) -> bool | None:
    """Say whether a call worked: a command did if it gave 0, and one that was stopped gave nothing."""
    if status == "error":
        return False
    code = fields(state.metadata).exit
    if name == "bash":
        return word_of(code) == "0" if word_of(code) else None
    return True


def _output(text: Text | None, state: _CallState) -> Text | list[dict[str, Any]]:
    pictures = [_image(_part.decode(raw)) for raw in elements_of(state.attachments, MANY) if first_byte(raw) == b"{"]
    shown = [picture for picture in pictures if picture is not None]
    value = text if text is not None else ""
    return [items.text_item(value), *shown] if shown else value


def _reply(name: str, refusal: Text | None, state: _CallState) -> str:
    """Return what the person said in refusing a call, or answered to the questions of one."""
    if isinstance(refusal, str) and refusal.startswith(_REFUSED + _FEEDBACK):
        return refusal.removeprefix(_REFUSED + _FEEDBACK).strip()
    if name != "question":
        return ""
    answers = [_words(raw) for raw in elements_of(fields(state.metadata).answers, MANY)]
    asked = [word_of(fields(raw).question) for raw in elements_of(fields(state.input).questions, MANY)]
    return "\n".join(f"{question} {answer}" for question, answer in zip(asked, answers, strict=False) if answer)


def _words(raw: msgspec.Raw) -> str:
    return ", ".join(word for each in elements_of(raw, MANY) if (word := word_of(each)))


def _is_memory_tool(name: str) -> bool:
    """Say whether a tool is one of a memory server; OpenCode names tools of servers `SERVER_TOOL`."""
    server, _, tool = name.partition("_")
    return is_memory_tool(name) or (bool(tool) and is_memory_tool(f"mcp__{server}__{tool}"))
