"""One message of a Gemini session as payloads: whose words each part holds, what was called and what came back.

What a person typed is `displayContent` where there is one; `content` is that after files were put in. Calls and their
outputs are taken from `toolCalls`; newer versions repeat them, and thoughts, among the parts of `content`, and those
repeats are left out. A field of the wrong type is a field that is not there.
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
    joined,
    opening,
    text_of,
    time_of,
    word_of,
)
from commonplace.patterns import regex
from commonplace.protocol import fragments
from commonplace.protocol.memory_traces import is_memory_text, is_memory_tool, reads_memory
from commonplace.protocol.rollout import Origin

_NONE: Final = msgspec.Raw()


class GeminiRecord(msgspec.Struct, gc=False):
    """Any line of a session, any message in it, and the document of the old form."""

    id: msgspec.Raw = _NONE
    type: msgspec.Raw = _NONE
    timestamp: msgspec.Raw = _NONE
    content: msgspec.Raw = _NONE
    display: msgspec.Raw = msgspec.field(default=_NONE, name="displayContent")
    calls: msgspec.Raw = msgspec.field(default=_NONE, name="toolCalls")
    thoughts: msgspec.Raw = _NONE
    model: msgspec.Raw = _NONE
    update: msgspec.Raw = msgspec.field(default=_NONE, name="$set")
    rewind: msgspec.Raw = msgspec.field(default=_NONE, name="$rewindTo")
    session_id: msgspec.Raw = msgspec.field(default=_NONE, name="sessionId")
    start_time: msgspec.Raw = msgspec.field(default=_NONE, name="startTime")
    kind: msgspec.Raw = _NONE
    summary: msgspec.Raw = _NONE
    directories: msgspec.Raw = _NONE
    messages: msgspec.Raw = _NONE


class _RawPart(msgspec.Struct, gc=False):
    text: msgspec.Raw = _NONE
    thought: msgspec.Raw = _NONE
    call: msgspec.Raw = msgspec.field(default=_NONE, name="functionCall")
    response: msgspec.Raw = msgspec.field(default=_NONE, name="functionResponse")
    media: msgspec.Raw = msgspec.field(default=_NONE, name="inlineData")


class _RawCall(msgspec.Struct, gc=False):
    """An entry of `toolCalls`, and the `functionCall` and `functionResponse` of a part."""

    id: msgspec.Raw = _NONE
    name: msgspec.Raw = _NONE
    args: msgspec.Raw = _NONE
    result: msgspec.Raw = _NONE
    status: msgspec.Raw = _NONE
    display: msgspec.Raw = msgspec.field(default=_NONE, name="resultDisplay")
    timestamp: msgspec.Raw = _NONE
    response: msgspec.Raw = _NONE
    parts: msgspec.Raw = _NONE


class _RawResponse(msgspec.Struct, gc=False):
    output: msgspec.Raw = _NONE
    error: msgspec.Raw = _NONE


class _Media(msgspec.Struct, gc=False):
    kind: msgspec.Raw = msgspec.field(default=_NONE, name="mimeType")
    data: msgspec.Raw = _NONE


class _Thought(msgspec.Struct, gc=False):
    subject: msgspec.Raw = _NONE
    description: msgspec.Raw = _NONE


class GeminiMessage(msgspec.Struct):
    """What one message says, and the calls it made; each call is a record of its own, because it may come later."""

    said: list[Payload] = []
    texts: list[Text] = []
    """All of its texts as they stand in `content`, by which copies of a message are told."""
    calls: list[GeminiCall] = []
    is_turn: bool = False
    snapshot: Text | None = None
    """The summary, if the message is one."""


class GeminiCall(msgspec.Struct):
    """A call, what it gave, or both."""

    id: str
    call: Payload | None = None
    output: Payload | None = None
    time: str = ""


_record = msgspec.json.Decoder(GeminiRecord)
_part = msgspec.json.Decoder(_RawPart)
_call = msgspec.json.Decoder(_RawCall)
_response = msgspec.json.Decoder(_RawResponse)
_media = msgspec.json.Decoder(_Media)
_thought = msgspec.json.Decoder(_Thought)

_SNAPSHOT: Final = "<state_snapshot>"
_INJECTED: Final = (
    "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
    "User has manually exited Plan Mode.",
    "Plan approved. Switching to ",
)
"""What the program says in the person's place, besides what stands in the registry of fragments."""
_GO_ON: Final = frozenset({"Please continue.", "System: Please continue."})
_SHELL: Final = "I ran the following shell command:"
_FILES_BEGIN: Final = "--- Content from referenced files ---"
_FILES_END: Final = "--- End of content ---"
_COMMAND: Final = regex(r"\?|/(?![/*])[^\s/]*(?:\s|$)")
"""A command of the program; a path that a sentence begins with has a second slash."""
_DONE: Final = {"success": True, "error": False, "cancelled": False}


def decode(raw: bytes | msgspec.Raw) -> GeminiRecord:
    """Return the fields of a record (raises msgspec.DecodeError, RecursionError)."""
    return _record.decode(raw)


def read(record: GeminiRecord, origin: Origin, *, subagent: bool = False) -> GeminiMessage | None:
    """Return what a message says; None if it is of no known type.

    Raises:
        TooDense: it has more parts than any message.
    """
    kind = word_of(record.type)
    if kind == "user":
        return _from_user(record, origin, subagent=subagent)
    if kind == "gemini":
        return _from_model(record, origin)
    return GeminiMessage() if kind in ("info", "error", "warning") else None


def _from_user(record: GeminiRecord, origin: Origin, *, subagent: bool) -> GeminiMessage:
    parts = _parts(record.content)
    texts = _texts(parts)
    responses = [part.response for part in parts if part.response]
    shown = [text for text in _texts(_parts(record.display)) or _apart(texts) if not is_blank(text)]
    kinds = [items.imported_kind("injected")] * len(shown) if responses else _kinds(shown, subagent=subagent)
    media = [] if responses else _images(parts)
    message = GeminiMessage(texts=texts, is_turn=items.USER in kinds or (not shown and bool(media)))
    message.snapshot = next((text for text in texts if _SNAPSHOT in opening(text, 2**16)), None)
    if shown or media:
        noted = Origin(id=origin.id, offset=origin.offset, memory=all(kind.startswith("memory.") for kind in kinds))
        if not kinds:
            noted = origin
        said: list[Part] = list(zip(kinds, shown, strict=True))
        message.said.append(items.message("user", said, noted, media))
    for place, raw in enumerate(responses):
        found = _decoded(raw)
        call_id = word_of(found.id) or f"{origin.id}-{place}"
        value = _given(found, parts if len(responses) == 1 else [])
        message.calls.append(GeminiCall(call_id, None, items.output(call_id, value, origin)))
    return message


def _kinds(texts: list[Text], *, subagent: bool) -> list[str]:
    """Return the kind of each text of a user's message."""
    heads = [opening(text).lstrip() for text in texts]
    begin = next((place for place, head in enumerate(heads) if head.startswith(_FILES_BEGIN)), len(heads))
    # A file may hold such lines itself: what was put in ends with the last part that is nothing else.
    ends = [place + 1 for place, head in enumerate(heads) if head.rstrip() == _FILES_END]
    end = max([each for each in ends if each > begin], default=len(heads))
    is_file = [begin <= place < end for place in range(len(heads))]
    return [
        items.imported_kind("file") if inside else _kind(head, subagent=subagent)
        for head, inside in zip(heads, is_file, strict=True)
    ]


def _apart(texts: list[Text]) -> list[Text]:
    """Return texts of older versions, in which a prompt and the files behind it are one, as two."""
    found: list[Text] = []
    for text in texts:
        whole = text if isinstance(text, str) else msgspec.json.decode(text, type=str) if _has_files(text) else ""
        prompt, begin, _ = whole.partition(f"\n{_FILES_BEGIN}")
        found += [prompt, whole[len(prompt) :]] if begin and prompt.strip() else [text]
    return found


def _has_files(text: msgspec.Raw) -> bool:
    return _FILES_BEGIN.encode() in bytes(text)


def _kind(head: str, *, subagent: bool) -> str:
    if is_memory_text(head) or is_memory_text(head.removeprefix("<hook_context>")):
        return "memory.injected"
    if head.startswith(_SNAPSHOT):
        return items.SUMMARY
    fragment = fragments.recognise(head, "user", "gemini")
    if fragment is not None:
        return items.imported_kind(fragment.kind)
    if head.startswith(_INJECTED) or head.strip() in _GO_ON:
        return items.imported_kind("injected")
    if subagent:
        return items.imported_kind("subagent_prompt")
    if head.startswith(_SHELL):
        return items.imported_kind("user_shell")
    return items.imported_kind("slash_command") if _COMMAND.match(head) else items.USER


def _from_model(record: GeminiRecord, origin: Origin) -> GeminiMessage:
    parts = _parts(record.content)
    texts = _texts([part for part in parts if bytes(part.thought) != b"true"])
    message = GeminiMessage(texts=texts)
    thoughts = [text for raw in elements_of(record.thoughts, MANY) if (text := _thinking(raw)) is not None]
    if not thoughts:
        thoughts = _texts([part for part in parts if bytes(part.thought) == b"true"])
    message.said = [items.reasoning(text, origin) for text in thoughts]
    if not is_blank(spoken := joined(texts)):
        message.said.append(items.answer(spoken, origin))
    calls = [_decoded(raw) for raw in elements_of(record.calls, MANY)]
    known = {word_of(call.id) for call in calls}
    message.calls = [_called(call, f"{origin.id}-{place}", origin) for place, call in enumerate(calls)]
    repeated = [_decoded(part.call) for part in parts if part.call]
    for place, call in enumerate(repeated):
        # Where a message lists its calls, parts without an id can only be the same ones.
        if (word_of(call.id) not in known) if word_of(call.id) else not calls:
            message.calls.append(_called(call, f"{origin.id}-part-{place}", origin))
    return message


def _thinking(raw: msgspec.Raw) -> Text | None:
    try:
        thought = _thought.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return text_of(raw)
    subject, description = text_of(thought.subject), text_of(thought.description)
    if isinstance(subject, str) and isinstance(description, str):
        return "\n".join(part for part in (f"**{subject}**" if subject else "", description) if part) or None
    return description if description is not None else subject


def _called(call: _RawCall, spare_id: str, origin: Origin) -> GeminiCall:
    call_id, name = word_of(call.id) or spare_id, word_of(call.name) or "tool"
    arguments = as_text(call.args) if first_byte(call.args) == b"{" else "{}"
    recalled = _is_memory_tool(name) or (isinstance(arguments, str) and reads_memory(arguments))
    status = word_of(call.status)
    noted = Origin(id=origin.id, offset=origin.offset, memory=recalled)
    made = GeminiCall(call_id, items.call(name, arguments, call_id, noted), time=time_of(call.timestamp))
    value = _result(call, call_id)
    if value is not None or status in _DONE:
        noted = Origin(id=origin.id, offset=origin.offset, memory=recalled, ok=_DONE.get(status))
        made.output = items.output(call_id, value if value is not None else _shown(call), noted)
    return made


def _is_memory_tool(name: str) -> bool:
    """Say whether a tool is one of a memory server; Gemini names tools of servers `mcp_SERVER_TOOL`."""
    if name.startswith("mcp_") and not name.startswith("mcp__"):
        server, _, tool = name[4:].partition("_")
        return is_memory_tool(f"mcp__{server}__{tool}")
    return is_memory_tool(name)


def _result(call: _RawCall, call_id: str) -> Text | list[dict[str, Any]] | None:
    """Return what a call gave; None if nothing is noted yet."""
    text = text_of(call.result)
    if text is not None:
        return text
    parts = _parts(call.result)
    if not parts:
        return None
    answers = [_decoded(part.response) for part in parts if part.response]
    # Parallel calls may each hold the answers of all of them.
    own = [answer for answer in answers if word_of(answer.id) == call_id] or answers
    texts = [_answer(answer) for answer in own] or _texts(parts)
    images = _images([*parts, *(part for answer in own for part in _parts(answer.parts))])
    return _value(texts, images)


def _given(answer: _RawCall, siblings: list[_RawPart]) -> Text | list[dict[str, Any]]:
    return _value([_answer(answer)], _images([*siblings, *_parts(answer.parts)]))


def _value(texts: list[Text], images: list[dict[str, Any]]) -> Text | list[dict[str, Any]]:
    whole = joined(texts, "\n")
    if not images:
        return whole
    return [*([] if is_blank(whole) else [items.text_item(whole)]), *images]


def _answer(answer: _RawCall) -> Text:
    """Return the text of a `functionResponse`: its output, else its error, else all of it."""
    if first_byte(answer.response) != b"{":
        return as_text(answer.response) if answer.response else ""
    response = _response.decode(answer.response)
    for field in (response.output, response.error):
        text = text_of(field)
        if text is not None:
            return text
    return as_text(answer.response)


def _shown(call: _RawCall) -> Text:
    text = text_of(call.display)
    return text if text is not None else ""


def _parts(raw: msgspec.Raw) -> list[_RawPart]:
    """Return the parts of a content, which is a text, a part, or a list of both."""
    kind = first_byte(raw)
    return [_as_part(element) for element in (elements_of(raw, MANY) if kind == b"[" else [raw]) if element]


def _as_part(raw: msgspec.Raw) -> _RawPart:
    if first_byte(raw) == b'"':
        return _RawPart(text=raw)
    try:
        return _part.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _RawPart()


def _decoded(raw: msgspec.Raw) -> _RawCall:
    try:
        return _call.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _RawCall()


def _texts(parts: list[_RawPart]) -> list[Text]:
    found = (text_of(part.text) for part in parts)
    return [text for text in found if text is not None and opening(text)]


def _images(parts: list[_RawPart]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts:
        if first_byte(part.media) != b"{":
            continue
        media = _media.decode(part.media)
        kind, data = word_of(media.kind), media.data
        if kind.startswith("image/") and first_byte(data) == b'"':
            found.append(items.image(kind, msgspec.json.decode(data, type=str)))
    return found
