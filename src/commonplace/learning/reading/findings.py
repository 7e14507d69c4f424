"""What the rules find in a session: findings with their evidence, and the tasks they belong to."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from commonplace.learning.reading.session_view import EventSpan, ToolUse, ViewEvent
from commonplace.memory import lessons
from commonplace.memory.entries import Kind
from commonplace.memory.files.lesson_text import quote
from commonplace.memory.lessons import JudgeInput, Lesson

Outcome = Literal["success", "partial", "uncertain", "fail"]
__all__ = [
    "FAILURES",
    "KNOWLEDGE",
    "PREFERENCES",
    "FindingEvidence",
    "Kind",
    "Outcome",
    "RuleFinding",
    "SessionTask",
    "quote",
]

PREFERENCES: Final[frozenset[Kind]] = frozenset({"preference", "rule"})
KNOWLEDGE: Final[frozenset[Kind]] = frozenset({"verify", "environment", "decision", "procedure"})
FAILURES: Final[frozenset[Kind]] = frozenset({"fix", "failure"})


class FindingEvidence(msgspec.Struct, frozen=True):
    """Where something was said or done, and the exact words."""

    at: EventSpan
    quote: str
    how: str
    """`said by the user`, `verified`, `refused by the user`, …: how far it can be trusted."""


class RuleFinding(msgspec.Struct):
    """One lesson in the making: what somebody said (`words`), or what commands showed (`shown`)."""

    kind: Kind
    evidence: list[FindingEvidence]
    task: int = 0
    """The place of its task in the list of tasks."""
    words: str = ""
    stretch: str = ""
    """The words with the sentences around them."""
    lead: str = ""
    """How the words are known."""
    default: str = ""
    """What to do by default because of it."""
    shown: str = ""
    commands: tuple[str, ...] = ()
    """The commands that `shown` tells of."""
    role: str = ""
    """The role of those commands."""
    confidence: float = 1.0
    judged: JudgeInput | None = None

    def lesson(self) -> Lesson:
        """Return the finding as a lesson."""
        return Lesson(
            kind=self.kind,
            words=self.words,
            stretch=self.stretch,
            lead=self.lead,
            default=self.default,
            shown=self.shown,
            commands=self.commands,
            role=self.role,
            confidence=self.confidence,
            judged=self.judged,
            evidence=tuple(
                lessons.Evidence(each.at.turn, each.at.start, each.at.end, each.quote, each.how)
                for each in self.evidence
            ),
        )

    @property
    def text(self) -> str:
        """The finding as one line."""
        return self.lesson().text


class SessionTask(msgspec.Struct):
    """A task: what a person asked for, and the events until they moved on."""

    name: str
    request: str
    at: EventSpan
    events: list[ViewEvent] = []
    outcome: Outcome = "uncertain"
    why: str = ""
    """What the outcome rests on."""

    def calls(self) -> list[ToolUse]:
        """Return the calls that were made for it."""
        return [event for event in self.events if isinstance(event, ToolUse)]
