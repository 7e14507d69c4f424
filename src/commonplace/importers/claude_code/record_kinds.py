"""Whose words a user record holds: the decision table of the format, for every version that was seen.

What the record says about itself (`isMeta`, `origin`, `promptSource`) is believed before the text is looked at. Then
only leading markers count, so that a person who quotes a tag stays a person. Old versions put reminders for the model
into the same text as the person's words; they are cut off at either end.
"""

from __future__ import annotations

from typing import Final

from commonplace.importers.claude_code.records import ClaudeRecord, blocks, text_of
from commonplace.importers.items import SUMMARY, USER, Part, imported_kind
from commonplace.patterns import regex
from commonplace.protocol import fragments, memory_traces

_AGENT: Final = "claude-code"
_LOOK: Final = 4096
_MEMORY_LOOK: Final = 200_000
"""How much of a text is looked at for what it begins or ends with."""
_REMINDER: Final = "<system-reminder>"
_REMINDER_END: Final = "</system-reminder>"
_BEFORE_REMINDER: Final = regex(r"(?<!\s)\s*<system-reminder>")
_LEFT_OVER: Final = regex(r"\s*</[\w-]+>\s*")
"""The end of a wrapper inside a wrapper: nobody says only that."""
_SYNTHETIC: Final = "<synthetic>"
"""The model that Claude Code names for words of its own, and for answers that a person cut short."""
_OWN_WORDS: Final = regex(
    r"No response requested\.|\(no content\)|API Error|Invalid API key|Credit balance|Prompt is too long"
    r"|Request timed out|OAuth |Please run /login|You've hit your"
    r"|(?:Claude )?(?:AI )?(?:\d+-hour |weekly |session |usage )*limit reached"
)


def of_record(record: ClaudeRecord) -> str | None:
    """Return the kind of all texts of a user record where the record itself tells it, else None."""
    if record.is_compact_summary:
        return SUMMARY
    if record.is_meta or record.source_tool_use_id:
        return imported_kind("injected")
    if record.is_sidechain:
        return imported_kind("subagent_prompt")
    human = record.origin is None or record.origin.kind in ("", "human")
    if not human:
        return imported_kind("injected")
    return USER if record.prompt_source else None


def parts(record: ClaudeRecord, text: str) -> list[Part]:
    """Return a text of a user record, cut where the words of a person and of the program meet."""
    kind = of_record(record)
    if kind == imported_kind("injected") and record.plan_content:
        end = fragments.plan_end(text)
        plan: Part = (imported_kind("injected"), text[:end])
        return [plan, (USER, text[end:])] if text[end:].strip() else [plan]
    if kind is not None:
        return [(_remembered(kind, text), text)]
    return by_text(text)


def by_text(text: str) -> list[Part]:
    """Return what a text is by its leading marker, without what was put around a person's words."""
    found: list[Part] = []
    rest = text
    while rest[:_LOOK].lstrip().startswith(_REMINDER) and _REMINDER_END in rest:
        # What a reminder quotes may hold an end of its own; where ends and beginnings differ, the last end counts.
        place = rest.index if rest.count(_REMINDER) == rest.count(_REMINDER_END) else rest.rindex
        end = place(_REMINDER_END) + len(_REMINDER_END)
        found.append((_remembered(imported_kind("injected"), rest[:end]), rest[:end]))
        rest = rest[end:]
    after: list[Part] = []
    if rest[-_LOOK:].rstrip().endswith(_REMINDER_END) and (opening := _last_reminders(rest)) is not None:
        after.append((_remembered(imported_kind("injected"), rest[opening:]), rest[opening:].lstrip("\n")))
        rest = rest[:opening]
    if (rest and not rest.isspace()) or not (found or after):
        found.append((_leading(rest), rest.strip("\n") if found or after else rest))
    return [*found, *after]


def _last_reminders(text: str) -> int | None:
    """Return where the reminders at the end of a text begin: before the first one that begins a line."""
    for found in _BEFORE_REMINDER.finditer(text):
        if found.start() == 0 or "\n" in found[0]:
            return found.start() and found.start() + found[0].index("\n")
    return None


def _leading(text: str) -> str:
    fragment = fragments.recognise(text[:_LOOK], "user", _AGENT)
    if fragment is None:
        return imported_kind("injected") if _LEFT_OVER.fullmatch(text[:_LOOK]) else USER
    if fragment.kind == "compact_summary":
        return SUMMARY
    return _remembered(imported_kind(fragment.kind), text)


def _remembered(kind: str, text: str) -> str:
    """Return the kind of a text, with what came out of a memory marked as such."""
    if kind not in (USER, SUMMARY) and is_from_memory(text):
        return "memory." + kind.partition(".")[2]
    return kind


def is_from_memory(text: str) -> bool:
    """Say whether an injected text came out of a memory, also from inside a reminder or a hook's message."""
    inner = text[:_MEMORY_LOOK].strip().removeprefix(_REMINDER).lstrip()
    return memory_traces.is_memory_text(inner) or memory_traces.SECTION_OPENING in inner


def begins_session(record: ClaudeRecord) -> bool:
    """Say whether a record tells what a hook did at the start of a session, also after `/clear`."""
    return b"SessionStart" in bytes(record.data or record.attachment)


def is_synthetic(record: ClaudeRecord) -> bool:
    """Say whether an assistant record holds words of the program, not of the model."""
    message = record.message
    if record.is_api_error_message:
        return True
    if message is None or message.model != _SYNTHETIC:
        return False
    texts = [text for block in blocks(message.content) if (text := text_of(block.text))]
    return not texts or bool(_OWN_WORDS.match(texts[0]))
