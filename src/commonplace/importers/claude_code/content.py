"""From the blocks of a message to the items of a ledger: answers, calls, outputs, images, attached context."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.importers import items
from commonplace.importers.claude_code import record_kinds, records
from commonplace.importers.claude_code.records import (
    Attachment,
    ClaudeRecord,
    ContentBlock,
    ImageSource,
    QuestionAnswers,
)
from commonplace.importers.converter import Payload
from commonplace.importers.items import Part, imported_kind
from commonplace.patterns import regex
from commonplace.protocol import memory_traces
from commonplace.protocol.rollout import Origin

_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_AGENT_TRAILER: Final = b'"agentId: '
"""How the block begins that is added to a sub-agent's answer for the program's own use."""
_SIDE_FILE: Final = regex(r"[\\/]tool-results[\\/]([\w.@+-]+)")
_SIDE_MARKS: Final = ("<persisted-output>", "Error: result (")
_ANSWERED: Final = ("Your questions have been answered", "User has answered your questions")
_QUESTIONS: Final = "AskUserQuestion"
_REFUSALS: Final = tuple(
    f"The user doesn't want to proceed with this tool use. The tool use was rejected{reason}. To tell you how to"
    " proceed, the user said:\n"
    for reason in (" (eg. if it was a file edit, the new_string was NOT written to the file)", "")
)
"""How Claude Code begins the output of a call that the person refused with words."""
_RESULTS: Final = ("User rejected tool use", "Error: ")
"""How it begins the result that it keeps beside such an output."""
_FOREIGN: Final = "mcp__"
"""How the names of tools begin whose errors are another program's words, whatever they look like."""
_RAW_SHELLS: Final = frozenset({"0", "1"})
"""Versions in which an error of a command is what the command printed, with nothing before it."""
_MAX_CALLS: Final = 100_000
"""How many open calls are remembered."""
_HOOKS: Final = frozenset(
    {
        "hook_success",
        "hook_additional_context",
        "hook_blocking_error",
        "hook_non_blocking_error",
        "hook_error_during_execution",
        "hook_system_message",
        "hook_stopped_continuation",
    }
)
_BOILERPLATE: Final = frozenset(
    {"agent_listing_delta", "skill_listing", "mcp_instructions_delta", "command_permissions", "invoked_skills"}
    | {"todo_reminder", "task_reminder", "date_change", "output_style", "plan_mode", "deferred_tools_delta", "todo"}
    | {"environment", "model", "date", "session_context", "auto_mode", "remote_session_change", "prompt_snapshot"}
    | {"silent_turn_reminder", "total_tokens_reminder", "unknown_command_fallback", "task_status", "diagnostics"}
)
"""Attachments that every session repeats and nobody said."""


class MemoryCalls:
    """The open calls, and those of memory tools, whose outputs come out of a memory."""

    def __init__(self) -> None:
        self._from_memory: dict[str, None] = {}
        self._names: dict[str, str] = {}

    def name(self, call_id: str) -> str:
        """Return the tool that a call is of; empty if the call is not known."""
        return self._names.get(call_id, "")

    def note(self, call_id: str, name: str, arguments: str) -> None:
        """Take note of a call."""
        if len(self._names) >= _MAX_CALLS:
            self._names.clear()
        self._names[call_id] = name
        if memory_traces.is_memory_tool(name) or memory_traces.reads_memory(arguments):
            if len(self._from_memory) >= _MAX_CALLS:
                self._from_memory.clear()
            self._from_memory[call_id] = None

    def is_from_memory(self, call_id: str) -> bool:
        """Say whether a call's output came out of a memory."""
        return call_id in self._from_memory


def answer(block: ContentBlock, origin: Origin, calls: MemoryCalls) -> Payload | None:
    """Return a block of the model's answer as an item; None for one that says nothing."""
    if block.type == "text":
        return items.answer(block.text, origin) if len(block.text) > 2 and records.is_text(block.text) else None
    if block.type == "thinking":
        raw = block.thinking
        return items.reasoning(raw, origin) if len(raw) > 2 and records.is_text(raw) else None
    if block.type in _CALLS:
        arguments = bytes(block.input).decode() if block.input else "{}"
        calls.note(block.id, block.name, arguments)
        return items.call(block.name or "unknown", arguments, block.id, origin)
    if block.tool_use_id:
        return output(block, origin, None, calls)
    return None


def output(
    block: ContentBlock, origin: Origin, folder: Path | None, calls: MemoryCalls, *, refused: bool = False
) -> Payload:
    """Return a tool's result; `folder` is where the session keeps outputs that were too large."""
    value: Any = _output_value(block.content)
    noted = Origin(
        origin.id,
        origin.offset,
        ok=not block.is_error,
        memory=calls.is_from_memory(block.tool_use_id),
        refused=refused,
    )
    made = items.output(block.tool_use_id, value, noted)
    if folder is not None and isinstance(value, msgspec.Raw) and len(value) < 65536:
        made.side_file = _side_file(records.text_of(value) or "", folder)
    return made


def refusal(record: ClaudeRecord, block: ContentBlock, calls: MemoryCalls) -> str:
    """Return why a person refused a call: only from the output that the agent itself writes for a refusal.

    An error of a server's tool, and in old versions of a command, is that program's text and could look the same.
    """
    text = records.text_of(block.content) or ""
    start = next((start for start in _REFUSALS if text.startswith(start)), None)
    name = calls.name(block.tool_use_id)
    if start is None or not block.is_error or not name or name.startswith(_FOREIGN):
        return ""
    if name == "Bash" and record.version.partition(".")[0] in _RAW_SHELLS:
        return ""
    kept = records.text_of(record.tool_use_result) if record.tool_use_result else None
    if kept is not None and kept not in (_RESULTS[0], _RESULTS[1] + text, text):
        return ""
    return text.removeprefix(start).strip()


def reply(record: ClaudeRecord, block: ContentBlock, calls: MemoryCalls) -> str:
    """Return what a person said to a tool: the answers to its questions, or why they refused it."""
    text = records.text_of(block.content) or ""
    if text.startswith(_ANSWERED) and calls.name(block.tool_use_id) == _QUESTIONS:
        given: QuestionAnswers = records.part(record.tool_use_result, QuestionAnswers)
        pairs = ((question, records.text_of(answer)) for question, answer in given.answers.items())
        return "\n".join(f"{question} {answer}" for question, answer in pairs if answer)
    return refusal(record, block, calls)


def _output_value(content: msgspec.Raw) -> Any:
    if not content:
        return ""
    if records.is_text(content):
        return content
    found = records.blocks(content)
    if found and found[-1].type == "text" and bytes(found[-1].text).startswith(_AGENT_TRAILER):
        found = found[:-1]
    if len(found) == 1 and found[0].type == "text" and records.is_text(found[0].text):
        return found[0].text
    if not found:  # neither a string nor blocks: an object is kept as it was written
        return bytes(content).decode() if memoryview(content)[0] == ord("{") else ""
    return [item for block in found if (item := _output_item(block)) is not None]


def _output_item(block: ContentBlock) -> dict[str, Any] | None:
    if block.type == "text":
        return items.text_item(block.text) if records.is_text(block.text) else None
    if block.type == "image":
        return image(block)
    return items.text_item(f"[{block.type or 'unknown'}]")


def image(block: ContentBlock) -> dict[str, Any]:
    """Return an image block as an item."""
    source: ImageSource = records.part(block.source, ImageSource)
    if source.data:
        return items.image(source.media_type or "image/png", source.data)
    return items.text_item(f"[image {source.url}]" if source.url else "[image]")


def _side_file(text: str, folder: Path) -> Path | None:
    """Return the file with the whole of an output: found by its name, as its path may be another machine's."""
    if not text.startswith(_SIDE_MARKS):
        return None
    found = _SIDE_FILE.search(text)
    path = folder / found[1] if found else None
    return path if path is not None and path.is_file() and not path.is_symlink() else None


def attachment(record: ClaudeRecord, origin: Origin) -> tuple[Payload | None, str]:
    """Return attached context as a message, and the text if it is a prompt that was typed while a turn ran."""
    found: Attachment = records.part(record.attachment, Attachment)
    if found.type == "queued_command":
        return _queued(found, origin)
    if found.type in _BOILERPLATE:
        return None, ""
    text = _attached_text(found)
    if not text.strip():
        return None, ""
    kind = "hook" if found.type in _HOOKS else "file" if found.type in ("file", "edited_text_file") else "injected"
    kind = "instructions" if found.type in ("nested_memory", "instructions") else kind
    remembered = found.type == "relevant_memories" or record_kinds.is_from_memory(text)
    part: Part = (f"memory.{kind}" if remembered else imported_kind(kind), text)
    return items.message("developer", [part], Origin(origin.id, origin.offset, memory=remembered)), ""


def _queued(found: Attachment, origin: Origin) -> tuple[Payload | None, str]:
    human = found.origin is None or found.origin.kind in ("", "human")
    typed = human and found.command_mode in ("", "prompt")
    parts: list[Part] = []
    media: list[dict[str, Any]] = []
    for block in records.blocks(found.prompt):
        if block.type == "image":
            media.append(image(block))
        elif text := records.text_of(block.text):
            parts.append((items.USER if typed else imported_kind("injected"), text))
    if not parts and not media:
        return None, ""
    said = "\n".join(str(text) for _, text in parts) or "[image]"
    return items.message("user", parts, origin, media), said if typed else ""


class _ReadFileResult(msgspec.Struct, gc=False, rename="camel"):
    file_path: str = ""
    content: msgspec.Raw = msgspec.Raw()


class _Nested(msgspec.Struct, gc=False, rename="camel"):
    content: msgspec.Raw = msgspec.Raw()
    file: _ReadFileResult | None = None
    blocking_error: msgspec.Raw = msgspec.Raw()


def _attached_text(found: Attachment) -> str:
    """Return an attachment's text, wherever its kind keeps it."""
    places = (found.content, found.stdout, found.snippet, found.blocking_error, found.files, found.rendered)
    return next((text for raw in places if raw and (text := _inner_text(raw)).strip()), "")


def _inner_text(raw: msgspec.Raw) -> str:
    if (text := records.text_of(raw)) is not None:
        return text
    if memoryview(raw)[0] == ord("["):
        blocks = records.blocks(raw)
        texts = [records.text_of(block.text) or records.text_of(block.content) for block in blocks]
        return "\n".join(text for text in texts if text)
    nested: _Nested = records.part(raw, _Nested)
    inner = nested.file.content if nested.file is not None else nested.content or nested.blocking_error
    return records.text_of(inner) or ""
