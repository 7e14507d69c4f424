"""Ordered steps that reached what a person asked for: commands that did something, and worked.

Steps are worth keeping if the goal is one that comes back (a release, a restore, a deployment), or if the same steps
were taken again for something else: what varies between repetitions is a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.learning.extract.rules.findings import FindingEvidence, RuleFinding, SessionTask, quote
from commonplace.learning.extract.rules.fixes import runs
from commonplace.learning.reading import commands, patches, tables
from commonplace.learning.reading.session_view import ToolUse

_GOALS: Final = tables.pattern("goal")
_FEWEST: Final = 3
_MOST: Final = 12


def of_tasks(tasks: list[SessionTask]) -> Iterator[RuleFinding]:
    """Yield the procedures of a session."""
    told: set[tuple[str, ...]] = set()
    shapes = [_shape(task) for task in tasks]
    for place, task in enumerate(tasks):
        steps = _steps(task)
        shape = shapes[place]
        if task.outcome != "success" or shape in told or not _FEWEST <= len(steps) <= _MOST:
            continue
        again = shapes.count(shape) > 1 and len(set(shape)) > 1
        if again or _is_worth_keeping(task, steps):
            told.add(shape)
            yield _finding(task, steps, place)


def _steps(task: SessionTask) -> list[ToolUse]:
    """Return the commands that did something and worked, each once, as it was last run."""
    found: dict[str, ToolUse] = {}
    for call in runs(task):
        command = commands.parse(call.command)
        if call.ok and not commands.is_looking(command) and not commands.takes_back(command.line):
            found.pop(command.line, None)
            found[command.line] = call
    return list(found.values())


def _shape(task: SessionTask) -> tuple[str, ...]:
    return tuple(commands.parse(call.command).program for call in _steps(task))


def _is_worth_keeping(task: SessionTask, steps: list[ToolUse]) -> bool:
    """Say whether the goal comes back: asked for by name, or reached by many different programs and no edits."""
    edits = sum(patches.is_edit(call) for call in task.calls())
    programs = {commands.parse(call.command).program.split()[0] for call in steps}
    checks = sum(commands.is_verifying(call.command) for call in steps)
    if _GOALS.search(task.request):
        return edits <= 1 and checks < len(steps) - 1
    return not edits and len(programs) >= _FEWEST and len(steps) - checks > _FEWEST


def _finding(task: SessionTask, steps: list[ToolUse], place: int) -> RuleFinding:
    lines = [quote(call.command, 160) for call in steps]
    text = f"steps to {quote(task.name, 80)}: " + " -> ".join(f"`{line}`" for line in lines)
    evidence = [
        FindingEvidence(call.at, line, "verified by exit status") for call, line in zip(steps, lines, strict=True)
    ]
    return RuleFinding("procedure", evidence, place, shown=text, commands=tuple(lines))
