"""A model's answer as typed edits; what is no edit is told as one, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from commonplace.learning.consolidate.entry_edits import (
    EntryEdit,
    Join,
    MoveToGlobal,
    Order,
    Retitle,
    Reword,
    WriteSkill,
)
from commonplace.learning.structured_model import MAX_ANSWER, json_document
from commonplace.redact import redact

NAMES: Final = ("reword", "join", "retitle", "move_to_global", "write_skill", "order")
_MAX_TEXT: Final = 2_000
_MAX_LIST: Final = 40


class Proposals(NamedTuple):
    """The edits of an answer."""

    edits: list[EntryEdit]
    unknown: int
    """How many objects of the answer are no edits."""


def read(answer: str, most: int) -> Proposals | str:
    """Return the first edits of an answer, or what is wrong with it."""
    if len(answer) > MAX_ANSWER:
        return f"It is longer than {MAX_ANSWER:,} characters."
    found = json_document(answer, "edits")
    if isinstance(found, str):
        return found
    rows: Any = found if isinstance(found, list) else found.get("edits")
    if not isinstance(rows, list):
        return "It has no list `edits`."
    edits = [_edit(row) for row in cast("list[Any]", rows)[:most]]
    known = [each for each in edits if each is not None]
    return Proposals(known, len(cast("list[Any]", rows)) - len(known))


def _edit(row: Any) -> EntryEdit | None:
    """Return the edit that an object means; None if it means none."""
    if not isinstance(row, dict):
        return None
    fields = cast("Mapping[str, Any]", row)
    entries = tuple(_texts(fields.get("entries")))
    text = _text(fields.get("text"))
    match _text(fields.get("edit")).lower().replace(" ", "_").replace("-", "_"):
        case "reword" if len(entries) == 1:
            return Reword(entries[0], text)
        case "join" if len(set(entries)) > 1:
            return Join(tuple(dict.fromkeys(entries)), text)
        case "retitle" if entries:
            return Retitle(_text(fields.get("scope")), text, tuple(_texts(fields.get("keywords"))), entries)
        case "move_to_global" if len(entries) == 1:
            return MoveToGlobal(entries[0])
        case "write_skill" if entries:
            steps = tuple(_texts(fields.get("steps")))
            return WriteSkill(_text(fields.get("name")), _text(fields.get("scope")), steps, entries)
        case "order" if len(set(entries)) > 1:
            return Order(tuple(dict.fromkeys(entries)))
        case _:
            return None


def _texts(value: Any) -> list[str]:
    given = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [text for each in given[:_MAX_LIST] if (text := _text(each))]


def _text(value: Any) -> str:
    """Return a text of an answer: on one line, without secrets, without halves of characters."""
    if not isinstance(value, str):
        return ""
    whole = value[:_MAX_TEXT].encode("utf-8", "replace").decode()
    return redact(" ".join(whole.split()).removeprefix("- "))
