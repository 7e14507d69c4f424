"""The records of a Claude Code transcript, as far as an importer looks at them.

Every version writes a little differently, so nothing here is required and a field of the wrong type is as good as
missing. Fields that are not named (the structured twin of each tool result above all) are never built.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

THREADED: Final = frozenset({"user", "assistant", "attachment", "system", "progress"})
"""Records that others may hang on; of `progress` that is all there is to know."""
DROPPED: Final = frozenset(
    {
        "last-prompt",
        "mode",
        "permission-mode",
        "file-history-snapshot",
        "file-history-delta",
        "progress",
        "tag",
        "agent-color",
        "agent-setting",
        "agent-name",
        "pr-link",
        "frame-link",
        "relocated",
        "content-replacement",
        "fork-context-ref",
        "attribution-snapshot",
        "speculation-accept",
        "bridge-session",
        "isolation-latch",
        "marble-origami-commit",
        "marble-origami-snapshot",
        "marble-origami-reset",
        "api-request",
        "api-request-shape",
        "api-request-blob",
        "atis-latch",
        "cost-state",
        "tools-used",
    }
)
"""Known records that say nothing about the conversation, or say everything again (`api-request…`)."""


class ClaudeMessage(msgspec.Struct, gc=False):
    """A message to or from the model."""

    role: str = ""
    id: str = ""
    model: str = ""
    content: msgspec.Raw = msgspec.Raw()


class RecordOrigin(msgspec.Struct, gc=False):
    """The `origin` of a user record."""

    kind: str = ""


class QuestionAnswers(msgspec.Struct, gc=False):
    """A person's answers to questions, from the structured copy of a tool result."""

    answers: dict[str, msgspec.Raw] = {}


class ClaudeRecord(msgspec.Struct, gc=False, rename="camel"):
    """One line of a transcript."""

    type: str = ""
    uuid: str = ""
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    timestamp: str = ""
    session_id: str = ""
    subtype: str = ""
    operation: str = ""
    content: msgspec.Raw = msgspec.Raw()
    cwd: str = ""
    git_branch: str = ""
    version: str = ""
    entrypoint: str = ""
    agent_id: str = ""
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    is_api_error_message: bool = False
    prompt_source: str = ""
    origin: RecordOrigin | None = None
    plan_content: msgspec.Raw = msgspec.Raw()
    pasted_contents: msgspec.Raw = msgspec.Raw()
    message: ClaudeMessage | None = None
    attachment: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()
    tool_use_result: msgspec.Raw = msgspec.Raw()
    compact_metadata: msgspec.Raw = msgspec.Raw()
    worktree_session: msgspec.Raw = msgspec.Raw()
    leaf_uuid: str = ""
    custom_title: str = ""
    ai_title: str = ""
    summary: str = ""


class ContentBlock(msgspec.Struct, gc=False):
    """One block of a message's content."""

    type: str = ""
    text: msgspec.Raw = msgspec.Raw()
    thinking: msgspec.Raw = msgspec.Raw()
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw()
    tool_use_id: str = ""
    content: msgspec.Raw = msgspec.Raw()
    is_error: bool = False
    source: msgspec.Raw = msgspec.Raw()


class ImageSource(msgspec.Struct, gc=False):
    """Where an image's data stands."""

    type: str = ""
    media_type: str = ""
    data: str = ""
    url: str = ""


class Attachment(msgspec.Struct, gc=False, rename="camel"):
    """Context that was attached to the conversation."""

    type: str = ""
    prompt: msgspec.Raw = msgspec.Raw()
    command_mode: str = ""
    origin: RecordOrigin | None = None
    content: msgspec.Raw = msgspec.Raw()
    stdout: msgspec.Raw = msgspec.Raw()
    snippet: msgspec.Raw = msgspec.Raw()
    blocking_error: msgspec.Raw = msgspec.Raw()
    files: msgspec.Raw = msgspec.Raw()
    rendered: msgspec.Raw = msgspec.Raw()


class Worktree(msgspec.Struct, gc=False, rename="camel"):
    """The folder that a working tree was made from."""

    original_cwd: str = ""


class CompactMetadata(msgspec.Struct, gc=False, rename="camel"):
    """How a compaction came about and what it kept."""

    trigger: str = ""


_record = msgspec.json.Decoder(ClaudeRecord)
_blocks = msgspec.json.Decoder(list[ContentBlock])
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raws = msgspec.json.Decoder(list[msgspec.Raw])


def decode(raw: bytes) -> ClaudeRecord | None:
    """Return a record; None for JSON that is not an object.

    Raises:
        msgspec.DecodeError, RecursionError: it is not JSON.
    """
    try:
        return _record.decode(raw)
    except msgspec.ValidationError:
        return lenient(raw, ClaudeRecord)


def blocks(content: msgspec.Raw) -> list[ContentBlock]:
    """Return a message's content as blocks; a bare string is one text."""
    if is_text(content):
        return [ContentBlock("text", content)]
    if not content or memoryview(content)[0] != ord("["):
        return []
    try:
        return _blocks.decode(content)
    except msgspec.ValidationError:
        found = [
            ContentBlock("text", raw) if is_text(raw) else lenient(raw, ContentBlock) for raw in _raws.decode(content)
        ]
        return [block for block in found if block is not None]


def is_text(raw: msgspec.Raw) -> bool:
    """Say whether a raw value is a JSON string."""
    return bool(raw) and memoryview(raw)[0] == ord('"')


def lenient(raw: bytes | msgspec.Raw, kind: Any) -> Any:
    """Decode field by field: one that has the wrong type is left at its default; None if it is no object."""
    try:
        given = _fields.decode(raw)
    except msgspec.ValidationError:
        return None
    found = kind()
    for field in msgspec.structs.fields(kind):
        value = given.get(field.encode_name)
        if value is not None:
            try:
                setattr(found, field.name, msgspec.json.decode(value, type=field.type))
            except msgspec.ValidationError:
                continue
    return found


def part(raw: msgspec.Raw, kind: Any) -> Any:
    """Decode a nested object; one that is missing or something else gives the defaults."""
    if not raw or memoryview(raw)[0] != ord("{"):
        return kind()
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError:
        return lenient(raw, kind) or kind()


def text_of(raw: msgspec.Raw) -> str | None:
    """Return a JSON string's text, or None for anything else."""
    return msgspec.json.decode(raw, type=str) if is_text(raw) else None
