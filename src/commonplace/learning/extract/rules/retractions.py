"""What a person said and took back: a wish or a decision that later words of theirs withdraw teaches nothing.

Words that withdraw something without naming it mean what was said just before; words that name it mean whatever earlier
wish the name stands in.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.learning.reading import sentences, tables
from commonplace.learning.reading.findings import PREFERENCES, Kind, RuleFinding, SessionTask
from commonplace.learning.reading.session_view import EventSpan, UserText
from commonplace.patterns import regex

_NAME: Final = regex(r"[A-Za-z][\w./-]{3,}")
_COMMON: Final = tables.words("common") | tables.words("dull_in_tasks")
_SAID: Final[frozenset[Kind]] = frozenset({*PREFERENCES, "decision"})


class _Retraction(msgspec.Struct):
    """Words that took something back."""

    at: EventSpan
    before: EventSpan | None
    """What was said just before."""
    names: set[str]


def without_retracted(findings: list[RuleFinding], tasks: list[SessionTask]) -> list[RuleFinding]:
    """Return findings without the wishes and decisions that were withdrawn."""
    gone = _withdrawn(tasks)
    return [each for each in findings if each.kind not in _SAID or not any(_takes(one, each) for one in gone)]


def _takes(withdrawn: _Retraction, finding: RuleFinding) -> bool:
    """Say whether a finding is what was taken back."""
    evidence = finding.evidence[0]
    if evidence.at == withdrawn.before:
        return True
    is_earlier = evidence.at.start < withdrawn.at.start
    return is_earlier and bool(withdrawn.names & _names(evidence.quote))


def _withdrawn(tasks: list[SessionTask]) -> list[_Retraction]:
    found: list[_Retraction] = []
    before: UserText | None = None
    for event in (event for task in tasks for event in task.events if isinstance(event, UserText)):
        taking = [each.text for each in sentences.of_text(event.text)[:2] if each.heard.says("retraction")]
        if taking:
            found.append(_Retraction(event.at, before.at if before else None, _names(" ".join(taking))))
        before = event
    return found


def _names(text: str) -> set[str]:
    """Return the words that stand for one thing: names of tools, files, things."""
    return {word.lower() for word in _NAME.findall(text)} - _COMMON
