"""Entries: what the memory holds; each is one statement with its scope and its sources.

An entry's id is made from the words that first taught it, so that it stays the same while more sessions teach it again
and while it moves from one project to all. Sources are exact: the session, the turn, the bytes of its ledger, and the
words.
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
    """A source of an entry: a stretch of a ledger, or a note of a person."""

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
    """One statement that the memory holds."""

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
    """Return the form of a text that is compared: without marks, in lower case, with single blanks."""
    return _BLANK.sub(" ", _MARKS.sub(" ", text.lower())).strip()


def entry_id(project: str, kind: Kind, text: str) -> str:
    """Return the id of an entry by the words that first taught it, where, and what it is about."""
    named = f"{project}\0{SECTION_OF[kind]}\0{normal(text)}"
    return "m" + hashlib.sha256(named.encode()).hexdigest()[:9]
