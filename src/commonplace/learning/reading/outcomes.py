"""The outcome of each task, judged by what happened and not by what the model claims.

What the person said about the task counts first, then the exit of the last check or build after the last change. A task
that the person left without an open error is a success; one that nobody confirmed and nothing verified is uncertain.
"""

from __future__ import annotations

from typing import Final, Literal

from commonplace.learning.reading import commands, errors, patches, sentences, tables
from commonplace.learning.reading.findings import Outcome, SessionTask, quote
from commonplace.learning.reading.session_view import Interruption, ModelText, ToolUse, UserText
from commonplace.learning.reading.tasks import words_of
from commonplace.memory.injection import may_run_fetched
from commonplace.patterns import regex

Verdict = Literal["", "praise", "rejection", "mixed", "redone"]
_HALF_DONE: Final = tables.pattern("half_done")
_ONLY_AGREES: Final = tables.pattern("says_yes")
_NOT_FOUND: Final = 127
"""The exit code of a shell that did not find the command."""
_PASSED: Final = regex(r"\b[1-9]\d* passed\b")
_REDONE: Final[dict[Verdict, Verdict]] = {"rejection": "redone"}


def judge(tasks: list[SessionTask]) -> None:
    """Set the outcome of every task."""
    for place, task in enumerate(tasks):
        following = tasks[place + 1] if place + 1 < len(tasks) else None
        task.outcome, task.why = _outcome(task, following)


def _outcome(task: SessionTask, following: SessionTask | None) -> tuple[Outcome, str]:
    verdict = _verdict(task, following)
    last = _last_telling(task)
    open_part = verdict != "rejection" and _is_half_done(task, following)
    if open_part and (verdict in ("praise", "mixed") or _passed_something(task)):
        return "partial", "the user left the rest open"
    if verdict == "praise":
        return "success", "the user confirmed it"
    if verdict == "rejection" or (verdict == "mixed" and last is not None and not errors.worked(last)):
        return "fail", "the user rejected it"
    if verdict == "mixed":
        return "partial", "the user took a part of it"
    if last is not None and not errors.worked(last):
        return _with_error(task, last, following)
    if isinstance(task.events[-1] if task.events else None, Interruption):
        return "partial", "the user stopped it"
    if following is not None:
        return "success", "the user moved on"
    told = last is not None and commands.is_telling(last.command)
    if verdict == "redone" and not told and not _is_taken(task):
        return "partial", "the user kept revising it"
    if last is not None and (commands.is_telling(last.command) or _is_the_point(task, last)):
        return "success", f"`{quote(commands.shown(last.command), 120)}` succeeded"
    if _is_taken(task):
        return "success", "the user took it"
    return "uncertain", "nobody confirmed it and nothing verified it"


def _is_half_done(task: SessionTask, following: SessionTask | None) -> bool:
    """Say whether the person's last words about a task leave a part of it open."""
    said = [event for event in task.events if isinstance(event, UserText)]
    last = said[-1].text if len(said) > 1 else ""
    opening = following.request if following is not None else ""
    return bool(_HALF_DONE.search(last.lower()) or _HALF_DONE.search(opening.lower()))


def _passed_something(task: SessionTask) -> bool:
    return any(call.ok and commands.is_telling(call.command) for call in task.calls()) or any(
        _PASSED.search(call.output) for call in task.calls() if commands.is_verifying(call.command)
    )


def _with_error(task: SessionTask, last: ToolUse, following: SessionTask | None) -> tuple[Outcome, str]:
    """Judge a task whose last telling command failed."""
    why = f"`{quote(commands.shown(last.command) or last.name, 120)}` failed"
    if commands.is_telling(last.command):
        return "fail", why
    return ("partial", "the user moved on with an error open") if following is not None else ("fail", why)


def _last_telling(task: SessionTask) -> ToolUse | None:
    """Return the last command that tells how things stand: after the last change, and rather a check than others."""
    found: ToolUse | None = None
    for call in task.calls():
        if patches.is_edit(call):
            found = None if call.ok else found
        elif call.command and call.ok is not None and not call.is_memory and not call.refused:
            if commands.is_looking(commands.parse(call.command)) or commands.takes_back(call.command) or _is_slip(call):
                continue
            if may_run_fetched(call.command):  # the outcome names the command
                continue
            if found is None or commands.is_telling(call.command) or not commands.is_telling(found.command):
                found = call
    return found


def _is_slip(call: ToolUse) -> bool:
    """Say whether a failure tells nothing about the work: a word spelt wrong, a lock, a network that was away."""
    if errors.worked(call):
        return False
    return call.code == _NOT_FOUND or errors.is_nothing(call) or errors.is_passing(call)


def _is_the_point(task: SessionTask, call: ToolUse) -> bool:
    """Say whether a command is what was asked for: its words stand in the request."""
    return bool(words_of(call.command) & words_of(task.request))


def _is_taken(task: SessionTask) -> bool:
    """Say whether the person's last words came after the work, and ask for nothing and complain about nothing."""
    done = False
    last: UserText | None = None
    for event in task.events:
        if isinstance(event, ToolUse) and (patches.is_edit(event) or _redoes(event)):
            done, last = True, None
        elif isinstance(event, UserText) and done:
            last = event
    if last is None:
        return False
    own = sentences.of_text(last.text)
    if not own or _ONLY_AGREES.fullmatch(last.text.strip().lower()):
        return False
    return not any(each.is_question or each.heard.any("request", "problem", "rejection") for each in own) and not own[
        0
    ].heard.says("transient")


def _verdict(task: SessionTask, following: SessionTask | None) -> Verdict:
    """Return what the person said last about a task: inside it, or in the first words of the next."""
    done = False
    verdict: Verdict = ""
    asked = False
    taken_back = False
    for event in task.events:
        if isinstance(event, ToolUse | ModelText):
            done = True
            if isinstance(event, ToolUse) and _redoes(event) and not (taken_back and not patches.is_edit(event)):
                verdict = _REDONE.get(verdict, verdict)
            taken_back = taken_back or (isinstance(event, ToolUse) and commands.takes_back(event.command))
        elif isinstance(event, UserText) and event.voice in ("user", "reply"):
            if asked and done:
                found = _feedback(event.text) or verdict
                verdict = verdict if taken_back and _is_over(verdict, found) else found
                taken_back = False if found == "rejection" else taken_back
            asked = True
    if following is not None:
        opening = next((event for event in following.events if isinstance(event, UserText)), None)
        if opening is not None:
            verdict = _feedback(opening.text, first_only=True) or verdict
    return verdict


def _is_over(verdict: Verdict, found: Verdict) -> bool:
    """Say whether thanks come for having taken back what was rejected."""
    return verdict == "rejection" and found in ("praise", "mixed")


def _redoes(call: ToolUse) -> bool:
    """Say whether a call does something about what was rejected, other than taking it back."""
    if call.is_memory or call.refused:
        return False
    if patches.is_edit(call):
        return bool(call.ok)
    command = commands.parse(call.command)
    return bool(call.command) and not commands.is_looking(command) and not commands.takes_back(call.command)


def _feedback(text: str, *, first_only: bool = False) -> Verdict:
    """Return whether a message praises or rejects; the last word counts, and praise with a but is half of it."""
    own = sentences.of_text(text)[: 1 if first_only else None]
    said: list[Verdict] = []
    for sentence in own:
        heard = sentence.heard
        if heard.says("rejection"):
            said.append("rejection")
        elif heard.says("praise") and not (sentence.is_question and not sentence.first):
            said.append("praise")
    if "praise" in said and "rejection" in said:
        return "mixed"
    return said[-1] if said else ""
