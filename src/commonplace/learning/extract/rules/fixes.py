"""What failed and what worked instead, told by exit codes: the command that failed, how, and what came after it.

A failure is put right by the same command with something added, or by another one for the same goal, or by what was
done before the very same command worked: something installed, started, unlocked, configured. A test that fails until
the code is right is none of these: that is work. Neither is a word spelt wrong, nor a second try that changed nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.learning.extract.rules.findings import FindingEvidence, RuleFinding, SessionTask, quote
from commonplace.learning.reading import commands, errors, patches, tables
from commonplace.learning.reading.commands import Command
from commonplace.learning.reading.session_view import ToolUse

_ALIKE: Final = 0.45
_ALIKE_NOT_FOUND: Final = 0.3
"""A program that is not there is called by another name: fewer words are shared."""
_NOT_FOUND: Final = 127
_TIMED_OUT: Final = 124
_WITHIN: Final = 14
"""How many calls after a failure are looked at."""
_MAX_STEPS: Final = 4
_SEARCHED: Final = re.compile(r"\|\s*(?:grep|rg|wc|less|awk|sed)\b[^|]*$")
_PARTS: Final = re.compile(r"[/.:=@_]")
_PASSING: Final = tables.pattern("passing")


def of_tasks(tasks: list[SessionTask]) -> Iterator[RuleFinding]:
    """Yield the lessons of failed commands."""
    for place, task in enumerate(tasks):
        yield from of_task(task, place)


def of_task(task: SessionTask, place: int) -> Iterator[RuleFinding]:
    """Yield the lessons of a task's failed commands."""
    calls = runs(task)
    told: set[str] = set()
    for number, failed in enumerate(calls):
        first = commands.parse(failed.command)
        later = calls[number + 1 : number + 1 + _WITHIN]
        if errors.worked(failed) or errors.is_nothing(failed) or not first.program or first.line in told:
            continue
        if _is_slip(first, failed, later):
            continue
        found = _what_worked(first, failed, later, task, place)
        if found is not None:
            told.add(first.line)
            yield found


def _is_slip(first: Command, failed: ToolUse, later: list[ToolUse]) -> bool:
    """Say whether a command failed on a name spelt wrong: the error tells it, and a later command spells it right."""
    told = failed.output.lower()
    named = [word for word in _names(first) if word in told]
    after = {word for call in later for word in _names(commands.parse(call.command))}
    return any(word not in after and any(commands.is_misspelt(word, right) for right in after) for word in named)


def _names(command: Command) -> set[str]:
    """Return the words that a command's operands are made of."""
    return {part for word in command.words for part in _PARTS.split(word) if len(part) > 3 and not part.startswith("-")}


def runs(task: SessionTask) -> list[ToolUse]:
    """Return the commands of a task that ran to an end."""
    return [
        call
        for call in task.calls()
        if call.command and call.ok is not None and not call.is_memory and not call.refused
    ]


def _what_worked(
    first: Command, failed: ToolUse, later: list[ToolUse], task: SessionTask, place: int
) -> RuleFinding | None:
    """Return what put a failure right; None if nothing did, or if what did was ordinary work."""
    steps: list[ToolUse] = []
    for number, call in enumerate(later):
        command = commands.parse(call.command)
        worked = _has_worked(call)
        if command.line == first.line:
            if not worked:
                if errors.lines(call.output) == errors.lines(failed.output) or not steps:
                    steps, failed = [], call  # what was done so far did not help
                continue  # else it helped with that, and something else is wrong now
            return _by_steps(failed, steps, call, task, place)
        holds = commands.holds(command, first)
        if first.looks and not (holds and worked and _configured(task, failed, call)):
            if worked and commands.is_elsewhere(first, command):
                return _finding(failed, [call], place)
            continue
        if holds and (worked or _works_later(command, later[number + 1 :])):
            return _unless_work(first, failed, [*_kin(steps, first), call], task, place)
        if not worked:
            continue
        if _is_other_way(first, command, failed):
            if commands.is_typo(first, command) and (failed.code == _NOT_FOUND or commands.same_start(first, command)):
                return None
            return _unless_work(first, failed, [*_kin(steps, first), call], task, place)
        if not commands.is_looking(command) and not commands.takes_back(command.line):
            steps.append(call)
    named = next((call for call in steps[:2] if _is_named_in(failed, call)), None)
    return _finding(failed, [named], place) if named is not None and not errors.is_verdict(failed) else None


def _is_named_in(failed: ToolUse, call: ToolUse) -> bool:
    """Say whether an error names the program that was run next: it told what to use instead."""
    name = commands.parse(call.command).program.split()[0]
    told = errors.lines(failed.output, 4).lower()
    return (
        len(name) > 2 and name not in failed.command and re.search(rf"\b{re.escape(name.lower())}\b", told) is not None
    )


def _has_worked(call: ToolUse) -> bool:
    """Say whether a command worked; one that runs until it is stopped did if it told no error.

    What a search found in an output tells nothing about the command before it.
    """
    if _SEARCHED.search(call.command):
        return False
    return errors.worked(call) or (
        call.code == _TIMED_OUT and "timeout" in call.command and not errors.lines(call.output)
    )


def _works_later(command: Command, later: list[ToolUse]) -> bool:
    """Say whether a command that went further than the one before it worked in the end."""
    return any(call.ok and commands.parse(call.command).line == command.line for call in later)


def _by_steps(
    failed: ToolUse, steps: list[ToolUse], worked: ToolUse, task: SessionTask, place: int
) -> RuleFinding | None:
    """Return what was done before the same command worked: a change of configuration, or commands."""
    changed = _configured(task, failed, worked)
    if changed is not None and not errors.is_verdict(failed):
        return _by_change(failed, changed, worked, place)
    if not steps or _edits_between(task, failed, worked):
        return None
    return _finding(failed, steps[-_MAX_STEPS:], place)


def _kin(steps: list[ToolUse], first: Command) -> list[ToolUse]:
    """Return the steps that belong to what failed: of the same program, and the last one."""
    name = first.program.split()[:1]
    kin = [call for call in steps if commands.parse(call.command).program.split()[:1] == name or call is steps[-1]]
    return [call for call in kin if not commands.is_verifying(call.command)][-2:]


def _unless_work(
    first: Command, failed: ToolUse, worked: list[ToolUse], task: SessionTask, place: int
) -> RuleFinding | None:
    """Return a finding, unless what lies between is ordinary work on the code."""
    edits = _edits_between(task, failed, worked[-1])
    if not edits and commands.only_sets(commands.parse(worked[-1].command), first):
        return _finding(failed, worked, place)  # the same check in another environment: not the code was wrong
    changed = _configured(task, failed, worked[-1])
    if changed is not None and not errors.is_verdict(failed):
        return _by_change(failed, changed, worked[-1], place)
    if errors.is_verdict(failed) or (_PASSING.search(failed.output) and first.line == worked[-1].command):
        return None
    of_code = commands.is_verifying(first.line) or errors.is_in_code(failed)
    if of_code and any(not patches.is_configuration(edit) for edit in edits):
        return None
    return _finding(failed, worked, place)


def _is_other_way(one: Command, two: Command, failed: ToolUse) -> bool:
    """Say whether one command does what another was to do: alike, and for the same goal."""
    if not one.program or not two.program or commands.is_looking(two):
        return False
    not_found = failed.code == _NOT_FOUND or "command not found" in failed.output
    least = _ALIKE_NOT_FOUND if not_found else _ALIKE
    if commands.likeness(one, two) < least:
        return False
    if commands.extends(two, one):
        return True
    shared = one.operands & two.operands
    if one.program != two.program and one.program.split()[:1] == two.program.split()[:1]:
        return len(shared) > 1 or (
            bool(one.operands) and one.operands <= two.operands
        )  # another command of the same program is rarely another way
    return bool(shared) or (one.program == two.program and not one.operands)


def _configured(task: SessionTask, failed: ToolUse, worked: ToolUse) -> ToolUse | None:
    """Return the change of configuration between a failure and what worked."""
    return next((edit for edit in _edits_between(task, failed, worked) if patches.is_configuration(edit)), None)


def _edits_between(task: SessionTask, first: ToolUse, last: ToolUse) -> list[ToolUse]:
    inside = False
    found: list[ToolUse] = []
    for event in task.events:
        if event is first:
            inside = True
        elif event is last:
            break
        elif inside and isinstance(event, ToolUse) and patches.is_edit(event) and event.ok:
            found.append(event)
    return found


def _finding(failed: ToolUse, worked: list[ToolUse], place: int) -> RuleFinding:
    line = errors.error_summary(failed.output)
    how = " then ".join(f"`{quote(call.command, 200)}`" for call in worked)
    because = f" ({line})" if line else ""
    text = f"`{quote(failed.command, 200)}` failed{because}; {how} worked (exit 0)"
    evidence = [errors.evidence(failed, line)]
    evidence += [FindingEvidence(call.at, quote(call.command, 200), "verified by exit status") for call in worked]
    ran = tuple(quote(call.command, 200) for call in (failed, *worked))
    return RuleFinding("fix", evidence, place, shown=text, commands=ran)


def _by_change(failed: ToolUse, change: ToolUse, worked: ToolUse, place: int) -> RuleFinding:
    line = errors.error_summary(failed.output)
    what = patches.describe_change(change)
    text = f"`{quote(failed.command, 160)}` failed ({line}); after changing {what} it worked (exit 0)"
    evidence = [errors.evidence(failed, line), FindingEvidence(change.at, what, "verified by the next run")]
    evidence.append(FindingEvidence(worked.at, quote(worked.command, 160), "verified by exit status"))
    return RuleFinding(
        "fix", evidence, place, shown=text, commands=(quote(failed.command, 160), *patches.names(change))
    )
