"""mini-swe-agent: a list of messages, in one of three manners.

The model wrote commands in its text (answered by user messages), called tools (answered by `tool` messages), or spoke
the Responses API (`output` lists, answered by `function_call_output`). The first user message is the task, in a
template; a later one answers a call, or carries what a person said when they interrupted, or is the program's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from commonplace.importers import items, json_lines
from commonplace.importers.converter import Converted, ConvertedRecord, Payload
from commonplace.importers.items import Text
from commonplace.importers.json_values import (
    MANY,
    TooDense,
    elements_of,
    first_byte,
    is_blank,
    opening,
    text_of,
    time_at,
    word_of,
)
from commonplace.importers.swe_agent.document import (
    TrajectoryDocument,
    calls,
    command,
    content,
    field,
    head,
    modified_at,
    session_of,
)
from commonplace.patterns import regex
from commonplace.protocol.rollout import Origin, Skipped

_NONE: Final = msgspec.Raw()
_BLOCK: Final = regex(r"```(?:bash|mswea_bash_command)[^\S\n]*\n((?:[^`]|`{1,2}[^`])*)\n```")
_RETURNED: Final = regex(r"\s*<returncode>(-?\d+)</returncode>")
_NOBODY: Final = "Temporary interruption caught."
"""What the program says for a person who interrupted without a word."""


class _MiniMessage(msgspec.Struct, gc=False):
    role: msgspec.Raw = _NONE
    type: msgspec.Raw = _NONE
    content: msgspec.Raw = _NONE
    output: msgspec.Raw = _NONE
    tool_calls: msgspec.Raw = _NONE
    tool_call_id: msgspec.Raw = _NONE
    call_id: msgspec.Raw = _NONE
    extra: msgspec.Raw = _NONE


class _Extra(msgspec.Struct, gc=False):
    actions: msgspec.Raw = _NONE
    returncode: msgspec.Raw = _NONE
    timestamp: msgspec.Raw = _NONE
    interrupt_type: msgspec.Raw = _NONE
    exit_status: msgspec.Raw = _NONE


class _MiniAction(msgspec.Struct, gc=False):
    command: msgspec.Raw = _NONE
    tool_call_id: msgspec.Raw = _NONE


_message = msgspec.json.Decoder(_MiniMessage)
_extra = msgspec.json.Decoder(_Extra)
_action = msgspec.json.Decoder(_MiniAction)
_output = msgspec.json.Decoder(_MiniMessage)


def convert(path: Path, document: TrajectoryDocument) -> Converted:
    """Yield the thread of a mini-swe-agent trajectory."""
    elements, end = elements_of(document.messages), modified_at(path)
    if not elements:
        return
    started = next((time for raw in elements if (time := _time(_decoded(raw)))), end)
    cwd = word_of(field(document.info, "config", "environment", "cwd"))
    version = word_of(field(document.info, "mini_version"))
    thread = head(path, session_of(path), started, cwd, version, "mini-swe-agent")
    yield thread
    model = word_of(field(document.info, "config", "model", "model_name"))
    reader, now = _MiniReader(), started
    for number, raw in enumerate(elements):
        message = _decoded(raw)
        now = _time(message) or now
        try:
            payloads = reader.read(message, Origin(id=str(number)))
        except TooDense:
            yield Skipped(0, len(memoryview(raw)), json_lines.TOO_DENSE)
            continue
        if payloads is None:
            yield Skipped(0, len(memoryview(raw)), json_lines.UNKNOWN_TYPE)
        elif payloads:
            if model:
                payloads.insert(0, items.settings(model, cwd))
                model = ""
            yield ConvertedRecord(thread.thread_id, str(number), time_at(now), payloads)


class _MiniReader:
    """Reads messages in order; knows whether the task was given and which calls wait for an answer."""

    def __init__(self) -> None:
        self.asked = False
        self.waiting: list[str] = []

    def read(self, message: _MiniMessage, origin: Origin) -> list[Payload] | None:
        """Return a message's payloads; None if it is of no known kind."""
        role, kind = word_of(message.role), word_of(message.type)
        if role == "system":
            return []
        if role == "assistant":
            return self._assistant_payloads(message, origin)
        if first_byte(message.output) == b"[":
            return self._response_payloads(message, origin)
        if role == "tool" or kind == "function_call_output":
            text = content(message.content) if role == "tool" else content(message.output)
            return self._output_payloads(
                word_of(message.tool_call_id) or word_of(message.call_id), text, message, origin
            )
        if role == "user":
            return self._input_payloads(message, origin)
        if role == "exit":
            text = content(message.content)
            return self._output_payloads("", text, message, origin) if self.waiting else []
        return None

    def _input_payloads(self, message: _MiniMessage, origin: Origin) -> list[Payload]:
        text = content(message.content)
        if text is None or is_blank(text):
            return []
        if not self.asked:
            self.asked = True
            return [items.message("user", [(items.USER, text)], origin)]
        if word_of(_noted(message).interrupt_type).startswith("User"):
            return [items.message("user", _interruption(text), origin)]
        if self.waiting:
            return self._output_payloads("", text, message, origin)
        return [items.message("user", [(items.imported_kind("injected"), text)], origin)]

    def _assistant_payloads(self, message: _MiniMessage, origin: Origin) -> list[Payload]:
        text = content(message.content)
        found = [items.answer(text, origin)] if text is not None and not is_blank(text) else []
        spare = f"call_{origin.id}"
        made = calls(message.tool_calls, spare)
        if not made:
            actions = [
                _action.decode(raw) for raw in elements_of(_noted(message).actions, MANY) if first_byte(raw) == b"{"
            ]
            for place, action in enumerate(actions):
                ran = text_of(action.command)
                if ran is not None:
                    made.append((word_of(action.tool_call_id) or f"{spare}-{place}", "bash", command(ran)))
        if not made and isinstance(text, str) and len(blocks := _BLOCK.findall(text)) == 1:
            made = [(f"{spare}-0", "bash", command(blocks[0].strip()))]
        self.waiting = [call_id for call_id, _, _ in made]
        return [*found, *(items.call(name, arguments, call_id, origin) for call_id, name, arguments in made)]

    def _response_payloads(self, message: _MiniMessage, origin: Origin) -> list[Payload]:
        """Read an answer of the Responses API."""
        found: list[Payload] = []
        self.waiting = []
        for place, raw in enumerate(elements_of(message.output, MANY)):
            if first_byte(raw) != b"{":
                continue
            item = _output.decode(raw)
            text = content(item.content)
            if word_of(item.type) == "message" and text is not None:
                found.append(items.answer(text, origin))
            elif word_of(item.type) == "function_call":
                ((call_id, name, arguments),) = calls(
                    msgspec.Raw(b"[" + bytes(raw) + b"]"), f"call_{origin.id}-{place}"
                )
                found.append(items.call(name, arguments, call_id, origin))
                self.waiting.append(call_id)
        return found

    def _output_payloads(self, call_id: str, text: Text | None, message: _MiniMessage, origin: Origin) -> list[Payload]:
        call_id = call_id or (self.waiting[0] if self.waiting else "")
        if not call_id or text is None:
            return []
        self.waiting = [waiting for waiting in self.waiting if waiting != call_id]
        noted = Origin(id=origin.id, ok=_worked(message, text))
        return [items.output(call_id, text, noted)]


def _interruption(text: Text) -> list[items.Part]:
    """Separate the person's words from the words that the program puts before them."""
    if isinstance(text, str) and ": " in text:
        before, said = text.split(": ", 1)
        if said.strip() == _NOBODY:
            return [(items.imported_kind("interrupt"), text)]
        return [(items.imported_kind("interrupt"), f"{before}: "), (items.USER, said)]
    return [(items.imported_kind("interrupt"), text)]


def _worked(message: _MiniMessage, text: Text) -> bool | None:
    noted = _noted(message)
    code = word_of(noted.returncode)
    returned = _RETURNED.match(opening(text))
    if not code and returned is not None:
        code = returned[1]
    if code:
        return code == "0"
    return word_of(noted.exit_status) == "Submitted" if noted.exit_status else None


def _noted(message: _MiniMessage) -> _Extra:
    return _extra.decode(message.extra) if first_byte(message.extra) == b"{" else _Extra()


def _time(message: _MiniMessage) -> float:
    try:
        return max(0.0, float(word_of(_noted(message).timestamp) or 0))
    except ValueError:
        return 0.0


def _decoded(raw: msgspec.Raw) -> _MiniMessage:
    return _message.decode(raw) if first_byte(raw) == b"{" else _MiniMessage()
