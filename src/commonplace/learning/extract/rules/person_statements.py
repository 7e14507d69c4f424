"""What a person's sentences teach: wishes, rules, facts, decisions, dead ends, checks and steps, in their own words.

Each sentence is judged alone (`judging`). Sentences that go on with one another make one finding: neighbours that tell
the same kind of thing, the reason that follows, and the few words before that say what `it` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from commonplace.learning.extract.rules import classifier, judge, preferences, statements
from commonplace.learning.extract.rules.findings import (
    PREFERENCES,
    FindingEvidence,
    Kind,
    RuleFinding,
    SessionTask,
    quote,
    section_of,
)
from commonplace.learning.extract.rules.judge import Judgement, MessageContext
from commonplace.learning.reading import commands, errors, exclusions, patches, sentences, tables
from commonplace.learning.reading.sentences import Sentence
from commonplace.learning.reading.session_view import Interruption, ModelText, ToolUse, UserText, ViewEvent

_POINTS_BACK: Final = tables.pattern("points_at_before")
_CONSENT: Final = tables.pattern("says_yes")
_ANSWER: Final = 4
"""An answer of so few words is told with what comes after it."""
_LEAD: Final = 16
_MAX_PARTS: Final = 3
_LEADS: Final[dict[Kind, str]] = {
    "preference": "said by the user",
    "rule": "rule stated by the user",
    "environment": "said by the user",
    "decision": "decided by the user",
    "failure": "given up by the user",
    "verify": "check named by the user",
    "procedure": "steps stated by the user",
}


class _Group(msgspec.Struct):
    """Sentences of one message that tell one thing."""

    kind: Kind
    share: float
    parts: list[Sentence]
    by_ear: bool

    def add(self, sentence: Sentence, told: Judgement | None) -> None:
        """Let a sentence go on with it; what is likelier tells the kind."""
        self.parts.append(sentence)
        if told is None:
            return
        self.by_ear = self.by_ear and told.by_classifier
        if told.kind not in section_of(self.kind) and told.share > self.share:
            self.kind, self.share = told.kind, told.share


class _PrecedingEvents(msgspec.Struct):
    """The events before a message."""

    moment: classifier.Moment = "opening"
    answer: ModelText | None = None
    stopped: ToolUse | Interruption | None = None
    failing: bool = False
    asked: bool = False
    """Something was said; what is done before that answers nobody."""

    def note(self, event: ViewEvent) -> None:
        """Take notice of an event."""
        if not self.asked and not isinstance(event, UserText):
            return
        if isinstance(event, Interruption) or (isinstance(event, ToolUse) and event.refused):
            self.stopped, self.answer = event, None
            self.moment = "stopped" if isinstance(event, Interruption) else "refused"
        elif isinstance(event, ModelText):
            self.moment, self.answer = "answering", event
        elif isinstance(event, ToolUse):
            self.moment, self.answer = "answering", None
            self.failing = _fails(event, self.failing)
        elif isinstance(event, UserText):
            self.asked = True
            self.answer = self.stopped = None
            self.moment = "answering" if self.moment != "opening" else self.moment


def of_tasks(tasks: list[SessionTask]) -> Iterator[RuleFinding]:
    """Yield what the person's own words teach in a session."""
    before = _PrecedingEvents()
    is_talk = not any(call for task in tasks for call in task.calls() if not call.is_memory)
    for place, task in enumerate(tasks):
        programs = statements.programs_of(task)
        on_text = is_talk
        for event in task.events:
            if isinstance(event, UserText) and event.voice != "shell":
                if exclusions.is_text_work(event.text):
                    on_text = True  # what is said from here on is about the text
                else:
                    scene = MessageContext(before.moment, programs, before.failing, on_text)
                    yield from _of_message(event, before, place, scene)
            before.note(event)


def _fails(call: ToolUse, failing: bool) -> bool:
    """Say whether what was tried last failed; looking at things changes nothing about that."""
    if patches.is_edit(call) or not call.command or call.ok is None or call.is_memory:
        return failing
    if errors.worked(call):
        return failing and commands.is_looking(commands.parse(call.command))
    return failing or not errors.is_nothing(call)


def _of_message(said: UserText, before: _PrecedingEvents, place: int, scene: MessageContext) -> Iterator[RuleFinding]:
    if before.stopped is not None:
        whole = preferences.after_stop(said, before.stopped, place)
        if whole is not None:
            yield whole
            return
    own = sentences.of_text(said.text)
    if before.answer is not None:
        choice = statements.choice(said, before.answer, place) if not scene.is_talk else None
        if choice is not None and not _is_surely_nothing(own):
            yield choice
            return
        if before.answer.text.rstrip().endswith(("?", "？")):
            scene = msgspec.structs.replace(scene, moment="asked")
    for group in _groups(own, scene):
        yield _finding(said, group, place)


def _is_surely_nothing(own: tuple[Sentence, ...]) -> bool:
    return all(classifier.classify(own, number, "asked").nothing > judge.SURE_OF_NOTHING for number in range(len(own)))


def _groups(own: tuple[Sentence, ...], scene: MessageContext) -> list[_Group]:
    found: list[_Group] = []
    current: _Group | None = None
    for number, sentence in enumerate(own):
        told = judge.judge_sentence(own, number, scene)
        if told is not None and (current is None or not _joins(current, sentence, told)):
            parts = [*_lead(own, number, current, scene), sentence]
            current = _Group(told.kind, told.share, parts, told.by_classifier)
            found.append(current)
        elif current is not None and (told is not None or _follows(current, own, number, scene)):
            current.add(sentence, told)
        else:
            current = None
    return found


def _lead(own: tuple[Sentence, ...], number: int, current: _Group | None, scene: MessageContext) -> list[Sentence]:
    """Return the sentence before one that cannot be understood alone: what it points back at, or answers with."""
    if not number or current is not None:
        return []
    before = own[number - 1]
    size = len(before.text.split())
    is_answer = scene.moment in ("asked", "answering") and number == 1 and size <= _ANSWER
    points_back = bool(_POINTS_BACK.search(own[number].heard.bare.lower()))
    if not _may_stand_by(before) or size > _LEAD:
        return []
    beside = not before.heard.says("request") and _is_beside(own, number - 1, scene)
    return [before] if is_answer or points_back or beside else []


def _may_stand_by(sentence: Sentence) -> bool:
    """Say whether a sentence that teaches nothing alone may stand in a finding."""
    heard = sentence.heard
    return not (
        sentence.is_question
        or exclusions.is_unfit(sentence.text)
        or heard.any("praise", "once", "transient", "retraction", "others", "unreal", "moving_on")
        or _CONSENT.fullmatch(heard.lower.strip())
    )


def _follows(current: _Group, own: tuple[Sentence, ...], number: int, scene: MessageContext) -> bool:
    """Say whether a sentence that teaches nothing alone goes on with what was just told."""
    sentence = own[number]
    if len(current.parts) >= _MAX_PARTS or sentence.is_listed:
        return False
    if current.kind in PREFERENCES and preferences.tells_instead(current.parts, sentence, scene.where):
        return True
    return _may_stand_by(sentence) and not sentence.heard.says("rejection") and _is_beside(own, number, scene)


def _is_beside(own: tuple[Sentence, ...], number: int, scene: MessageContext) -> bool:
    """Say whether the classifier finds enough in a sentence for it to stand by another one."""
    return 1 - classifier.classify(own, number, scene.moment).nothing > judge.SURE_BESIDE


def _joins(group: _Group, sentence: Sentence, told: Judgement) -> bool:
    """Say whether a sentence only goes on with the ones before it."""
    if sentence.is_listed or len(group.parts) >= _MAX_PARTS:
        return False
    if told.kind not in section_of(group.kind):
        return group.by_ear and told.by_classifier and preferences.continues(sentence)
    return group.by_ear or told.by_classifier or preferences.goes_on(group.parts, sentence)


def _finding(said: UserText, group: _Group, place: int) -> RuleFinding:
    text = " ".join(part.text for part in group.parts)
    is_wish = group.kind in ("preference", "rule")
    default = quote(group.parts[0].heard.bare.rstrip(".!。！ "), 200) if is_wish else ""
    evidence = [FindingEvidence(said.at, quote(text), "said by the user")]
    return RuleFinding(group.kind, evidence, place, words=quote(text), lead=_LEADS[group.kind], default=default)
