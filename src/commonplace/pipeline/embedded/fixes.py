"""What failed and what worked instead, told by exit codes: the command that failed, how, and what came after it.

Three shapes. A command failed and another one much like it worked: what differs is the lesson. A command failed,
something was set up (installed, started, exported) or put right in the configuration, and the very same command worked:
that is the lesson. And what failed and was never put right, where the task ended without success. A test that fails
until the code is right is none of these: that is work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.pipeline.embedded import commands, guard, patches, tables
from commonplace.pipeline.embedded.commands import Command
from commonplace.pipeline.embedded.findings import Evidence, Finding, Task, quote
from commonplace.pipeline.embedded.tasks import is_edit
from commonplace.pipeline.view import Called

_ALIKE: Final = 0.45
_ALIKE_NOT_FOUND: Final = 0.3
"""A program that is not there is called by another name: fewer words are shared."""
_NOT_FOUND: Final = 127
_WITHIN: Final = 12
"""How many calls after a failure are looked at."""
_ERROR: Final = tables.pattern("error")
_SUMMARY: Final = tables.pattern("counting")


def of_task(task: Task, place: int) -> Iterator[Finding]:
    """Yield the lessons of a task's failed commands."""
    calls = [
        call
        for call in task.calls()
        if call.command and call.ok is not None and not call.is_memory and not call.refused
    ]
    told: set[str] = set()
    open_failure: Called | None = None
    for number, failed in enumerate(calls):
        first = commands.parse(failed.command)
        if failed.ok or _is_nothing(failed) or commands.is_looking(first):
            if failed.ok and open_failure is not None and commands.parse(open_failure.command).program == first.program:
                open_failure = None
            continue
        worked = _what_worked(first, failed, calls[number + 1 : number + 1 + _WITHIN], task, place)
        if worked is None:
            open_failure = failed
            continue
        if first.line not in told:
            told.add(first.line)
            yield worked if isinstance(worked, Finding) else _finding(failed, worked, place)
            open_failure = None
    if open_failure is not None and task.outcome in ("fail", "partial"):
        yield _unsolved(open_failure, place)


def _what_worked(
    first: Command, failed: Called, later: list[Called], task: Task, place: int
) -> list[Called] | Finding | None:
    """Return what put a failure right; None if nothing did, or if what did was ordinary work."""
    setups: list[Called] = []
    not_found = failed.code == _NOT_FOUND
    for call in later:
        command = commands.parse(call.command)
        edits = _edits_between(task, failed, call)
        if command.line == first.line:
            if not call.ok:
                setups = []
                continue
            changed = next((edit for edit in edits if patches.is_configuration(edit)), None)
            if changed is not None and not _is_assertion(failed):
                return _by_change(failed, changed, call, place)
            return setups if setups and not edits else None
        if not call.ok:
            continue
        if first.line in command.line and not edits:
            return [call]
        alike = commands.likeness(first, command)
        if command.program and alike >= (_ALIKE_NOT_FOUND if not_found else _ALIKE) and _same_goal(first, command):
            return None if edits and commands.is_verifying(first.line) else [call]
        if commands.is_setting_up(call.command) and not commands.is_looking(command):
            setups.append(call)
    return None


def _same_goal(one: Command, two: Command) -> bool:
    """Say whether two commands want the same: the same program, or the same things behind another one."""
    if one.program == two.program:
        return one.line != two.line
    if not one.program or not two.program:
        return False
    names = {one.program.split()[0].lower(), two.program.split()[0].lower()}
    return any(not word.startswith("-") for word in (one.words & two.words) - names)


def _edits_between(task: Task, first: Called, last: Called) -> list[Called]:
    inside = False
    found: list[Called] = []
    for event in task.events:
        if event is first:
            inside = True
        elif event is last:
            break
        elif inside and isinstance(event, Called) and is_edit(event) and event.ok:
            found.append(event)
    return found


def _is_assertion(call: Called) -> bool:
    """Say whether a failure is a test's verdict on the code."""
    return bool(
        re.search(r"AssertionError|assert |expected:|FAILED .*::|Failures:\s*[1-9]|\d+ failed", call.output)
    ) and not re.search(r"NoSuchMethod|ClassNotFound|ModuleNotFound|ImportError|incompatible|version", call.output)


def _is_nothing(call: Called) -> bool:
    """Say whether a failure says nothing: a search that found nothing, a run that somebody stopped."""
    if call.code == 130 or call.command.startswith(("grep", "rg ", "test ", "[ ", "diff ", "git diff")):
        return True
    return call.code == 1 and not call.output.strip()


def error_lines(output: str, count: int = 2) -> str:
    """Return the lines of an output that tell best what went wrong; nothing that tries to steer its reader."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    telling = [line for line in lines if _ERROR.search(line) and len(line) < 300 and not guard.is_injection(line)]
    better = [line for line in telling if not _SUMMARY.search(line)] or telling
    return " | ".join(quote(line, 160) for line in dict.fromkeys(better[-count:]))


def _finding(failed: Called, worked: list[Called], place: int) -> Finding:
    line = error_lines(failed.output)
    how = " then ".join(f"`{quote(call.command, 200)}`" for call in worked[:4])
    because = f" ({line})" if line else ""
    text = f"`{quote(failed.command, 200)}` failed{because}; {how} worked (exit 0)"
    evidence = [_failed_evidence(failed, line)]
    evidence += [Evidence(call.at, quote(call.command, 200), "verified by exit status") for call in worked[:4]]
    return Finding("fix", text, evidence, place)


def _failed_evidence(failed: Called, line: str) -> Evidence:
    return Evidence(failed.at, f"{quote(failed.command, 200)} -> {line or 'failed'}", "verified by exit status")


def _by_change(failed: Called, change: Called, worked: Called, place: int) -> Finding:
    line = error_lines(failed.output)
    what = patches.told(change)
    text = f"`{quote(failed.command, 160)}` failed ({line}); after changing {what} it worked (exit 0)"
    evidence = [_failed_evidence(failed, line), Evidence(change.at, what, "verified by the next run")]
    return Finding(
        "fix", text, [*evidence, Evidence(worked.at, quote(worked.command, 160), "verified by exit status")], place
    )


def _unsolved(failed: Called, place: int) -> Finding:
    line = error_lines(failed.output, 3)
    text = f"`{quote(failed.command, 200)}` failed and was not put right" + (f": {line}" if line else "")
    return Finding("failure", text, [_failed_evidence(failed, line)], place)
