"""Findings as the two texts that consolidation reads: `raw_memory` and `rollout_summary` (spec §5.2, §5.3).

Every bullet names its evidence by number; References tell turn, bytes and words of each. The summary also tells what
was asked for and the steps that were taken; the raw memory keeps only what changes what somebody does next.
"""

from __future__ import annotations

from typing import Final

from commonplace.learning.extract.rules import keywords
from commonplace.learning.extract.rules.findings import (
    FAILURES,
    KNOWLEDGE,
    PREFERENCES,
    Evidence,
    Finding,
    Kind,
    Task,
    quote,
)
from commonplace.learning.reading import commands, patches
from commonplace.learning.reading.session_view import Called, View
from commonplace.state.outputs import Output

_SECTIONS: Final[tuple[tuple[str, frozenset[Kind]], ...]] = (
    ("Preference signals:", PREFERENCES),
    ("Reusable knowledge:", KNOWLEDGE),
    ("Failures and how to do differently:", FAILURES),
)
_MAX_STEPS: Final = 12


def write(view: View, tasks: list[Task], findings: list[Finding]) -> Output:
    """Return what a session taught; empty texts if that is nothing."""
    if not findings:
        return Output("", "")
    shown = _kept(tasks, findings)
    return Output(_raw_memory(view, shown), _summary(view, shown), keywords.slug([task for task, _ in shown]))


def _kept(tasks: list[Task], findings: list[Finding]) -> list[tuple[Task, list[Finding]]]:
    """Return the tasks that are told, each with its findings: those that taught something or in which work was done."""
    found: list[tuple[Task, list[Finding]]] = []
    for place, task in enumerate(tasks):
        own = [finding for finding in findings if finding.task == place]
        if own or any(_is_work(call) for call in task.calls()):
            found.append((task, own))
    return found


def _is_work(call: Called) -> bool:
    return not call.is_memory and (patches.is_edit(call) or not commands.is_looking(commands.parse(call.command)))


def _group(view: View) -> str:
    return view.project or view.cwd or "unknown"


def _raw_memory(view: View, shown: list[tuple[Task, list[Finding]]]) -> str:
    tasks = [task for task, _ in shown]
    findings = [finding for _, own in shown for finding in own]
    first = next((task for task, own in shown if own), tasks[0])
    head = [
        "---",
        f"description: {_description(tasks, findings)}",
        f"task: {_flat(first.name) or 'session'}",
        f"task_group: {_group(view)}",
        f"task_outcome: {first.outcome}",
        f"cwd: {view.cwd or 'unknown'}",
        f"keywords: {', '.join(keywords.keywords(tasks, findings))}",
        "---",
    ]
    parts = ["\n".join(head)]
    numbers = _Numbers()
    for number, (task, own) in enumerate(shown, 1):
        lines = [f"### Task {number}: {_flat(task.name) or 'session'}", ""]
        lines += [
            f"task: {_flat(task.name) or 'session'}",
            f"task_group: {_group(view)}",
            f"task_outcome: {task.outcome}",
        ]
        lines += _sections(own, numbers)
        lines += _references(own, numbers)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _sections(findings: list[Finding], numbers: _Numbers) -> list[str]:
    lines: list[str] = []
    for title, kinds in _SECTIONS:
        bullets = [f"- {_flat(finding.text)} {numbers.of(finding)}" for finding in findings if finding.kind in kinds]
        if bullets:
            lines += ["", title, *bullets]
    return lines


def _references(findings: list[Finding], numbers: _Numbers) -> list[str]:
    seen: dict[int, Evidence] = {}
    for finding in findings:
        for evidence in finding.evidence:
            seen.setdefault(numbers.number(evidence), evidence)
    if not seen:
        return []
    bullets = [
        f'- [{number}] {_where(evidence)}, {evidence.how}: "{evidence.quote}"'
        for number, evidence in sorted(seen.items())
    ]
    return ["", "References:", *bullets]


def _where(evidence: Evidence) -> str:
    return f"turn {evidence.at.turn}, bytes {evidence.at.start}-{evidence.at.end}"


class _Numbers:
    """The number of each piece of evidence, as it is first named."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, str], int] = {}

    def number(self, evidence: Evidence) -> int:
        return self._known.setdefault((evidence.at.start, evidence.at.end, evidence.quote), len(self._known) + 1)

    def of(self, finding: Finding) -> str:
        return "".join(f"[{number}]" for number in dict.fromkeys(self.number(each) for each in finding.evidence))


def _description(tasks: list[Task], findings: list[Finding]) -> str:
    done = "; ".join(f"{quote(task.name, 80) or 'session'} ({task.outcome})" for task in tasks[:3])
    best = next((finding for finding in findings if finding.kind in PREFERENCES), findings[0])
    return _flat(f"{done}. Best takeaway: {quote(best.text, 160)}")


def _summary(view: View, shown: list[tuple[Task, list[Finding]]]) -> str:
    tasks = [task for task, _ in shown]
    named = "; ".join(f"{quote(task.name, 60) or 'session'}: {task.outcome}" for task in tasks[:4])
    lines = [f"# {_flat(named)}", ""]
    where = f"in {view.cwd or 'an unknown folder'}" + (f" on branch {view.branch}" if view.branch else "")
    size = f"{view.dialogue_bytes():,} bytes of dialogue ({view.spoken_bytes():,} spoken)"
    lines.append(f"Rollout context: {len(tasks)} task(s), {size}, {where}, {view.started[:10]}, {view.source}.")
    numbers = _Numbers()
    for number, (task, own) in enumerate(shown, 1):
        lines += ["", f"## Task {number}: {_flat(task.name) or 'session'}", f"Outcome: {task.outcome}"]
        preferences, *others = _SECTIONS
        lines += _section(preferences, own, numbers)
        steps = _steps(task)
        lines += ["", "Key steps:", *steps] if steps else []
        for section in reversed(others):
            lines += _section(section, own, numbers)
        references = _references(own, numbers)
        lines += ["", "References", *references[2:]] if references else []
    return "\n".join(lines) + "\n"


def _section(section: tuple[str, frozenset[Kind]], findings: list[Finding], numbers: _Numbers) -> list[str]:
    title, kinds = section
    bullets = [f"- {_flat(finding.text)} {numbers.of(finding)}" for finding in findings if finding.kind in kinds]
    return ["", title, *bullets] if bullets else []


def _steps(task: Task) -> list[str]:
    steps: list[str] = []
    for call in task.calls():
        if call.is_memory or call.refused or not call.command or not call.ok:
            continue  # what failed is told where something was learned from it
        if not commands.is_looking(commands.parse(call.command)) and not commands.takes_back(call.command):
            steps.append(f"- `{quote(commands.shown(call.command), 160)}` (exit 0)")
    if task.why:
        steps.append(f"- outcome by evidence: {task.why}")
    return steps[-_MAX_STEPS:]


def _flat(text: str) -> str:
    return " ".join(text.split())
