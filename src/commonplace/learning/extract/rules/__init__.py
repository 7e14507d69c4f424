"""The embedded extractor: reads a session without a model, and says less rather than guess.

    view → tasks (cut, judged) → detectors (spoken, repeated, fixes, failures, verify, procedure)
         → withdrawn and repeated findings out → texts

Each detector is a plain function over tasks; each finding carries the words it rests on. The same session always gives
the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import anyio.to_thread

from commonplace.learning.extract.rules import (
    assemble,
    checks,
    failures,
    fixes,
    merge,
    person_statements,
    procedures,
    repetition,
    retractions,
)
from commonplace.learning.extract.rules.findings import RuleFinding, SessionTask
from commonplace.learning.reading import outcomes, tasks
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory.files import lesson_text
from commonplace.state.outputs import Output

Detector = Callable[[list[SessionTask]], Iterable[RuleFinding]]
DETECTORS: Final[dict[str, Detector]] = {
    "fixes": fixes.of_tasks,
    "failures": failures.of_tasks,
    "spoken": person_statements.of_tasks,
    "repeated": repetition.of_tasks,
    "verify": checks.of_tasks,
    "procedure": procedures.of_tasks,
}
"""Each finds what it finds without the others, in tasks that were cut and judged."""


class RuleExtractor:
    """The embedded extractor: it works by rules and a small classifier, and needs no model."""

    name = "embedded"

    async def extract(self, view: SessionView) -> Output:
        """Return what a session taught; empty texts if nothing."""
        return await anyio.to_thread.run_sync(extract, view)


def extract(view: SessionView) -> Output:
    """Return what a session taught."""
    found, findings = findings_of(view)
    return lesson_text.output(assemble.session_lessons(view, found, findings))


def findings_of(view: SessionView) -> tuple[list[SessionTask], list[RuleFinding]]:
    """Return the tasks of a session and what each taught."""
    found = tasks.cut(view)
    outcomes.judge(found)
    findings = [finding for detect in DETECTORS.values() for finding in detect(found)]
    return found, merge.unique_findings(retractions.without_retracted(findings, found))
