"""What was learned as the two texts that consolidation reads (spec §5.2, §5.3), in the embedded reader's form.

Head, numbers and references are made anew from what was kept, whatever the model wrote. A task without bullets is not
in `raw_memory`, and the others are counted without it; `rollout_summary` tells every task, since how one ended is worth
knowing too. The line `Rollout context:` says who read the session, and by which version of the instructions.
"""

from __future__ import annotations

from typing import Final

from commonplace.learning.extract.model.drafts import FAILURES, KNOWLEDGE, PREFERENCES, STEPS
from commonplace.learning.extract.model.verified import Learned, Task, Told
from commonplace.learning.extract.rules.findings import Evidence, quote
from commonplace.learning.reading.session_view import View
from commonplace.state.outputs import Output

_MEMORY: Final = (PREFERENCES, KNOWLEDGE, FAILURES)
_SUMMARY: Final = (PREFERENCES, STEPS, FAILURES, KNOWLEDGE)
_MAX_KEYWORDS: Final = 24
_MAX_TITLE: Final = 240


def write(view: View, told: Told, reader: str) -> Output:
    """Return what a session taught; empty texts if that is nothing."""
    if told.is_empty:
        return Output("", "")
    return Output(memory_of(told, view), _summary_of(told, view, reader), told.slug)


def memory_of(told: Told, view: View | None = None) -> str:
    """Return the text of `raw_memory`."""
    tasks = [task for task in told.tasks if task.learned]
    main = max(tasks, key=lambda task: len(task.learned))
    group = _flat(view.project or view.cwd if view else "") or "unknown"
    folder = _flat(told.cwd or (view.cwd if view else "")) or "unknown"
    head = [
        "---",
        f"description: {told.description or _description(tasks)}",
        f"task: {main.name}",
        f"task_group: {group}",
        f"task_outcome: {main.outcome}",
        f"cwd: {folder}",
        f"keywords: {', '.join(told.keywords[:_MAX_KEYWORDS])}",
        "---",
    ]
    parts = ["\n".join(head)]
    numbers = _Numbers()
    for number, task in enumerate(tasks, 1):
        lines = [f"### Task {number}: {task.name}", "", f"task: {task.name}", f"task_group: {group}"]
        lines.append(f"task_outcome: {task.outcome}")
        lines += _sections(task.learned, _MEMORY, numbers)
        parts.append("\n".join([*lines, *_references(task.learned, numbers, "References:")]))
    return "\n\n".join(parts) + "\n"


def _summary_of(told: Told, view: View, reader: str) -> str:
    named = "; ".join(f"{quote(task.name, 60)}: {task.outcome}" for task in told.tasks[:4])
    where = f"in {view.cwd or 'an unknown folder'}" + (f" on branch {view.branch}" if view.branch else "")
    who = f"{view.started[:10]}, {view.source}, read by {reader}."
    size = f"{view.dialogue_bytes():,} bytes of dialogue ({view.spoken_bytes():,} spoken)"
    facts = _flat(f"{len(told.tasks)} task(s), {size}, {where}, {who}")
    lines = [f"# {quote(told.title, _MAX_TITLE) or named}", "", f"Rollout context: {facts} {told.context}".rstrip()]
    numbers = _Numbers()
    for number, task in enumerate(told.tasks, 1):
        lines += ["", f"## Task {number}: {task.name}", f"Outcome: {task.outcome}"]
        lines += _sections(task.told, _SUMMARY, numbers)
        lines += _references(task.told, numbers, "References")
    return "\n".join(lines) + "\n"


def _sections(bullets: list[Learned], titles: tuple[str, ...], numbers: _Numbers) -> list[str]:
    lines: list[str] = []
    for title in titles:
        own = [f"- {each.text} {numbers.of(each)}".rstrip() for each in bullets if each.section == title]
        lines += ["", title, *own] if own else []
    return lines


def _references(bullets: list[Learned], numbers: _Numbers, title: str) -> list[str]:
    seen = {numbers.number(each): each for bullet in bullets for each in bullet.evidence}
    lines = [
        f'- [{number}] turn {each.at.turn}, bytes {each.at.start}-{each.at.end}, {each.how}: "{each.quote}"'
        for number, each in sorted(seen.items())
    ]
    return ["", title, *lines] if lines else []


class _Numbers:
    """The number of each piece of evidence, as it is first named."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, str], int] = {}

    def number(self, evidence: Evidence) -> int:
        return self._known.setdefault((evidence.at.start, evidence.at.end, evidence.quote), len(self._known) + 1)

    def of(self, bullet: Learned) -> str:
        return "".join(f"[{number}]" for number in dict.fromkeys(map(self.number, bullet.evidence)))


def _description(tasks: list[Task]) -> str:
    done = "; ".join(f"{quote(task.name, 80)} ({task.outcome})" for task in tasks[:3])
    bullets = [each for task in tasks for each in task.learned]
    best = next((each for each in bullets if each.section == PREFERENCES), bullets[0])
    return f"{done}. Best takeaway: {quote(best.text, 160)}"


def _flat(text: str) -> str:
    return " ".join(text.split())
