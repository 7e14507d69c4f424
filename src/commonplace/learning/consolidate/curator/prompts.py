"""What the model is told, from the files beside this one: instructions with their version, and the message of a batch.

Everything is cut to a size, and without secrets: whoever wrote it, it leaves this machine.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import msgspec

from commonplace.learning.consolidate.curator import proposals
from commonplace.learning.consolidate.curator.batches import EntryBatch
from commonplace.learning.consolidate.learned_lessons import ConsolidationInput
from commonplace.learning.instructions import InstructionTexts
from commonplace.memory.entries import GLOBAL, Entry, Source, normal
from commonplace.models.base import OutputSchema
from commonplace.protocol.ids import wire_second
from commonplace.redact import redact

_SOURCES: Final = 2
"""How many quotations an entry is shown with."""
_QUOTE: Final = 240
"""How many characters of a quotation are shown."""
_TOLD: Final = InstructionTexts("learning/consolidate/curator")
_TEXT: Final = {"type": "string"}
_LIST: Final = {"type": "array", "items": _TEXT}
_FIELDS: Final[dict[str, Any]] = {
    "edit": {"type": "string", "enum": list(proposals.NAMES)},
    "entries": _LIST,
    "text": _TEXT,
    "scope": _TEXT,
    "name": _TEXT,
    "keywords": _LIST,
    "steps": _LIST,
}
_EDIT: Final = {"type": "object", "properties": _FIELDS, "required": list(_FIELDS), "additionalProperties": False}
SCHEMA: Final = OutputSchema(
    {
        "type": "object",
        "properties": {"edits": {"type": "array", "items": _EDIT}},
        "required": ["edits"],
        "additionalProperties": False,
    },
    name="edits",
)
"""What a model answers: a list of edits. A field that an edit does not need is empty."""


def instructions() -> str:
    """Return what the model is told about its work."""
    return _TOLD.instructions


@cache
def instructions_with_schema() -> str:
    """Return what the model is told about its work where its server takes no schema."""
    return instructions() + "\n" + _TOLD.text("schema", schema=msgspec.json.encode(SCHEMA.schema).decode()) + "\n"


def message(batch: EntryBatch, material: ConsolidationInput, edits: int) -> bytes:
    """Return the one message of a request: its entries, what taught them, how much it may answer and what was cut."""
    cut = 0
    parts = [_TOLD.text("new")]
    for heading, entries in (("", batch.new), (_TOLD.text("near"), batch.near)):
        lines = [heading] if heading and entries else []
        scope = None
        for entry in entries:
            if entry.scope != scope:
                lines += ["", "scope: global" if entry.scope == GLOBAL else f"scope: {entry.scope}"]
            scope = entry.scope
            evidence, left_out = _evidence(entry)
            cut += left_out
            lines += [_headline(entry, material), f"    {entry.text}", *evidence]
        parts.append("\n".join(lines).strip("\n"))
    values = {"edits": str(edits), "cut": str(cut), "left": str(batch.left)}
    text = redact("\n\n".join([*filter(None, parts), _TOLD.text("budget", **values)]))
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return msgspec.json.encode(item)


def _headline(entry: Entry, material: ConsolidationInput) -> str:
    times = f"{entry.support} session{'s' if entry.support > 1 else ''}"
    fixed = _TOLD.text("fixed") if entry.is_by_hand or entry.id in material.reviews else ""
    return f"{entry.id} ({entry.kind}, {times}){fixed}"


def _evidence(entry: Entry) -> tuple[list[str], int]:
    """Return the words that taught an entry where they say more than it does, and how many quotations were cut."""
    known, chosen = normal(entry.text), list[Source]()
    for source in sorted(entry.sources, key=lambda each: -each.updated_s):
        quote = normal(source.quote)
        if quote not in known and all(quote != normal(other.quote) for other in chosen):
            chosen.append(source)
    lines = [f'    {wire_second(each.updated_s)[:10]}, {each.how}: "{_cut(each.quote)}"' for each in chosen[:_SOURCES]]
    cut = sum(len(" ".join(each.quote.split())) > _QUOTE for each in chosen[:_SOURCES])
    return lines, cut + len(chosen[_SOURCES:])


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _QUOTE else flat[:_QUOTE] + "…"


@cache
def orders() -> re.Pattern[str]:
    """Return the words by which a fact becomes an order."""
    return re.compile(_TOLD.text("orders"), re.IGNORECASE)


@cache
def denials() -> re.Pattern[str]:
    """Return the words by which a wish becomes its opposite."""
    return re.compile(_TOLD.text("denials"), re.IGNORECASE)
