"""What a later session need not find out again: how a project is verified, where things run, what was decided and why,
and the steps that led to a goal.

Facts come from the person, or from commands that were seen to work; never from what a tool printed about the world, and
never from what the model supposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commonplace.pipeline.embedded import commands, guard, sentences, tables
from commonplace.pipeline.embedded import cues as languages
from commonplace.pipeline.embedded.findings import Evidence, Finding, Task, quote
from commonplace.pipeline.embedded.preferences import is_decision, kind_of
from commonplace.pipeline.embedded.tasks import is_edit
from commonplace.pipeline.view import Called, Said

_SPECIFIC: Final = tables.pattern("specific", flags=re.NOFLAG)
_NUMBERED: Final = re.compile(r"(?:^|\n|\s)1[.)]\s+(.+?)(?:\n|\s)2[.)]\s+", re.DOTALL)
_GOALS: Final = tables.pattern("goal")
_STATEMENT: Final = tables.pattern("statement")
_REQUEST: Final = tables.pattern("request")


def of_task(task: Task, place: int) -> Iterator[Finding]:
    """Yield what a task tells about the project."""
    yield from _verified(task, place)
    for event in task.events:
        if isinstance(event, Said) and event.voice in ("user", "reply"):
            yield from _stated(event, place)
    yield from _procedure(task, place)


def _verified(task: Task, place: int) -> Iterator[Finding]:
    """Yield the commands that verified the project in this task, each as it last was."""
    last: dict[str, Called] = {}
    for call in task.calls():
        if call.command and call.ok is not None and not call.is_memory and commands.is_verifying(call.command):
            last[commands.parse(call.command).program] = call
    for call in last.values():
        if call.ok and not call.refused:
            evidence = Evidence(call.at, quote(call.command), "verified by exit status")
            yield Finding("verify", f"verify with `{quote(call.command, 200)}` (exit 0 here)", [evidence], place)


def _stated(said: Said, place: int) -> Iterator[Finding]:
    """Yield decisions and durable facts that the person states."""
    cues = languages.of(languages.language_of(said.text))
    if guard.is_text_work(said.text):
        return
    for sentence in sentences.of_message(said):
        text = sentence.text
        if sentence.is_question or not guard.is_meant_to_last(sentence, cues) or kind_of(sentence, cues) is not None:
            continue
        evidence = [Evidence(said.at, quote(text), "said by the user")]
        if is_decision(text, cues):
            yield Finding("decision", f'decided by the user: "{quote(text)}"', evidence, place)
        elif _is_fact(text, cues.fact, cues.transient):
            yield Finding("environment", f'said by the user: "{quote(text)}"', evidence, place)


def _is_fact(text: str, fact: re.Pattern[str], transient: re.Pattern[str]) -> bool:
    return (
        bool(fact.search(text)) and bool(_SPECIFIC.search(text)) and not transient.search(text) and _is_statement(text)
    )


def _is_statement(text: str) -> bool:
    """A statement tells how things are; a request tells what to do."""
    return bool(_STATEMENT.search(text)) and not _REQUEST.match(text)


def _procedure(task: Task, place: int) -> Iterator[Finding]:
    """Yield the steps that reached a goal of the person: three commands or more that did something, and worked."""
    if task.outcome != "success" or not _GOALS.search(task.request):
        return
    steps: list[Called] = []
    for call in task.calls():
        if not call.command or call.is_memory or call.refused or call.ok is None:
            continue
        command = commands.parse(call.command)
        if commands.is_looking(command):
            continue
        if call.ok:
            steps.append(call)
    if any(is_edit(call) for call in task.calls()) and len(steps) < 4:
        return
    lines = list(dict.fromkeys(quote(call.command, 160) for call in steps))
    if 3 <= len(lines) <= 12:
        text = f"to {quote(task.name, 80)}: " + " -> ".join(f"`{line}`" for line in lines)
        evidence = [Evidence(call.at, quote(call.command), "verified by exit status") for call in steps[:12]]
        yield Finding("procedure", text, evidence, place)
