"""What a model is told, from the files beside this one: instructions with their version, the message, the repair.

The version stands in the first line of `prompt.md` and is noted in everything that is learned with it; whoever changes
what the instructions ask for counts it up. Everything that leaves here is without secrets, whoever wrote it.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from commonplace.context.tokens import approximate_tokens
from commonplace.models.base import OutputSchema
from commonplace.pipeline.extraction import rendering
from commonplace.pipeline.extraction.slicing import Slice
from commonplace.pipeline.view import View
from commonplace.redact import redact

_VERSION: Final = re.compile(r"\A<!-- version: (\d+) -->\n")
_MAX_REPEATED: Final = 40_000
"""Characters of an answer that are sent back when it is to be repaired."""
SCHEMA: Final = OutputSchema(
    {
        "type": "object",
        "properties": {
            "raw_memory": {"type": "string"},
            "rollout_summary": {"type": "string"},
            "rollout_slug": {"type": ["string", "null"]},
        },
        "required": ["raw_memory", "rollout_summary", "rollout_slug"],
        "additionalProperties": False,
    },
    name="extraction",
)


@cache
def _file(name: str) -> str:
    return resources.files("commonplace.pipeline.extraction").joinpath(name).read_text("utf-8")


@cache
def _texts() -> dict[str, str]:
    return {name: text.strip("\n") for name, text in tomllib.loads(_file("texts.toml")).items()}


@cache
def version() -> str:
    """Return the version of the instructions."""
    found = _VERSION.match(_file("prompt.md"))
    assert found, "prompt.md begins with its version"
    return found[1]


@cache
def instructions() -> str:
    """Return what the model is told about its work."""
    return _VERSION.sub("", _file("prompt.md")).strip() + "\n"


@cache
def overhead() -> int:
    """Return how many tokens a request takes besides the session."""
    return approximate_tokens(instructions()) + approximate_tokens(_texts()["message"]) + 256


def message(view: View, part: Slice, number: int, total: int) -> bytes:
    """Return the one message that a request has: a slice of a session and what is known about it."""
    context = rendering.context(view)
    if total > 1:
        context += "\n" + _filled("part", number=str(number), total=str(total))
    return said("user", _filled("message", context=context, session=part.text()))


def repair(problem: str) -> bytes:
    """Return the message that asks for the same answer without its problem."""
    return said("user", _filled("repair", problem=problem))


def repeated(answer: str) -> bytes:
    """Return an answer as a part of the dialogue in which it is repaired."""
    return said("assistant", answer if len(answer) <= _MAX_REPEATED else _texts()["again"])


def said(role: str, text: str) -> bytes:
    """Return a message, without secrets."""
    kind = "output_text" if role == "assistant" else "input_text"
    item: dict[str, Any] = {
        "type": "message",
        "role": role,
        "content": [{"type": kind, "text": redact(text) or "(nothing)"}],
    }
    return msgspec.json.encode(item)


def _filled(name: str, **values: str) -> str:
    """Return a text with its names filled in, once: what is put in is not searched for names."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), _texts()[name])
