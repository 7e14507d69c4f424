"""Entries: what the memory holds; each is one statement with its scope and its sources.

An entry's id is made from the words that first taught it, so that it stays the same while more sessions teach it again
and while it moves from one project to all. Sources are exact: the session, the turn, the bytes of its ledger, and the
words.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import msgspec

from commonplace.patterns import regex
from commonplace.projects.people import Person
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
LISTED: Final = 0.513
"""What is less likely to last is a candidate: it can be found and reviewed, and is not part of the memory's files."""
TOLD: Final = 0.74
"""What is less likely to last is told to agents only if another session taught it, too."""
CANDIDATE: Final = 0.3
"""What is less likely to last is not even a candidate."""
MODEL_NOTE: Final = "written by a model"
"""How a note is known that a model wrote."""
_BLANK: Final = regex(r"\s+")
_MARKS: Final = regex(r"[^\w\s./:@#+-]")


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
    person: Person | None = None
    """Who said it, or in whose session it was seen, in a memory that several homes share."""

    @property
    def is_by_person(self) -> bool:
        """Whether it is a person's own words; a note that a model wrote is not."""
        return (self.note is not None and self.how != MODEL_NOTE) or "by the user" in self.how


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
    confidence: float = 1.0
    """How likely it lasts."""
    is_stale: bool = False
    """Nothing taught it for long; it is told after what is newer."""
    place: tuple[float | str, ...] = ()
    """Where it stands among entries of its standing, if somebody put it there."""
    odds: float = 0.0
    """How much likelier than others entries of its kind were kept when a person reviewed them, as log odds."""

    @property
    def people(self) -> frozenset[Person]:
        """Whose words and sessions it rests on, as far as that is known."""
        return frozenset(source.person for source in self.sources if source.person is not None)

    @property
    def is_told(self) -> bool:
        """Whether agents are told of it unasked."""
        return self.is_by_hand or self.confidence >= TOLD

    @property
    def is_by_hand(self) -> bool:
        """Whether a person pinned it or wrote it down."""
        return self.pinned or any(source.note and source.how != MODEL_NOTE for source in self.sources)

    @property
    def is_listed(self) -> bool:
        """Whether it is part of the memory's files; else it is a candidate."""
        return self.is_by_hand or self.confidence >= LISTED

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
