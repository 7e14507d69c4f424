"""From findings to lessons: the tasks that are told, each with its lessons and its steps."""

from __future__ import annotations

from commonplace.learning.extract.rules import keywords
from commonplace.learning.reading import commands, patches, titles
from commonplace.learning.reading.findings import RuleFinding, SessionTask, quote
from commonplace.learning.reading.session_view import SessionView, ToolUse
from commonplace.memory.files.lesson_text import MAX_STEPS, UNNAMED, flat
from commonplace.memory.injection import may_run_fetched
from commonplace.memory.lessons import SessionLessons, TaskLessons


def session_lessons(view: SessionView, tasks: list[SessionTask], findings: list[RuleFinding]) -> SessionLessons:
    """Return what a session taught; without a task if nothing was learned and nothing done."""
    shown = _reported_tasks(tasks, findings)
    told = [task for task, _ in shown]
    title = titles.title_of(view)
    return SessionLessons(
        tasks=tuple(_task(task, own) for task, own in shown),
        project=view.project,
        cwd=view.cwd,
        branch=view.branch or "",
        started=view.started,
        source=view.source,
        title=title,
        keywords=tuple(keywords.keywords(told, [each for _, own in shown for each in own if each.lesson().is_listed])),
        slug=keywords.slug(told, title),
        dialogue_bytes=view.dialogue_bytes(),
        spoken_bytes=view.spoken_bytes(),
    )


def _reported_tasks(
    tasks: list[SessionTask], findings: list[RuleFinding]
) -> list[tuple[SessionTask, list[RuleFinding]]]:
    """Return the tasks that are told, each with its findings: those that taught something or in which work was done."""
    told: list[tuple[SessionTask, list[RuleFinding]]] = []
    for place, task in enumerate(tasks):
        own = [finding for finding in findings if finding.task == place]
        if own or any(_is_work(call) for call in task.calls()):
            told.append((task, own))
    return told


def _is_work(call: ToolUse) -> bool:
    return not call.is_memory and (patches.is_edit(call) or not commands.is_looking(commands.parse(call.command)))


def _task(task: SessionTask, findings: list[RuleFinding]) -> TaskLessons:
    lessons = tuple(finding.lesson() for finding in findings)
    return TaskLessons(flat(task.name) or UNNAMED, task.outcome, lessons, _steps(task), task.why)


def _steps(task: SessionTask) -> tuple[str, ...]:
    """Return the commands that worked and changed something, and those behind them that confirmed it.

    A failure is told where something was learned from it.
    """
    steps: list[str] = []
    is_behind = False
    for call in task.calls():
        if call.is_memory or call.refused or not call.command or not call.ok or may_run_fetched(call.command):
            is_behind = False
            continue
        parsed = commands.parse(call.command)
        is_step = not commands.is_looking(parsed) and not commands.takes_back(call.command)
        is_behind = is_step or (is_behind and commands.confirms(parsed))
        if is_behind:
            steps.append(quote(commands.shown(call.command), 160))
    return tuple(steps[-MAX_STEPS:])
