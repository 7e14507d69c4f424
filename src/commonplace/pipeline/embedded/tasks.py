"""Cutting a session into tasks, and how each ended: by what happened, not by what the model claims.

A prompt begins a new task if it asks for something and is not about what was just done: feedback, a correction, an
answer and a short follow-up belong to the task before. The outcome rests on what the person said about it and on what
commands showed; where neither speaks, it is uncertain.
"""

from __future__ import annotations

import re
from typing import Final

from commonplace.pipeline.embedded import commands, sentences, tables
from commonplace.pipeline.embedded import cues as languages
from commonplace.pipeline.embedded.cues import Cues
from commonplace.pipeline.embedded.findings import Outcome, Task, quote
from commonplace.pipeline.embedded.preferences import kind_of
from commonplace.pipeline.view import Answered, Called, Event, Said, Span, Stopped, View

_WORD: Final = re.compile(r"[A-Za-z_][\w./-]{2,}|[\u3400-\u9fff]{2}")
_STOP: Final = tables.words("dull_in_tasks")
_FOLLOW_UP: Final = tables.pattern("follow_up")
_EDITS: Final = tables.words("edit_tools")


def cut(view: View) -> list[Task]:
    """Return the tasks of a session, in order."""
    found: list[Task] = []
    for turn in view.turns:
        if turn.taken_back:
            continue
        for event in turn.events:
            if (
                isinstance(event, Said)
                and event.voice in ("user", "command")
                and (not found or _begins(event, found[-1]))
            ):
                found.append(Task(_name(event), quote(event.text), event.at))
            elif not found:
                found.append(Task("", "", event.at))
            found[-1].events.append(event)
    return _joined([task for task in found if task.request or task.calls()])


def _joined(tasks: list[Task]) -> list[Task]:
    """Let a question that led to nothing belong to the task before it."""
    kept: list[Task] = []
    for task in tasks:
        if kept and not task.calls() and (task.request.rstrip().endswith(("?", "？")) or _is_remark(task)):
            kept[-1].events.extend(task.events)
        else:
            kept.append(task)
    return kept


def _is_remark(task: Task) -> bool:
    """Say whether a prompt asked for nothing: few words, and nothing came of it."""
    return len(task.request.split()) <= 8 and not any(isinstance(event, Called) for event in task.events)


def _begins(said: Said, current: Task) -> bool:
    """Say whether a prompt begins something new."""
    text = said.text.strip()
    cues = languages.of(languages.language_of(text))
    first = next(iter(sentences.of_message(said)), None)
    if first is None or not any(isinstance(event, Answered | Called) for event in current.events):
        return False  # nothing was done yet: it goes on with what was asked
    if cues.moving_on.search(first.text) and len(text.split()) >= 3:
        return True
    if _is_interrupted(current) or kind_of(first, cues) is not None or cues.rejection.search(first.text):
        return False  # it says how the thing at hand is to be done
    if not _without_feedback(first.text, cues) or (is_feedback(text, cues) and len(text.split()) < 14):
        return False
    if _FOLLOW_UP.match(first.text) or len(_words(text)) < 3:
        return False
    shared = _words(text) & _task_words(current)
    return len(shared) / max(1, len(_words(text))) < 0.34


def _is_interrupted(task: Task) -> bool:
    last = task.events[-1] if task.events else None
    return isinstance(last, Stopped) or (isinstance(last, Called) and last.refused)


def is_feedback(text: str, cues: Cues) -> bool:
    """Say whether a message is about what was done."""
    return bool(cues.praise.search(text) or cues.rejection.search(text))


def _without_feedback(text: str, cues: Cues) -> str:
    """Return what a sentence says besides thanks or blame."""
    rest = cues.polite.sub("", text)
    rest = cues.praise.sub("", rest)
    return rest.strip(" ,.!-")


def _words(text: str) -> set[str]:
    return {word.lower().strip("./-") for word in _WORD.findall(text)} - _STOP


def _task_words(task: Task) -> set[str]:
    found: set[str] = set()
    for event in task.events:
        if isinstance(event, Said):
            found |= _words(event.text[:2000])
        elif isinstance(event, Called):
            found |= _words((event.command or event.arguments)[:500])
    return found


def _name(said: Said) -> str:
    """Return a short name: the person's first own sentence."""
    cues = languages.of(languages.language_of(said.text))
    first = next((text for line in sentences.own_lines(said.text) for text in sentences.split(line)), "")
    bare = cues.polite.sub("", first).strip()
    return quote(bare or first or said.text, 80).rstrip(".!?。！？ ")


def judge(tasks: list[Task]) -> None:
    """Set the outcome of every task."""
    for place, task in enumerate(tasks):
        following = tasks[place + 1] if place + 1 < len(tasks) else None
        task.outcome, task.why = _outcome(task, following)


def _outcome(task: Task, following: Task | None) -> tuple[Outcome, str]:
    worked = task.calls()
    feedback = _feedback(task, following)
    checks = [
        call for call in worked if call.ok is not None and not call.is_memory and commands.is_verifying(call.command)
    ]
    last_check = checks[-1] if checks else None
    edited_after = last_check is not None and any(
        is_edit(call) and call.ok for call in worked[worked.index(last_check) + 1 :]
    )
    stopped = bool(task.events) and isinstance(task.events[-1], Stopped)
    if feedback == "praise":
        return "success", "the user confirmed it"
    if feedback == "rejection":
        return (
            "partial" if last_check is not None and last_check.ok and not edited_after else "fail"
        ), "the user rejected it"
    if last_check is not None and not edited_after:
        if last_check.ok:
            return ("success" if not stopped else "partial"), f"`{quote(last_check.command, 120)}` succeeded"
        return (
            "fail" if following is None or _is_about(following, task) else "partial"
        ), f"`{quote(last_check.command, 120)}` failed"
    if stopped:
        return "partial", "the user stopped it"
    acted = [
        call
        for call in worked
        if (call.ok is not None and not commands.is_looking(commands.parse(call.command))) or is_edit(call)
    ]
    last = acted[-1] if acted else None
    if following is not None:
        if last is not None and last.ok is False:
            return "partial", "the user moved on with an error open"
        return "success", "the user moved on"
    if last is not None and last.ok is False:
        return "fail", f"`{quote(last.command or last.name, 120)}` failed and nothing followed"
    if acted and last is not None and last.command and last.code == 0 and not is_edit(last):
        return "success" if _is_the_point(task, last) else "uncertain", f"`{quote(last.command, 120)}` succeeded"
    return "uncertain", "nobody confirmed it and nothing verified it"


def _is_the_point(task: Task, call: Called) -> bool:
    """Say whether a command is what was asked for: its words stand in the request."""
    return bool(_words(call.command) & _words(task.request))


def _is_about(following: Task, task: Task) -> bool:
    return bool(_words(following.request) & _words(task.request))


def _feedback(task: Task, following: Task | None) -> str:
    """Return what the person said last about a task: inside it, or in the first words of the next."""
    said = [event for event in task.events if isinstance(event, Said) and event.voice == "user"][1:]
    if following is not None:
        opening = next((event for event in following.events if isinstance(event, Said)), None)
        if opening is not None:
            head = Said(opening.at, " ".join(sentences.split(next(iter(sentences.own_lines(opening.text)), ""))[:1]))
            said.append(head)
    done = False
    verdict = ""
    seen = {id(event) for event in said}
    for event in [*task.events, *said[len(said) - 1 :]]:
        if isinstance(event, Called | Answered):
            done = True
            if (
                isinstance(event, Called)
                and not event.is_memory
                and (is_edit(event) or commands.is_verifying(event.command))
            ):
                verdict = "" if verdict == "rejection" else verdict  # something was done about it since
        elif isinstance(event, Said) and done and id(event) in seen:
            cues = languages.of(languages.language_of(event.text))
            own = " ".join(sentences.own_lines(event.text))
            if cues.rejection.search(own):
                verdict = "rejection"
            elif cues.praise.search(own):
                verdict = "praise"
    return verdict


def is_edit(call: Called) -> bool:
    """Say whether a call changed files."""
    return call.name.lower().rpartition("__")[2] in _EDITS or "*** Begin Patch" in call.command


def place_of(tasks: list[Task], at: Span) -> int:
    """Return the task that an event belongs to."""
    return max((place for place, task in enumerate(tasks) if task.at.start <= at.start), default=0)


def said_in(events: list[Event]) -> list[Said]:
    """Return what the person said, in order."""
    return [event for event in events if isinstance(event, Said)]
