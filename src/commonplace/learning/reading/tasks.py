"""Cutting a session into tasks: from asking for something to leaving it.

A prompt begins a new task if it asks for something and is not about what was just done. Feedback, wishes about how to
work, answers, refinements and questions that lead to nothing belong to the task before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from commonplace.learning.reading import errors, patches, sentences, tables, task_names
from commonplace.learning.reading.cues import SentenceCues
from commonplace.learning.reading.findings import SessionTask, quote
from commonplace.learning.reading.sentences import Sentence
from commonplace.learning.reading.session_view import Interruption, ModelText, SessionView, ToolUse, UserText, ViewEvent
from commonplace.patterns import regex

_WORD: Final = regex(r"[A-Za-zÀ-ÿ_][\wÀ-ÿ./-]{2,}|[\u3400-\u9fff]{2}")
_STOP: Final = tables.words("dull_in_tasks")
_FOLLOW_UP: Final = tables.pattern("follow_up")
_AND: Final = regex(r"(?:and|und|y|et)\s.*[?？]$", re.IGNORECASE)
_FINISHING: Final = tables.pattern("finishing")
_POINTS_BACK: Final = tables.pattern("points_back")
_SHARED: Final = 0.34
_FEW: Final = 3
_SHORT: Final = 4


def cut(view: SessionView, lasting: Sequence[str] = ()) -> list[SessionTask]:
    """Return the tasks of a session, in order; `lasting` is what the person said that is likely to last."""
    events = [event for turn in view.turns if not turn.taken_back for event in turn.events]
    found: list[SessionTask] = []
    for number, event in enumerate(events):
        if isinstance(event, UserText) and event.voice in ("user", "command"):
            if not found or _begins(event, found[-1], lasting, acts=_acts_after(events, number)):
                found.append(SessionTask("", quote(event.text), event.at))
        elif not found:
            found.append(SessionTask("", "", event.at))
        found[-1].events.append(event)
    kept = _joined([task for task in found if task.request or task.calls()])
    for task in kept:
        task.name = task_names.task_name(task)
    return kept


def _acts_after(events: list[ViewEvent], number: int) -> bool:
    """Say whether files were changed or commands run before the person spoke again."""
    for event in events[number + 1 :]:
        if isinstance(event, UserText) and event.voice == "user":
            return False
        if isinstance(event, ToolUse) and (patches.is_edit(event) or event.command):
            return True
    return False


def _joined(tasks: list[SessionTask]) -> list[SessionTask]:
    """Let what led to nothing belong to the task before it: questions, remarks, small talk."""
    kept: list[SessionTask] = []
    for task in tasks:
        if kept and not task.calls():
            kept[-1].events.extend(task.events)
        elif kept and not kept[-1].calls() and len(kept) == 1 and not _asks(kept[-1]):
            task.events[:0] = kept.pop().events
            kept.append(task)
        else:
            kept.append(task)
    return kept


def _asks(task: SessionTask) -> bool:
    return any(each.heard.any("request", "problem") or each.is_question for each in sentences.of_text(task.request))


def _begins(message: UserText, current: SessionTask, lasting: Sequence[str], *, acts: bool) -> bool:
    """Say whether a prompt begins something new."""
    own = sentences.of_text(message.text)
    if not own or not any(isinstance(event, ModelText | ToolUse) for event in current.events):
        return False  # nothing was done yet: it goes on with what was asked
    rejected = any(each.heard.says("rejection") for each in own)
    praised = any(each.heard.says("praise") for each in own[:2])
    moves_on = any(each.heard.says("moving_on") for each in own[:3])
    if all(map(_is_feedback, own)) or (rejected and not praised and not moves_on):
        return False
    taught = [any(each.text in text for text in lasting) for each in own]
    asking = [each for each, known in zip(own, taught, strict=True) if _may_ask(each, known)]
    if not asking:
        return False
    if moves_on:
        return (acts or len(message.text.split()) >= _FEW) and not (rejected and not praised and own[0].is_alone)
    if _is_interrupted(current) or _is_broken(current) or _is_asked(current):
        return False
    if acts and _AND.match(message.text.strip()):
        return True
    requests = _has_request(asking)
    closed = _is_closed(current)
    if any(taught) and not requests and not closed:
        return False  # it says how the thing at hand is to be done
    if acts and (closed or (praised and requests)):
        return not _POINTS_BACK.search(message.text.lower())
    first = asking[0]
    if first is own[0] and (_FOLLOW_UP.match(first.text.lower()) or _FINISHING.match(first.heard.bare.lower())):
        return False
    return _is_elsewhere(asking, current, praised=first is not own[0])


def _may_ask(sentence: Sentence, taught: bool) -> bool:
    """Say whether a sentence may ask for something: it is no feedback, and not only about how things are done."""
    return not _is_feedback(sentence) and (not taught or sentence.heard.any("request", "moving_on"))


def _is_asked(task: SessionTask) -> bool:
    """Say whether the last thing in a task is a question to the person: what they say next answers it."""
    last = task.events[-1]
    return isinstance(last, ModelText) and last.text.rstrip().endswith(("?", "？"))


def _is_closed(task: SessionTask) -> bool:
    """Say whether the person was content with a task, and nothing was done for it since."""
    closed = False
    for event in task.events[1:]:
        if isinstance(event, ToolUse) and (patches.is_edit(event) or event.command):
            closed = False
        elif isinstance(event, UserText):
            heard = [each.heard for each in sentences.of_text(event.text)]
            closed = (closed or any(each.says("praise") for each in heard)) and not any(
                each.says("rejection") for each in heard
            )
    return closed


def _has_request(asking: list[Sentence]) -> bool:
    return any(each.heard.says("request") for each in asking)


def _is_broken(task: SessionTask) -> bool:
    """Say whether the last command of a task failed: what is said next is about that."""
    calls = [call for call in task.calls() if call.command or patches.is_edit(call)]
    last = calls[-1] if calls else None
    return last is not None and last.ok is False and not errors.is_nothing(last)


def _is_feedback(sentence: Sentence) -> bool:
    """Say whether a sentence is only about what was done, or how."""
    heard = sentence.heard
    if heard.any("praise", "rejection"):
        rest = heard.without("praise", heard.bare.lower())
        return not heard.says("request") and len(_WORD.findall(rest)) < 4
    return False


def _is_elsewhere(asking: list[Sentence], current: SessionTask, *, praised: bool) -> bool:
    """Say whether what is asked for is something else than the task at hand."""
    wanted = [each for each in asking if _wants(each.heard, praised=praised) or each.is_question]
    if not wanted:
        return False
    words = words_of(" ".join(each.text for each in wanted))
    if len(words) < (2 if praised else _FEW):
        return False
    return len(words & _task_words(current)) / len(words) < _SHARED


def _wants(heard: SentenceCues, *, praised: bool) -> bool:
    """Say whether a sentence may ask for something new; what a thing should be like only refines it."""
    if heard.any("request", "problem"):
        return True
    if heard.says("product"):
        return praised
    return praised and len(heard.text.split()) > _SHORT and not heard.any("mine", "blame", "we", "scope", "forbid")


def _is_interrupted(task: SessionTask) -> bool:
    last = task.events[-1] if task.events else None
    return isinstance(last, Interruption) or (isinstance(last, ToolUse) and last.refused)


@lru_cache(maxsize=1024)
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text that tell one task from another."""
    return frozenset(word.strip("./-") for word in map(str.lower, _WORD.findall(text))) - _STOP


def _task_words(task: SessionTask) -> set[str]:
    found: set[str] = set()
    for event in task.events:
        if isinstance(event, UserText | ModelText):
            found |= words_of(event.text[:1000])
        elif isinstance(event, ToolUse):
            found |= words_of((event.command or event.arguments)[:500])
    return found
