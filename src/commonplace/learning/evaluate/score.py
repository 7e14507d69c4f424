"""Scoring what a reader made of the gold set: what it found, what it made up, what it let through.

A bullet is one line of the three sections of `raw_memory`. A finding is learned if a bullet of its section holds its
texts. A bullet that matches nothing labelled is a false finding. A text that may appear nowhere is a leak, wherever it
stands.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.learning.evaluate.cases import Case, WantedLesson
from commonplace.patterns import regex
from commonplace.state.outputs import Output

_SECTION_OF: Final = {
    "preference": "Preference signals:",
    "rule": "Preference signals:",
    "verify": "Reusable knowledge:",
    "environment": "Reusable knowledge:",
    "decision": "Reusable knowledge:",
    "procedure": "Reusable knowledge:",
    "fix": "Failures and how to do differently:",
    "failure": "Failures and how to do differently:",
}
_OUTCOME: Final = regex(r"^Outcome: (\w+)$", re.MULTILINE)


class ExtractedBullet(msgspec.Struct, frozen=True):
    """One line that a reader wrote."""

    session: int
    section: str
    text: str


class CaseScore(msgspec.Struct):
    """How one case went."""

    id: str
    found: dict[str, int] = {}
    wanted: dict[str, int] = {}
    missed: list[str] = []
    false: list[str] = []
    bullets: int = 0
    counted: int = 0
    """Bullets that match a label, or nothing: those that precision is about."""
    leaks: list[str] = []
    outcomes_right: int = 0
    outcomes: int = 0
    noise: bool = False
    """It taught nothing, and something was said."""


class Score(msgspec.Struct):
    """How a half went."""

    cases: list[CaseScore]

    def recall(self, kind: str | None = None) -> float:
        """Return the share of what had to be learned that was."""
        wanted = sum(case.wanted.get(kind, 0) if kind else sum(case.wanted.values()) for case in self.cases)
        found = sum(case.found.get(kind, 0) if kind else sum(case.found.values()) for case in self.cases)
        return found / wanted if wanted else 1.0

    def precision(self) -> float:
        """Return the share of bullets that are not false findings."""
        total = sum(case.counted for case in self.cases)
        return 1 - sum(len(case.false) for case in self.cases) / total if total else 1.0

    def leaks(self) -> int:
        """Return how many texts appeared that may not."""
        return sum(len(case.leaks) for case in self.cases)

    def outcome_accuracy(self) -> float:
        """Return the share of tasks whose outcome was told right."""
        total = sum(case.outcomes for case in self.cases)
        return sum(case.outcomes_right for case in self.cases) / total if total else 1.0


def bullets(session: int, raw_memory: str) -> list[ExtractedBullet]:
    """Return the bullets of the three sections."""
    found: list[ExtractedBullet] = []
    section = ""
    for line in raw_memory.split("\n"):
        if line in _SECTION_OF.values():
            section = line
        elif line.startswith("- ") and section:
            found.append(ExtractedBullet(session, section, line))
        elif line.strip():
            section = ""
    return found


def score(case: Case, outputs: list[Output]) -> CaseScore:
    """Score what was made of a case's sessions, one output for each (empty where there was none)."""
    result = CaseScore(case.id)
    written = [bullet for number, output in enumerate(outputs) for bullet in bullets(number, output.raw_memory)]
    used: set[int] = set()
    allowed: set[int] = set()
    for wanted in case.expect.learn:
        hits = {place for place, bullet in enumerate(written) if _matches(bullet, wanted)}
        result.wanted[wanted.kind] = result.wanted.get(wanted.kind, 0) + 1
        if hits:
            result.found[wanted.kind] = result.found.get(wanted.kind, 0) + 1
        else:
            result.missed = [*result.missed, f"{wanted.kind}: {wanted.all} {wanted.any}"]
        used |= hits
    for wanted in case.expect.allow:
        allowed |= {place for place, bullet in enumerate(written) if _matches(bullet, wanted)}
    result.bullets = len(written)
    result.false = [bullet.text for place, bullet in enumerate(written) if place not in used and place not in allowed]
    result.counted = len(written) - len(allowed - used)
    everything = "\n".join(
        f"{output.raw_memory}\n{output.rollout_summary}\n{output.rollout_slug or ''}" for output in outputs
    )
    result.leaks = [text for text in case.expect.never if text.lower() in everything.lower()]
    result.noise = not case.expect.learn and not case.expect.allow and bool(written)
    _outcomes(case, outputs, result)
    return result


def _matches(bullet: ExtractedBullet, wanted: WantedLesson) -> bool:
    if bullet.section != _SECTION_OF[wanted.kind] or (wanted.session is not None and bullet.session != wanted.session):
        return False
    text = bullet.text.lower()
    return all(part.lower() in text for part in wanted.all) and (
        not wanted.any or any(part.lower() in text for part in wanted.any)
    )


def _outcomes(case: Case, outputs: list[Output], result: CaseScore) -> None:
    if case.expect.outcomes == ["any"] or not case.expect.outcomes:
        return
    told = [outcome for output in outputs for outcome in _OUTCOME.findall(output.rollout_summary)]
    if not told:
        return
    result.outcomes = len(case.expect.outcomes)
    result.outcomes_right = sum(two in (one, "any") for one, two in zip(told, case.expect.outcomes, strict=False))
