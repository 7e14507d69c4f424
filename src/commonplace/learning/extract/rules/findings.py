"""What a session taught, before it is written down: findings, each with its evidence, and the tasks they belong to."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from commonplace.learning.reading.session_view import Called, Event, Span

Kind = Literal["preference", "rule", "fix", "verify", "environment", "decision", "procedure", "failure"]
Outcome = Literal["success", "partial", "uncertain", "fail"]
PREFERENCES: Final[frozenset[Kind]] = frozenset({"preference", "rule"})
KNOWLEDGE: Final[frozenset[Kind]] = frozenset({"verify", "environment", "decision", "procedure"})
FAILURES: Final[frozenset[Kind]] = frozenset({"fix", "failure"})
MAX_QUOTE: Final = 300


class Evidence(msgspec.Struct, frozen=True):
    """Where something was said or done, and the exact words."""

    at: Span
    quote: str
    how: str
    """`said by the user`, `verified`, `refused by the user`, …: how far it can be trusted."""


class Finding(msgspec.Struct):
    """One thing worth keeping."""

    kind: Kind
    text: str
    """The bullet: near the source's own words."""
    evidence: list[Evidence]
    task: int = 0
    """The place of its task in the list of tasks."""


class Task(msgspec.Struct):
    """What a person wanted done, from asking for it to leaving it."""

    name: str
    request: str
    at: Span
    events: list[Event] = []
    outcome: Outcome = "uncertain"
    why: str = ""
    """What the outcome rests on."""

    def calls(self) -> list[Called]:
        """Return the calls that were made for it."""
        return [event for event in self.events if isinstance(event, Called)]


def section_of(kind: Kind) -> frozenset[Kind]:
    """Return the kinds that are told in the same section as one."""
    return next(section for section in (PREFERENCES, KNOWLEDGE, FAILURES) if kind in section)


def quote(text: str, size: int = MAX_QUOTE) -> str:
    """Return words on one line, cut at the end if there are many."""
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1].rstrip() + "…"
