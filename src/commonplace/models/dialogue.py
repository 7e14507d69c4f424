"""Response items as a dialogue: turns of a user and an assistant that alternate, for APIs that want them so.

`dialogue` is pure and keeps the order of items. What stands before the first turn with the role `developer` or
`system` belongs to the instructions; later such messages are said by the user's side, since servers refuse a system
message in the middle. Outputs of tools go to the turn right after their calls, whatever was recorded in between. What
only the server of the Responses API can read is told in a sentence, so that nothing vanishes without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from commonplace.errors import BadInput
from commonplace.models.tool_names import INPUT, flat_name
from commonplace.protocol import items
from commonplace.protocol.items import Content

CLOSED: Final = "(An earlier part of this conversation was summed up in a form that only its own server can read.)"

SEALED: Final = "(A part of this message can be read only by the server that wrote it.)"
ABORTED: Final = "aborted"
"""The result of a call that was never answered, as histories have it."""


class Thought(msgspec.Struct, frozen=True):
    """Reasoning: the mark of the API that made it and what that API stored, and its text."""

    stored: str | None
    text: str


class DialogueCall(msgspec.Struct, frozen=True):
    """A call of a tool by its flat name."""

    id: str
    name: str
    arguments: str


class DialogueResult(msgspec.Struct, frozen=True):
    """What a tool gave back."""

    id: str
    output: str | list[Content]


class Assistant(msgspec.Struct):
    """What the model said, thought and called, in order."""

    parts: list[Thought | Content | DialogueCall]


class User(msgspec.Struct):
    """What the model was told: the results of its calls, then everything else."""

    results: list[DialogueResult]
    parts: list[Content]


Turn = Assistant | User


class Dialogue(msgspec.Struct):
    """A whole conversation."""

    system: list[str]
    turns: list[Turn]


class _Fields(msgspec.Struct):
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    tools: msgspec.Raw = msgspec.Raw(b"[]")
    content: list[Content] | None = None


def dialogue(raw: Sequence[bytes]) -> Dialogue:
    """Return the items of a request as a dialogue.

    Raises:
        BadInput: one of them is no response item.
    """
    builder = _Builder()
    for number, each in enumerate(raw):
        try:
            builder.add(items.view(each), each)
        except msgspec.DecodeError as error:
            raise BadInput(
                f"Item {number + 1} of the request is not a response item: {error}.", hint="Leave it out."
            ) from None
    return builder.done()


class _Builder:
    def __init__(self) -> None:
        self.system: list[str] = []
        self.turns: list[Turn] = []
        self.open: dict[str, None] = {}
        """Calls whose results have not come yet, in order."""
        self.later: list[Content] = []
        """What was said between calls and their results."""

    def add(self, item: items.View, raw: bytes) -> None:  # noqa: C901 (one arm per kind of item)
        match item:
            case items.Message(role="assistant"):
                self._assistant(*(part for part in item.content if part.text and part.text.strip()))
            case items.Message(role="developer" | "system") if not self.turns:
                self.system.append(item.text())
            case items.Message() | items.AgentMessage():
                self._user(*item.content)
            case items.Reasoning():
                text = "\n\n".join(part.text for part in item.summary if part.text)
                inner = msgspec.json.decode(raw, type=_Fields).content or []
                whole = "".join(part.text for part in inner if part.text)
                self._assistant(Thought(item.encrypted_content, whole or text))
            case items.FunctionCall():
                self._call(item.call_id, flat_name(item.name, item.namespace), item.arguments)
            case items.CustomToolCall():
                self._call(item.call_id, flat_name(item.name), msgspec.json.encode({INPUT: item.input}).decode())
            case items.LocalShellCall():
                action = bytes(item.action) or b"{}"
                self._call(item.call_id or item.id or "", "local_shell", action.decode())
            case items.ToolSearchCall():
                arguments = bytes(msgspec.json.decode(raw, type=_Fields).arguments)
                self._call(item.call_id or item.id or "", "tool_search", arguments.decode())
            case items.FunctionCallOutput() | items.CustomToolCallOutput():
                self._result(item.call_id or "", item.output, getattr(item, "name", None))
            case items.ToolSearchOutput():
                self._result(item.call_id or "", bytes(msgspec.json.decode(raw, type=_Fields).tools).decode(), None)
            case items.WebSearchCall():
                self._assistant(_text_part(f"(A web search was made: {bytes(item.action).decode() or 'no details'})"))
            case items.ImageGenerationCall():
                self._assistant(_text_part("(A picture was made.)"))
            case items.Compaction() | items.CompactionSummary() | items.ContextCompaction():
                self._user(_text_part(CLOSED))
            case items.Other():
                pass  # request controls, such as the trigger of a compaction that only the Responses API has

    def done(self) -> Dialogue:
        self._flush()
        turns = [turn for turn in self.turns if not isinstance(turn, User) or turn.results or turn.parts]
        return Dialogue([text for text in self.system if text.strip()], turns)

    def _assistant(self, *parts: Thought | Content | DialogueCall) -> None:
        if not parts:
            return
        if self.turns and isinstance(last := self.turns[-1], Assistant):
            last.parts.extend(parts)
        else:
            self._flush()
            self.turns.append(Assistant(list(parts)))

    def _call(self, call_id: str, name: str, arguments: str) -> None:
        self._assistant(DialogueCall(call_id, name, arguments))
        self.open[call_id] = None

    def _result(self, call_id: str, output: str | list[Content], name: str | None) -> None:
        if call_id not in self.open:
            text = output if isinstance(output, str) else "\n".join(part.text for part in output if part.text)
            self._user(_text_part(f"(Output of {name or 'a tool'}, outside of a call:)\n{text}"))
            return
        del self.open[call_id]
        self._user_turn().results.append(DialogueResult(call_id, output))
        if not self.open:
            self._flush()

    def _user(self, *parts: Content) -> None:
        kept = [part for part in parts if part.image_url or part.audio_url or (part.text and part.text.strip())]
        kept += [_text_part(SEALED) for part in parts if part.type == "encrypted_content"]
        if self.open:
            self.later.extend(kept)
        else:
            self._user_turn().parts.extend(kept)

    def _flush(self) -> None:
        """Say what waited for results; a call that got none is answered, because servers insist on an answer."""
        for call_id in self.open:
            self._user_turn().results.append(DialogueResult(call_id, ABORTED))
        self.open.clear()
        if self.later:
            self._user_turn().parts.extend(self.later)
            self.later = []

    def _user_turn(self) -> User:
        last = self.turns[-1] if self.turns else None
        if isinstance(last, User):
            return last
        turn = User([], [])
        self.turns.append(turn)
        return turn


def _text_part(text: str) -> Content:
    return Content(type="input_text", text=text)


def plain_text(parts: Sequence[Content]) -> str:
    """Return the texts of parts, joined by newlines."""
    return "\n".join(part.text for part in parts if part.text)


def output_text(output: str | list[Content]) -> str:
    """Return what a tool gave back as text."""
    return output if isinstance(output, str) else plain_text(output)


def pictures(output: str | list[Content]) -> list[Content]:
    """Return the pictures that a tool gave back."""
    return [] if isinstance(output, str) else [part for part in output if part.image_url]


def fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what is not set."""
    return {name: each for name, each in value.items() if each is not None}
