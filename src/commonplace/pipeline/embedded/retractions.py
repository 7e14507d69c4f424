"""What a person said and took back: a wish or a decision that the next words of theirs withdraw teaches nothing."""

from __future__ import annotations

from typing import Final

from commonplace.pipeline.embedded import sentences
from commonplace.pipeline.embedded.findings import PREFERENCES, Finding, Kind, Task
from commonplace.pipeline.view import Said, Span

_SAID: Final[frozenset[Kind]] = frozenset({*PREFERENCES, "decision"})


def without(findings: list[Finding], tasks: list[Task]) -> list[Finding]:
    """Return findings without the wishes and decisions that were withdrawn in the next message."""
    gone = _taken_back(tasks)
    if not gone:
        return findings
    return [each for each in findings if each.kind not in _SAID or each.evidence[0].at not in gone]


def _taken_back(tasks: list[Task]) -> list[Span]:
    gone: list[Span] = []
    before: Said | None = None
    for task in tasks:
        for event in task.events:
            if not isinstance(event, Said):
                continue
            own = sentences.of_text(event.text)
            if before is not None and any(each.heard.says("retraction") for each in own[:2]):
                gone.append(before.at)
            before = event
    return gone
