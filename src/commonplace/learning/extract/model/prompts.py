"""What a model is told, from the files beside this one: instructions with their version, the message, the repair.

The version stands in the first line of `prompt.md` and is noted in everything that is learned with it; whoever changes
what the instructions ask for counts it up. Everything that leaves here is without secrets, whoever wrote it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from commonplace.context.tokens import approximate_tokens
from commonplace.learning.extract.model import session_text
from commonplace.learning.extract.model.slices import Slice
from commonplace.learning.instructions import InstructionTexts
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory.entries import KINDS
from commonplace.memory.files import output_shape
from commonplace.models.base import OutputSchema
from commonplace.redact import redact

_MAX_REPEATED: Final = 40_000
"""Characters of an answer that are sent back when it is to be repaired."""


def _object(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields, as strict servers want it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT: Final = {"type": "string"}
SCHEMA: Final = OutputSchema(
    _object(
        title=_TEXT,
        slug=_TEXT,
        keywords={"type": "array", "items": _TEXT},
        tasks={
            "type": "array",
            "items": _object(title=_TEXT, outcome={"type": "string", "enum": list(output_shape.OUTCOMES)}),
        },
        lessons={
            "type": "array",
            "items": _object(
                task={"type": "integer"},
                section={"type": "string", "enum": list(KINDS)},
                text=_TEXT,
                quote=_TEXT,
                turn={"type": "integer"},
                scope={"type": "string", "enum": ["project", "everywhere"]},
                what_to_do=_TEXT,
            ),
        },
    ),
    name="extraction",
)
"""What a model answers: the tasks of a session, and its lessons as a list."""
_TOLD: Final = InstructionTexts("learning/extract/model")


def version() -> str:
    """Return the version of the instructions."""
    return _TOLD.version


def instructions() -> str:
    """Return what the model is told about its work."""
    return _TOLD.instructions


@cache
def instructions_with_schema() -> str:
    """Return what the model is told about its work where its server takes no schema."""
    schema = msgspec.json.encode(SCHEMA.schema).decode()
    return instructions() + "\n" + _TOLD.text("schema", schema=schema) + "\n"


@cache
def overhead() -> int:
    """Return how many tokens a request takes besides the session."""
    return approximate_tokens(instructions()) + approximate_tokens(_TOLD.text("message")) + 256


def message(view: SessionView, part: Slice, number: int, total: int) -> bytes:
    """Return the one message that a request has: a slice of a session and what is known about it."""
    context = session_text.context(view)
    if total > 1:
        context += "\n" + _TOLD.text("part", number=str(number), total=str(total))
    return redacted_message("user", _TOLD.text("message", context=context, session=part.text()))


def repair(problem: str) -> bytes:
    """Return the message that asks for the same answer without its problem."""
    return redacted_message("user", _TOLD.text("repair", problem=problem))


def answer_message(answer: str) -> bytes:
    """Return an answer as a part of the dialogue in which it is repaired."""
    return redacted_message("assistant", answer if len(answer) <= _MAX_REPEATED else _TOLD.text("again"))


def redacted_message(role: str, text: str) -> bytes:
    """Return a message, without secrets."""
    kind = "output_text" if role == "assistant" else "input_text"
    item: dict[str, Any] = {
        "type": "message",
        "role": role,
        "content": [{"type": kind, "text": redact(text) or "(nothing)"}],
    }
    return msgspec.json.encode(item)
