"""What a person said in a session, judged: the best sentence of each message, and those that state what lasts.

The best sentence comes with its likelier neighbours, because people speak in two or three sentences and the neighbours
say what `it` is. What only many sessions tell about a person is added later
(`learning.consolidate`), so each statement carries what the judge summed up so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from commonplace.learning.lasting import authors
from commonplace.learning.lasting.authors import Author, RecordMarks, Stretch
from commonplace.learning.lasting.features import MeasuredSentence, Surroundings, measure
from commonplace.learning.lasting.free_answers import question_of
from commonplace.learning.lasting.judge import PERHAPS, STATED, LastingJudge, judge, kind
from commonplace.learning.lasting.stated import StatedSentence
from commonplace.learning.reading import exclusions, patches
from commonplace.learning.reading.cues import likely_languages
from commonplace.learning.reading.question_tools import TOOLS, answers, questions
from commonplace.learning.reading.session_view import (
    EventSpan,
    Interruption,
    ModelText,
    SessionView,
    ToolUse,
    UserText,
    ViewEvent,
)
from commonplace.memory.entries import Kind
from commonplace.memory.lessons import JudgeInput, WritingSample
from commonplace.patterns import regex

LEAST: Final = 0.15
"""What is less likely to last is not stored; a person's habits raise a statement by far less."""
_WIDTH: Final = 60
"""How many words a statement quotes at most."""
_FEWEST: Final = 3
"""A statement has at least so many words."""
_REPLY: Final = 600
"""How much of the agent's next words is kept."""
_BETWEEN: Final = 8
"""Neighbours have at most so many characters between them: a bullet, not a pasted block."""
_SAID: Final = "the user said:"
_CALLS: Final = 50
"""A reply belongs to one of so many events before it."""
_GREETING: Final = regex(
    r"(?i)^(?>(?:(?:thanks|thank you|thx|great|nice|perfect|ok|okay|cool|good|yes|yep|yeah|sure|oh|ah|hmm?|phew|well"
    r"|sorry|haha|ha|hey|hi|danke|gracias|merci)\b[.!,:;) ]{1,4})+)(?>(?:and |so |but )?)"
)
_MOST_CHARACTERS: Final = 2**19
"""So much of what a person said in one session is judged: six times what the longest known one has."""
_HAN: Final = regex(r"[\u3400-\u9fff]{5}")
_AUTHORS: Final = {"plan": Author.PLAN, "harness": Author.HARNESS}
"""Authors of whole messages, by the words that imports note."""


class PersonMessage(msgspec.Struct):
    """One message of the person, and what stood around it."""

    at: EventSpan
    text: str
    around: Surroundings
    refused: str = ""
    """The command that was refused with these words."""
    question: str = ""
    """What the agent asked before, where the words alone do not say it (`2`, `A. is fine`, `yes`)."""
    marks: RecordMarks = RecordMarks()


class PersonStatement(msgspec.Struct, frozen=True):
    """What of a message may last."""

    at: EventSpan
    text: str
    """A sentence."""
    stretch: str
    """The sentence with its likelier neighbours."""
    kind: Kind
    probability: float
    """How likely it lasts, by what this session tells."""
    judged: JudgeInput
    refused: str = ""
    question: str = ""
    """The question that it answers, with the text of the chosen option; empty if it answers none."""


class SpokenSession(msgspec.Struct, frozen=True):
    """What a person said in a session: statements, and every sentence as the measure of how they write."""

    statements: list[PersonStatement]
    sentences: list[WritingSample]


def spoken(view: SessionView, chosen: LastingJudge | None = None) -> SpokenSession:
    """Return what the person said in a session, judged; without a chosen judge by the one that is shipped."""
    chosen = chosen or judge()
    statements: list[PersonStatement] = []
    sentences: list[WritingSample] = []
    for message in _shortest(messages(view)):
        parts = authors.stretches(message.text, marks=message.marks)
        judged = _JudgedMessage(message, parts, chosen)
        sentences += [each.sample for each in judged.inputs]
        statements += judged.statements()
    return SpokenSession(statements, sentences)


def _shortest(said: list[PersonMessage]) -> list[PersonMessage]:
    """Return the messages in their order; of more than anybody writes in one session, without the longest."""
    left = _MOST_CHARACTERS
    kept: set[int] = set()
    for place in sorted(range(len(said)), key=lambda each: len(said[each].text)):
        left -= len(said[place].text)
        if left < 0:
            break
        kept.add(place)
    return [each for place, each in enumerate(said) if place in kept]


class _JudgedMessage:
    """The sentences of a message, each with what the judge says of it."""

    def __init__(self, message: PersonMessage, parts: list[Stretch], chosen: LastingJudge) -> None:
        self._message = message
        self._parts = parts
        self._measured = measure(message.text, parts, message.around, chosen.hand)
        languages = likely_languages(message.text)
        self._stated = [StatedSentence(each.sentence.text, languages) for each in self._measured]
        self.inputs = [
            _input(measured, stated, chosen) for measured, stated in zip(self._measured, self._stated, strict=True)
        ]
        self._likely = [chosen.probability(each.sums) for each in self.inputs]

    def statements(self) -> Iterator[PersonStatement]:
        """Yield the best sentence with its likelier neighbours, every sentence that states what lasts, and requests
        about the flow of work: asked for again and again, they are habits.
        """
        best = max(range(len(self._measured)), key=lambda place: self._likely[place], default=0)
        likely = [place for place in range(len(self._measured)) if self._may_last(place, is_best=place == best)]
        if not likely or exclusions.is_text_work(self._message.text):
            return
        for place in likely:
            statement = self._statement(place, is_best=place == best)
            is_long = len(statement.stretch.split()) >= _FEWEST or _HAN.search(statement.text)
            if is_long and not exclusions.is_unfit(statement.stretch):
                yield statement

    def _may_last(self, place: int, *, is_best: bool) -> bool:
        given = self.inputs[place]
        is_likely = is_best and self._likely[place] >= LEAST
        is_wanted = given.stated >= PERHAPS[given.outright] or given.sample.is_request or is_likely
        return is_wanted and not self._stated[place].is_nobodys

    def _statement(self, place: int, *, is_best: bool) -> PersonStatement:
        message, said, given = self._message, self._measured[place].sentence, self.inputs[place]
        first, last = grown(message.text, self._measured, self._likely, place) if is_best else (place, place)
        asked = next((part.question for part in self._parts if part.start <= said.start < part.end), "")
        return PersonStatement(
            at=message.at,
            text=_without_greeting(said.text),
            stretch=_without_greeting(
                message.text[self._measured[first].sentence.start : self._measured[last].sentence.end]
            ),
            kind=(self._stated[place].kind if given.stated >= STATED or given.outright else None) or kind(given.sums),
            probability=round(self._likely[place], 3),
            judged=given,
            refused=message.refused,
            question=asked or message.question,
        )


def _without_greeting(text: str) -> str:
    """Return a sentence without thanks and the like before it, if enough is left."""
    left = _GREETING.sub("", text, count=1)
    return left if len(left.split()) >= _FEWEST else text


def _input(measured: MeasuredSentence, stated: StatedSentence, chosen: LastingJudge) -> JudgeInput:
    hand, size = round(measured.hand, 2), round(measured.size, 3)
    sample = WritingSample(hand, size, tuple(sorted(measured.extras)), measured.is_request)
    score = max(-3.0, round(stated.score(chosen.stated, chosen.stated_base), 2))
    return JudgeInput(chosen.sums(measured), sample, score, stated.outright)


def grown(text: str, measured: list[MeasuredSentence], likely: list[float], best: int) -> tuple[int, int]:
    """Return the first and the last sentence of a stretch around the best one."""
    first = last = best
    size = len(measured[best].tokens)
    while True:
        near = [
            (likely[place], place)
            for place in (first - 1, last + 1)
            if 0 <= place < len(measured)
            and size + len(measured[place].tokens) <= _WIDTH
            and _is_beside(text, measured, min(place, last), max(place, first))
        ]
        if not near:
            return first, last
        _, place = max(near)
        size += len(measured[place].tokens)
        first, last = min(first, place), max(last, place)


def _is_beside(text: str, measured: list[MeasuredSentence], one: int, two: int) -> bool:
    between = text[measured[min(one, two)].sentence.end : measured[max(one, two)].sentence.start]
    return len(between.strip()) <= _BETWEEN


def messages(view: SessionView) -> list[PersonMessage]:
    """Return what the person said, each message with what stood around it."""
    events = view.events()
    places = [place for place in range(len(events)) if _is_said(events, place)]
    found: list[PersonMessage] = []
    previous = ""
    for number, place in enumerate(places):
        event = events[place]
        text, at = _words(event) or ("", event.at)
        behind = events[place + 1 : places[number + 1] if number + 1 < len(places) else len(events)]
        before = next((each for each in reversed(events[:place]) if not isinstance(each, ModelText)), None)
        around = Surroundings(
            is_refusal=isinstance(event, ToolUse),
            position=number,
            count=len(places),
            was_stopped=isinstance(before, Interruption),
            previous=previous,
            reply=_reply(behind),
            has_edited=any(isinstance(each, ToolUse) and patches.is_edit(each) for each in behind),
            is_idle=not any(isinstance(each, ToolUse) for each in behind),
        )
        refused = _refused(event, before)
        since = places[number - 1] + 1 if number else 0
        question = ""
        if isinstance(event, UserText) and event.voice == "user":
            question = question_of(text, _last_words(events, since, place))
        found.append(PersonMessage(at, text, around, refused, question, _marks(events, place)))
        previous = text
    return found


def _refused(event: ViewEvent, before: ViewEvent | None) -> str:
    """Return the command that words refuse; some agents record them as the next message."""
    call = event if isinstance(event, ToolUse) else before
    if not isinstance(call, ToolUse) or not call.refused or (call is before and _quotes(call)):
        return ""
    return call.command or call.name


def _is_said(events: list[ViewEvent], place: int) -> bool:
    """Say whether an event holds words of a person; the copy of a refusal's reason behind it does not count again."""
    event = events[place]
    if _words(event) is None:
        return False
    if not isinstance(event, UserText) or event.voice != "reply":
        return True
    calls = _calls_before(events, place)
    return not any(call.refused and _quotes(call) and call.output.rstrip().endswith(event.text) for call in calls)


def _calls_before(events: list[ViewEvent], place: int) -> list[ToolUse]:
    """Return the calls that a reply may belong to, the nearest first."""
    return [event for event in reversed(events[max(0, place - _CALLS) : place]) if isinstance(event, ToolUse)]


def _marks(events: list[ViewEvent], place: int) -> RecordMarks:
    """Return what is known about the author of a message."""
    event = events[place]
    if not isinstance(event, UserText):
        return RecordMarks(is_refusal=True)
    if event.voice == "reply":
        calls = _calls_before(events, place)
        if calls and calls[0].refused and calls[0].quotes_person:
            calls = []  # it is the reason of a refusal, and answers no question
        asking = [call for call in calls if call.name in TOOLS and not call.refused]
        asked = (answers(event.text, questions(call.arguments)) for call in asking)
        found = next((each for each in asked if each), ())
        # Without the questions nobody can tell them from the answers.
        return RecordMarks(author=Author.HARNESS if asking and not found else None, answers=found)
    return RecordMarks(author=_AUTHORS.get(event.author or ""), pasted=event.pasted)


def _last_words(events: list[ViewEvent], since: int, place: int) -> str:
    """Return what the agent said last before a message, since the person's message before."""
    return next((event.text for event in reversed(events[since:place]) if isinstance(event, ModelText)), "")


def _words(event: ViewEvent) -> tuple[str, EventSpan] | None:
    """Return the words of an event that a person said, and their place: a message, or the reason of a refusal."""
    if isinstance(event, UserText):
        return (event.text, event.at) if event.voice != "shell" else None
    if isinstance(event, ToolUse) and event.refused and _quotes(event):
        return event.output, event.output_at or event.at
    return None


def _quotes(call: ToolUse) -> bool:
    """Say whether the output of a refused call holds the person's reason."""
    return call.quotes_person and _SAID in call.output


def _reply(events: list[ViewEvent]) -> str:
    return "".join(_pieces(events))


def _pieces(events: list[ViewEvent]) -> Iterator[str]:
    size = 0
    for event in events:
        if isinstance(event, ModelText) and size < _REPLY:
            yield event.text[:_REPLY] + "\n"
            size += min(len(event.text), _REPLY) + 1
