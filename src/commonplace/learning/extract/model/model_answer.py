"""A model's answer as a draft, or what is wrong with it in a sentence that the model can act on.

The contract is one JSON object (`prompts.SCHEMA`): the tasks of a session, and a list of lessons. Servers do not always
keep to a schema, so the reader is kinder than the contract: a fence or words around the one object, a bare list of
lessons, the usual other names of sections, numbers in quotes, missing fields and unknown ones are taken as meant. What
makes no sense of its own (a lesson without text, a section that nobody knows) is left to the checks; only an answer
without a list of lessons is a problem. What is read is bounded, and without secrets.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from commonplace.learning.structured_model import MAX_ANSWER, json_document
from commonplace.memory.entries import KINDS, Kind
from commonplace.memory.files import output_shape
from commonplace.memory.lessons import SaidScope
from commonplace.patterns import regex
from commonplace.redact import MARK, redact

MAX_LESSONS: Final = 200
"""Lessons of one answer that are read."""
MAX_TASKS: Final = 100
"""Tasks of one answer that are read."""
_MAX_TEXT: Final = 4_000
"""Characters of a text that are read."""
_MAX_KEYWORDS: Final = 48
_NO_NAME: Final = regex(r"[^a-z0-9_-]+")
_DIGITS: Final = regex(r"\d{1,9}")
_TOO_LONG: Final = f"It is longer than {MAX_ANSWER:,} characters; keep only what a later agent needs."
_OTHER_NAMES: Final[dict[str, Kind]] = {
    "user preference": "preference",
    "preference signal": "preference",
    "wish": "preference",
    "check": "verify",
    "verification": "verify",
    "fact": "environment",
    "knowledge": "environment",
    "reusable knowledge": "environment",
    "step": "procedure",
    "steps": "procedure",
    "failures and how to do differently": "failure",
    "dead end": "failure",
}
_EVERYWHERE: Final = frozenset({"everywhere", "global", "all", "all projects", "every project", "user"})


class DraftLesson(msgspec.Struct, frozen=True):
    """One lesson of a model's answer, before it is verified."""

    section: str
    """As the model spelt it, if no kind of lesson is called so."""
    text: str
    quote: str = ""
    turn: int | None = None
    task: int = 1
    scope: SaidScope = ""
    what_to_do: str = ""

    @property
    def kind(self) -> Kind | None:
        """The kind that the section means."""
        name = " ".join(self.section.lower().replace("_", " ").split()).rstrip(":")
        for each in (name, name.removesuffix("s")):
            if each in KINDS:
                return each
            if each in _OTHER_NAMES:
                return _OTHER_NAMES[each]
        return None


class DraftTask(msgspec.Struct, frozen=True):
    """One task of a model's answer."""

    title: str
    outcome: str = "uncertain"


class Draft(msgspec.Struct, frozen=True):
    """A model's answer before it is verified."""

    lessons: tuple[DraftLesson, ...] = ()
    tasks: tuple[DraftTask, ...] = ()
    title: str = ""
    keywords: tuple[str, ...] = ()
    slug: str | None = None


def read(answer: str) -> Draft | str:
    """Return what an answer says, without lessons if nothing was learned; else what is wrong with it."""
    if len(answer) > MAX_ANSWER:
        return _TOO_LONG
    found = json_document(answer, "lessons")
    if isinstance(found, str):
        return found
    fields: dict[str, Any] = {"lessons": found} if isinstance(found, list) else found
    if "lessons" not in fields:
        return "It has no list `lessons`; if nothing was learned, return the object with an empty list."
    rows = _objects(fields["lessons"])
    if rows is None:
        return "`lessons` is not a list of objects."
    words = fields.get("keywords")
    keywords = cast("list[Any]", words) if isinstance(words, list) else _text(words).split(",")
    return Draft(
        tuple(_lesson(row) for row in rows[:MAX_LESSONS]),
        tuple(_task(row) for row in (_objects(fields.get("tasks")) or [])[:MAX_TASKS]),
        _text(fields.get("title")),
        tuple(word for each in keywords[:_MAX_KEYWORDS] if (word := _text(each).strip())),
        _slug(_text(fields.get("slug"))),
    )


def _objects(value: Any) -> list[dict[str, Any]] | None:
    """Return a list of objects; None for anything else."""
    if not isinstance(value, list):
        return None
    rows = cast("list[Any]", value)
    return cast("list[dict[str, Any]]", rows) if all(isinstance(row, dict) for row in rows) else None


def _lesson(row: dict[str, Any]) -> DraftLesson:
    scope = " ".join(_text(row.get("scope")).lower().replace("_", " ").split())
    return DraftLesson(
        section=_text(row.get("section")),
        text=_text(row.get("text")),
        quote=_text(row.get("quote")),
        turn=_number(row.get("turn")),
        task=_number(row.get("task")) or 1,
        scope="everywhere" if scope in _EVERYWHERE else "project" if scope else "",
        what_to_do=_text(row.get("what_to_do")),
    )


def _task(row: dict[str, Any]) -> DraftTask:
    outcome = _text(row.get("outcome")).strip().lower()
    return DraftTask(
        _text(row.get("title")) or _text(row.get("name")),
        outcome if outcome in output_shape.OUTCOMES else "uncertain",
    )


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 10**9 else None
    found = _DIGITS.search(value[:_MAX_TEXT]) if isinstance(value, str) else None
    return int(found[0]) if found else None


def _text(value: Any) -> str:
    """Return a text of an answer: without secrets, on one line, without halves of characters."""
    if not isinstance(value, str):
        return ""
    whole = value[:_MAX_TEXT].encode("utf-8", "replace").decode()
    return redact(" ".join(whole.split()))


def _slug(given: str) -> str | None:
    """Return a name for a file out of what was meant as one; none if a secret was in it."""
    if MARK in given:
        return None
    name = _NO_NAME.sub("-", given.lower()).strip("-_")[: output_shape.MAX_SLUG].strip("-_")
    return name or None
