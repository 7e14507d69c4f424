"""What failed and was never put right: the last error of a task that ended without success."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.learning.extract.rules.findings import RuleFinding, SessionTask, quote
from commonplace.learning.extract.rules.fixes import runs
from commonplace.learning.reading import commands, errors, sentences, tables
from commonplace.learning.reading.session_view import ToolUse, UserText

_HALF_DONE: Final = tables.pattern("half_done")
_NOT_FOUND: Final = 127
"""A program that is not there is mostly a slip of the fingers; where it is a lesson, something else worked."""


def of_tasks(tasks: list[SessionTask]) -> Iterator[RuleFinding]:
    """Yield what failed tasks broke on."""
    for place, task in enumerate(tasks):
        yield from of_task(task, place)


def of_task(task: SessionTask, place: int) -> Iterator[RuleFinding]:
    """Yield what a failed task broke on: each program's last failure, if nothing of it worked later."""
    if task.outcome not in ("fail", "partial"):
        return
    open_failures: dict[str, ToolUse] = {}
    for call in runs(task):
        command = commands.parse(call.command)
        if errors.worked(call):
            if not command.looks:
                open_failures.pop(command.program, None)
        elif call.code != _NOT_FOUND and not _says_nothing(call, task) and not commands.is_looking(command):
            open_failures[command.program] = call
    for failed in list(open_failures.values())[-2:]:
        line = errors.lines(failed.output, 3)
        if line:
            text = f"`{quote(failed.command, 200)}` failed and was not put right: {line}"
            ran = (quote(failed.command, 200),)
            yield RuleFinding("failure", [errors.evidence(failed, line)], place, shown=text, commands=ran)


def _says_nothing(call: ToolUse, task: SessionTask) -> bool:
    """Say whether a failure teaches nothing: it comes and goes, or is a check's word on work that was then given up."""
    if errors.is_nothing(call) or errors.is_passing(call):
        return True
    return commands.is_verifying(call.command) and not errors.is_not_the_code(call) and _is_given_up(task, call)


def _is_given_up(task: SessionTask, failed: ToolUse) -> bool:
    """Say whether work was taken back or left after a check failed: then the person's words tell why."""
    later = task.events[task.events.index(failed) + 1 :]
    return any(
        commands.takes_back(event.command)
        if isinstance(event, ToolUse)
        else isinstance(event, UserText)
        and (
            any(each.heard.says("rejection") for each in sentences.of_text(event.text))
            or _HALF_DONE.search(event.text.lower())
        )
        for event in later
    )
