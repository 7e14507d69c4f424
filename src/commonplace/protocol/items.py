"""Response items: messages, reasoning, tool calls and their outputs.

The item that is stored and sent is always the JSON object as it was written; the structs here are *views* that name the
fields our code looks at. Unknown fields are ignored by a view and kept in the object, unknown kinds become `Other`, so
nothing is lost by passing through this program.

Invariant: `view` never builds more than the fields it names, however large the object is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.patterns import regex

PASSTHROUGH: Final = "internal_chat_message_metadata_passthrough"
"""Bookkeeping beside an item's own fields; written to files, never sent to a model."""


class Content(msgspec.Struct, gc=False):
    """One part of a message or of a tool's output; `type` says which of the other fields is set."""

    type: str
    text: str | None = None
    image_url: str | None = None
    audio_url: str | None = None
    encrypted_content: str | None = None


class Passthrough(msgspec.Struct, gc=False):
    """Who wrote an item and in which turn, as Codex notes it."""

    turn_id: str | None = None
    content_item_kinds: list[str] | None = None


class _Item(msgspec.Struct, tag_field="type", kw_only=True):
    id: str | None = None
    internal_chat_message_metadata_passthrough: Passthrough | None = None

    @property
    def turn_id(self) -> str | None:
        """The turn this item belongs to, where the writer noted it."""
        noted = self.internal_chat_message_metadata_passthrough
        return noted.turn_id if noted else None


class Message(_Item, tag="message"):
    """A message of role user, assistant, developer or system."""

    role: str
    content: list[Content]
    phase: str | None = None

    def text(self) -> str:
        """Return the text parts, joined by newlines, empty ones left out."""
        return "\n".join(part.text for part in self.content if part.text)


class AgentMessage(_Item, tag="agent_message"):
    """Mail between agents."""

    author: str
    recipient: str
    content: list[Content]


class Reasoning(_Item, tag="reasoning"):
    """A model's reasoning, often encrypted."""

    summary: list[Content] = []
    encrypted_content: str | None = None


class LocalShellCall(_Item, tag="local_shell_call"):
    """A shell command in the oldest call format; answered by a `function_call_output`."""

    call_id: str | None = None
    status: str | None = None
    action: msgspec.Raw = msgspec.Raw()


class FunctionCall(_Item, tag="function_call"):
    """A tool call with JSON arguments (a string)."""

    name: str
    arguments: str
    call_id: str
    namespace: str | None = None


class FunctionCallOutput(_Item, tag="function_call_output"):
    """The answer to a function call or a local shell call."""

    output: str | list[Content]
    call_id: str | None = None
    name: str | None = None


class ToolSearchCall(_Item, tag="tool_search_call"):
    """A search for deferred tools."""

    execution: str
    call_id: str | None = None


class ToolSearchOutput(_Item, tag="tool_search_output"):
    """The tools that a search found."""

    status: str
    execution: str
    call_id: str | None = None


class CustomToolCall(_Item, tag="custom_tool_call"):
    """A tool call with free text as its input."""

    call_id: str
    name: str
    input: str
    status: str | None = None


class CustomToolCallOutput(_Item, tag="custom_tool_call_output"):
    """The answer to a custom tool call."""

    call_id: str
    output: str | list[Content]


class WebSearchCall(_Item, tag="web_search_call"):
    """A web search that the server ran."""

    status: str | None = None
    action: msgspec.Raw = msgspec.Raw()


class ImageGenerationCall(_Item, tag="image_generation_call"):
    """An image that the server made."""

    status: str
    result: str


class Compaction(_Item, tag="compaction"):
    """A summary that only the server can read."""

    encrypted_content: str


class CompactionSummary(_Item, tag="compaction_summary"):
    """The older name of `compaction`."""

    encrypted_content: str


class ContextCompaction(_Item, tag="context_compaction"):
    """A marker of a server-side compaction."""

    encrypted_content: str | None = None


class Other(msgspec.Struct):
    """A kind that this program does not know, or one that is never part of a history."""

    type: str
    id: str | None = None
    turn_id: str | None = None


Known = (
    Message
    | AgentMessage
    | Reasoning
    | LocalShellCall
    | FunctionCall
    | FunctionCallOutput
    | ToolSearchCall
    | ToolSearchOutput
    | CustomToolCall
    | CustomToolCallOutput
    | WebSearchCall
    | ImageGenerationCall
    | Compaction
    | CompactionSummary
    | ContextCompaction
)
View = Known | Other

KNOWN_KINDS: Final = frozenset(str(kind.__struct_config__.tag) for kind in Known.__args__)
HISTORY_KINDS: Final = KNOWN_KINDS | {"additional_tools"}
"""Kinds that a history can hold; any other (request controls, old snapshots, the unknown) never reaches a model."""


class _ItemType(msgspec.Struct, gc=False):
    type: str


_kind = msgspec.json.Decoder(_ItemType)
_known: msgspec.json.Decoder[Known] = msgspec.json.Decoder(Known)
_PASSTHROUGH_KEY: Final = PASSTHROUGH.encode()
_EMPTY_ID: Final = regex(rb'"id"\s*:\s*(?:""|null)')
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def kind(raw: bytes | msgspec.Raw) -> str:
    """Return the `type` of a JSON object (raises msgspec.DecodeError if it has none)."""
    return _kind.decode(raw).type


def view(raw: bytes | msgspec.Raw) -> View:
    """Return the typed view of an item's JSON.

    Raises:
        msgspec.DecodeError: the JSON is not an item (a field that its kind needs is missing or of another type).
    """
    try:
        return _known.decode(raw)  # nearly every item is of a known kind: one pass over its bytes
    except msgspec.ValidationError:
        name = kind(raw)
    if name in KNOWN_KINDS:
        return _known.decode(raw)
    return Other(type=name)


def wire(raw: bytes | msgspec.Raw) -> bytes:
    """Return the item as a model gets it: every field but the bookkeeping, unchanged and in order."""
    whole = bytes(raw)
    if _PASSTHROUGH_KEY not in whole and not _EMPTY_ID.search(whole):
        return whole
    fields = _fields.decode(whole)
    fields.pop(PASSTHROUGH, None)
    if bytes(fields.get("id", b"")) in (b'""', b"null"):
        del fields["id"]
    return msgspec.json.encode(fields)
