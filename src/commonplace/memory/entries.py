"""Entries: what the memory holds, each one thing, with whom it is for and what it rests on.

An entry's id is made from the first words that taught it, so that it stays the same while more sessions teach it again
and while it is moved from one project to all of them. What an entry rests on is exact: the session, the turn, the bytes
of its ledger, and the words.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, Literal

import msgspec

from commonplace.projects.scope import GLOBAL

Kind = Literal["preference", "rule", "fix", "verify", "environment", "decision", "procedure", "failure"]
KINDS: Final[tuple[Kind, ...]] = (
    "preference", "rule", "fix", "verify", "environment", "decision", "procedure", "failure",
)  # fmt: skip
Section = Literal["User preferences", "Reusable knowledge", "Failures and how to do differently"]
SECTIONS: Final[tuple[Section, ...]] = (
    "User preferences", "Reusable knowledge", "Failures and how to do differently",
)  # fmt: skip
SECTION_OF: Final[dict[Kind, Section]] = {
    "preference": "User preferences",
    "rule": "User preferences",
    "verify": "Reusable knowledge",
    "environment": "Reusable knowledge",
    "decision": "Reusable knowledge",
    "procedure": "Reusable knowledge",
    "fix": "Failures and how to do differently",
    "failure": "Failures and how to do differently",
}
_BLANK: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"[^\w\s./:@#+-]")


class Source(msgspec.Struct, frozen=True):
    """Where something was said or done: a stretch of a ledger, or a note of the person's."""

    quote: str
    how: str
    thread_id: str | None = None
    turn: int | None = None
    byte_start: int | None = None
    byte_end: int | None = None
    updated_s: int = 0
    note: str | None = None
    """The note's file, below the workspace."""


class Entry(msgspec.Struct):
    """One thing that the memory holds."""

    id: str
    scope: str
    """`global`, or the project's identity."""
    kind: Kind
    text: str
    support: int
    """How many sessions and notes taught it."""
    sources: list[Source]
    first_seen_s: int
    last_seen_s: int
    pinned: bool = False

    @property
    def is_global(self) -> bool:
        """Whether it is for every project."""
        return self.scope == GLOBAL


def normal(text: str) -> str:
    """Return what of a text counts when it is compared: no marks, no case, single blanks."""
    return _BLANK.sub(" ", _MARKS.sub(" ", text.lower())).strip()


def entry_id(project: str, kind: Kind, text: str) -> str:
    """Return the id of an entry by the words that first taught it, where, and what it is about."""
    named = f"{project}\0{SECTION_OF[kind]}\0{normal(text)}"
    return "m" + hashlib.sha256(named.encode()).hexdigest()[:9]
