"""The embedded extractor: reads a session without a model, and says less rather than guess.

    view → tasks (cut, judged) → detectors (preferences, repeated, fixes, knowledge) → merged findings → texts

Each detector is a plain function over tasks; each finding carries the words it rests on. The same session always gives
the same bytes.
"""

from __future__ import annotations

import anyio.to_thread

from commonplace.pipeline.embedded import fixes, knowledge, merge, preferences, render, repeated, tasks
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
    tasks.judge(found)
    findings: list[Finding] = []
    for place, task in enumerate(found):
        findings.extend(preferences.of_task(task, place))
        findings.extend(fixes.of_task(task, place))
        findings.extend(knowledge.of_task(task, place))
    findings.extend(repeated.of_tasks(found))
    return found, merge.once(findings)
