"""The embedded extractor: reads a session without a model, and says less rather than guess.

    view → tasks (cut, judged) → detectors (preferences, statements, repeated, fixes, failures, verify, procedure)
         → withdrawn and repeated findings out → texts

Each detector is a plain function over tasks; each finding carries the words it rests on. The same session always gives
the same bytes.
"""

from __future__ import annotations

import anyio.to_thread

from commonplace.pipeline.embedded import (
    failures,
    fixes,
    merge,
    outcomes,
    preferences,
    procedure,
    render,
    repeated,
    retractions,
    statements,
    tasks,
    verify,
)
from commonplace.pipeline.embedded.findings import Finding, Task
from commonplace.pipeline.view import View
from commonplace.state.outputs import Output


class Embedded:
    """The extractor that needs nothing."""

    name = "embedded"

    async def extract(self, view: View) -> Output:
        """Return what a session taught; empty texts if nothing."""
        return await anyio.to_thread.run_sync(extract, view)


def extract(view: View) -> Output:
    """Return what a session taught."""
    found, findings = findings_of(view)
    return render.write(view, found, findings)


def findings_of(view: View) -> tuple[list[Task], list[Finding]]:
    """Return the tasks of a session and what each taught."""
    found = tasks.cut(view)
    outcomes.judge(found)
    findings: list[Finding] = []
    for place, task in enumerate(found):
        findings.extend(preferences.of_task(task, place))
        findings.extend(fixes.of_task(task, place))
        findings.extend(failures.of_task(task, place))
    findings.extend(statements.of_tasks(found))
    findings.extend(repeated.of_tasks(found))
    findings.extend(verify.of_tasks(found))
    findings.extend(procedure.of_tasks(found))
    return found, merge.once(retractions.without(findings, found))
