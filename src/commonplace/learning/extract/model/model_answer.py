"""A model's answer as the three texts, or what is wrong with it in a sentence that the model can act on.

The contract is one JSON object with three keys. Kinder than that: a fence or words around the one object, the older
spellings of the keys, a missing slug, a slug that only needs its letters changed. Unknown keys, several objects and
texts without the shape that consolidation reads are problems, told one at a time.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

import msgspec

from commonplace.memory.files import output_shape
from commonplace.redact import redact
from commonplace.state.outputs import Output

MAX_ANSWER: Final = 200_000
"""Characters: what is longer is no lesson of a session."""
_KEYS: Final = ("raw_memory", "rollout_summary", "rollout_slug")
_OLDER: Final = {
    "rawMemory": "raw_memory",
    "summary": "rollout_summary",
    "rolloutSummary": "rollout_summary",
    "slug": "rollout_slug",
    "rolloutSlug": "rollout_slug",
}
_FENCE: Final = re.compile(r"```(?:json)?[ \t]*\n((?:[^`]|`{1,2}[^`])*)```", re.IGNORECASE)
_OBJECT: Final = re.compile(r"\{\s*\"")
_NO_NAME: Final = re.compile(r"[^a-z0-9_-]+")
_TOO_LONG: Final = f"It is longer than {MAX_ANSWER:,} characters; keep only what a later agent needs."
_NOTHING: Final = Output("", "")


def read(answer: str) -> Output | str:
    """Return what an answer says, empty texts if it says that nothing was learned; else what is wrong with it."""
    if len(answer) > MAX_ANSWER:
        return _TOO_LONG
    found = _object(answer)
    fields = found if isinstance(found, str) else _fields(found)
    if isinstance(fields, str):
        return fields
    raw, summary = (redact(_tidy(fields[name] or "")) for name in _KEYS[:2])
    if not raw or not summary:
        return _NOTHING
    output = Output(raw, summary, _slug(fields["rollout_slug"]))
    return output_shape.problem(output) or output


def _object(answer: str) -> dict[str, Any] | str:
    text = answer.strip()
    if not text:
        return "It is empty; if nothing was learned, return the object with three empty strings."
    try:
        return _checked(json.loads(text))
    except (ValueError, RecursionError):
        pass
    fenced = _FENCE.findall(text)
    if len(fenced) == 1:
        text = fenced[0].strip()
    begins = _OBJECT.search(text)
    if begins is None:
        return "It holds no JSON object."
    try:
        found, end = json.JSONDecoder().raw_decode(text, begins.start())
    except (ValueError, RecursionError) as error:
        return f"Its JSON object cannot be read: {error}."
    if _OBJECT.search(text, end):
        return "It holds more than one JSON object."
    return _checked(found)


def _checked(found: Any) -> dict[str, Any] | str:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else "It is not a JSON object."


def _fields(found: dict[str, Any]) -> dict[str, str | None] | str:
    fields: dict[str, str | None] = {}
    for key, value in found.items():
        name = _OLDER.get(key, key)
        if name not in _KEYS:
            return f"It has the unknown key {key[:60]!r}; allowed are {', '.join(_KEYS)}."
        if name in fields:
            return f"It has the key {name} twice."
        if not isinstance(value, str) and not (value is None and name == "rollout_slug"):
            return f"{name} is not a string."
        if isinstance(value, str) and not _is_text(value):
            return f"{name} holds characters that no text has."
        fields[name] = value
    missing = [name for name in _KEYS[:2] if name not in fields]
    return f"It has no {missing[0]}." if missing else {"rollout_slug": None, **fields}


def _is_text(value: str) -> bool:
    """Say whether a text can be written: JSON can hold halves of characters."""
    try:
        msgspec.json.encode(value)
        value.encode()
    except (UnicodeEncodeError, ValueError):
        return False
    return True


def _tidy(text: str) -> str:
    """Return a text with the line ends and spaces that the shape has."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    body = "\n".join(lines).strip("\n")
    return f"{body}\n" if body.strip() else ""


def _slug(given: str | None) -> str | None:
    """Return a name for a file out of what was meant as one."""
    name = _NO_NAME.sub("-", redact(given or "").lower()).strip("-_")[: output_shape.MAX_SLUG].strip("-_")
    return name or None
