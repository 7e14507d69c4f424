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
    current: _TaskAtHand | None = None
    for number, event in enumerate(events):
        prompt = event if isinstance(event, UserText) and event.voice in ("user", "command") else None
        if current is None or (
            prompt is not None
            and current.is_begun
            and _begins(prompt, current, lasting, acts=_acts_after(events, number))
        ):
            found.append(SessionTask("", quote(prompt.text) if prompt else "", event.at))
            current = _TaskAtHand(found[-1].events)
        current.add(event)
    kept = _joined([task for task in found if task.request or task.calls()])
    for task in kept:
        task.name = task_names.task_name(task)
    return kept


class _TaskAtHand:
    """The task that goes on, with what is asked of it before each prompt; no event is looked at twice."""

    def __init__(self, events: list[ViewEvent]) -> None:
        self.events: Final = events
        self.is_begun = False
        """Whether anything was done for it."""
        self._closed, self._heard = False, 1
        self._words: set[str] = set()
        self._read = 0
        self._call: ToolUse | None = None
        """The last command or change."""

    def add(self, event: ViewEvent) -> None:
        """Take in what came next."""
        self.events.append(event)
        self.is_begun = self.is_begun or isinstance(event, ModelText | ToolUse)
        if isinstance(event, ToolUse) and (event.command or patches.is_edit(event)):
            self._call = event

    @property
    def is_interrupted(self) -> bool:
        """Whether the person stopped what was done last."""
        last = self.events[-1] if self.events else None
        return isinstance(last, Interruption) or (isinstance(last, ToolUse) and last.refused)

    @property
    def is_asked(self) -> bool:
        """Whether the last thing is a question to the person: what they say next answers it."""
        last = self.events[-1]
        return isinstance(last, ModelText) and last.text.rstrip().endswith(("?", "？"))

    @property
    def is_broken(self) -> bool:
        """Whether the last command failed: what is said next is about that."""
        return self._call is not None and self._call.ok is False and not errors.is_nothing(self._call)

    @property
    def is_closed(self) -> bool:
        """Whether the person was content with it, and nothing was done for it since."""
        for place in range(self._heard, len(self.events)):
            event = self.events[place]
            if isinstance(event, ToolUse) and (patches.is_edit(event) or event.command):
                self._closed = False
            elif isinstance(event, UserText):
                heard = [each.heard for each in sentences.of_text(event.text)]
                is_praised = self._closed or any(each.says("praise") for each in heard)
                self._closed = is_praised and not any(each.says("rejection") for each in heard)
        self._heard = max(self._heard, len(self.events))
        return self._closed

    @property
    def words(self) -> set[str]:
        """The words that tell it from another."""
        for place in range(self._read, len(self.events)):
            event = self.events[place]
            if isinstance(event, UserText | ModelText):
                self._words |= words_of(event.text[:1000])
            elif isinstance(event, ToolUse):
                self._words |= words_of((event.command or event.arguments)[:500])
        self._read = len(self.events)
        return self._words


def _acts_after(events: list[ViewEvent], number: int) -> bool:
    """Say whether files were changed or commands run before the person spoke again."""
    for place in range(number + 1, len(events)):
        event = events[place]
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


def _begins(message: UserText, current: _TaskAtHand, lasting: Sequence[str], *, acts: bool) -> bool:
    """Say whether a prompt begins something new; if nothing was done yet, it goes on with what was asked."""
    own = sentences.of_text(message.text)
    if not own:
        return False
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
    if current.is_interrupted or current.is_broken or current.is_asked:
        return False
    if acts and _AND.match(message.text.strip()):
        return True
    requests = _has_request(asking)
    closed = current.is_closed
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


def _has_request(asking: list[Sentence]) -> bool:
    return any(each.heard.says("request") for each in asking)


def _is_feedback(sentence: Sentence) -> bool:
    """Say whether a sentence is only about what was done, or how."""
    heard = sentence.heard
    if heard.any("praise", "rejection"):
        rest = heard.without("praise", heard.bare.lower())
        return not heard.says("request") and len(_WORD.findall(rest)) < 4
    return False


def _is_elsewhere(asking: list[Sentence], current: _TaskAtHand, *, praised: bool) -> bool:
    """Say whether what is asked for is something else than the task at hand."""
    wanted = [each for each in asking if _wants(each.heard, praised=praised) or each.is_question]
    if not wanted:
        return False
    words = words_of(" ".join(each.text for each in wanted))
    if len(words) < (2 if praised else _FEW):
        return False
    return len(words & current.words) / len(words) < _SHARED


def _wants(heard: SentenceCues, *, praised: bool) -> bool:
    """Say whether a sentence may ask for something new; what a thing should be like only refines it."""
    if heard.any("request", "problem"):
        return True
    if heard.says("product"):
        return praised
    return praised and len(heard.text.split()) > _SHORT and not heard.any("mine", "blame", "we", "scope", "forbid")


@lru_cache(maxsize=1024)
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text that tell one task from another."""
    return frozenset(word.strip("./-") for word in map(str.lower, _WORD.findall(text))) - _STOP
