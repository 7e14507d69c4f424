"""How a project is verified: the checks that were run here and succeeded, each program in its most complete form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.learning.extract.rules.findings import FindingEvidence, RuleFinding, SessionTask, quote
from commonplace.learning.extract.rules.fixes import runs
from commonplace.learning.reading import commands, errors, sentences, tables
from commonplace.learning.reading.session_view import ToolUse, UserText

_CHECK: Final = tables.pattern("calls_it_check")


def of_tasks(tasks: list[SessionTask]) -> Iterator[RuleFinding]:
    """Yield the checks that succeeded when they were last run, one for each program."""
    last: dict[str, tuple[ToolUse, int]] = {}
    best: dict[str, tuple[ToolUse, int]] = {}
    for place, task in enumerate(tasks):
        for call in runs(task):
            if not (commands.is_verifying(call.command) or _is_named(call, task)) or errors.checked_nothing(call):
                continue
            name = commands.parse(call.command).program
            last[name] = (call, place)
            known = best.get(name)
            if errors.worked(call) and (known is None or _is_as_complete(call, known[0])):
                best[name] = (call, place)
    kept = {name: found for name, found in best.items() if last[name][0].ok}
    for name, (call, place) in kept.items():
        if any(call.command in other.command for key, (other, _) in kept.items() if key != name):
            continue
        evidence = FindingEvidence(call.at, quote(call.command), "verified by exit status")
        line = quote(call.command, 200)
        yield RuleFinding("verify", [evidence], place, shown=f"verify with `{line}` (exit 0 here)", commands=(line,))


def _is_named(call: ToolUse, task: SessionTask) -> bool:
    """Say whether the person called this very command the check."""
    line = commands.parse(call.command).line
    return any(
        line in sentence.text and _CHECK.search(sentence.heard.lower)
        for event in task.events
        if isinstance(event, UserText)
        for sentence in sentences.of_text(event.text)
    )


def _is_as_complete(call: ToolUse, known: ToolUse) -> bool:
    return commands.completeness(call.command) >= commands.completeness(known.command)
