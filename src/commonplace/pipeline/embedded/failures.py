"""What failed and was never put right: the last error of a task that ended without success."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.pipeline.embedded import commands, errors
from commonplace.pipeline.embedded.findings import Finding, Task, quote
from commonplace.pipeline.embedded.fixes import runs
from commonplace.pipeline.view import Called

_NOT_FOUND: Final = 127
"""A program that is not there is mostly a slip of the fingers; where it is a lesson, something else worked."""


def of_task(task: Task, place: int) -> Iterator[Finding]:
    """Yield what a failed task broke on: each program's last failure, if nothing of it worked later."""
    if task.outcome not in ("fail", "partial"):
        return
    open_failures: dict[str, Called] = {}
    for call in runs(task):
        command = commands.parse(call.command)
        if errors.worked(call):
            if not command.looks:
                open_failures.pop(command.program, None)
        elif call.code != _NOT_FOUND and not errors.is_nothing(call) and not commands.is_looking(command):
            open_failures[command.program] = call
    for failed in list(open_failures.values())[-2:]:
        line = errors.lines(failed.output, 3)
        if line:
            text = f"`{quote(failed.command, 200)}` failed and was not put right: {line}"
            yield Finding("failure", text, [errors.evidence(failed, line)], place)
