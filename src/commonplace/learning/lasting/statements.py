"""What a person said in a session, judged: one statement for each message that may hold something lasting.

A statement quotes the best sentence of a message, grown by its likelier neighbours, because people speak in two or
three sentences and the neighbours say what `it` is. What only many sessions tell about a person is added later
(`learning.consolidate`), so each statement carries what the judge summed up so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from commonplace.learning.lasting import authors
from commonplace.learning.lasting.features import MeasuredSentence, Surroundings, measure
from commonplace.learning.lasting.judge import LastingJudge, judge, kind
from commonplace.learning.reading import patches
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


class PersonMessage(msgspec.Struct):
    """One message of the person, and what stood around it."""

    at: EventSpan
    text: str
    around: Surroundings
    refused: str = ""
    """The command that was refused with these words."""


class PersonStatement(msgspec.Struct, frozen=True):
    """What of a message may last."""

    at: EventSpan
    text: str
    title: str
    """Its best sentence."""
    kind: Kind
    probability: float
    """How likely it lasts, by what this session tells."""
    judged: JudgeInput
    refused: str = ""


class SpokenSession(msgspec.Struct, frozen=True):
    """What a person said in a session: statements, and every sentence as the measure of how they write."""

    statements: list[PersonStatement]
    sentences: list[WritingSample]


def spoken(view: SessionView) -> SpokenSession:
    """Return what the person said in a session, judged."""
    chosen = judge()
    statements: list[PersonStatement] = []
    sentences: list[WritingSample] = []
    for message in messages(view):
        parts = authors.stretches(message.text, is_refusal=message.around.is_refusal)
        measured = measure(message.text, parts, message.around, chosen.hand)
        inputs = [_input(each, chosen) for each in measured]
        sentences += [each.sample for each in inputs]
        statement = _statement(message, measured, inputs, chosen)
        if statement is not None:
            statements.append(statement)
    return SpokenSession(statements, sentences)


def _input(measured: MeasuredSentence, chosen: LastingJudge) -> JudgeInput:
    hand, size = round(measured.hand, 2), round(measured.size, 3)
    sample = WritingSample(hand, size, tuple(sorted(measured.extras)), measured.is_request)
    return JudgeInput(chosen.sums(measured), sample)


def _statement(
    message: PersonMessage, measured: list[MeasuredSentence], inputs: list[JudgeInput], chosen: LastingJudge
) -> PersonStatement | None:
    """Return the best sentence of a message with its likelier neighbours; None if nothing may last."""
    if not measured:
        return None
    likely = [chosen.probability(each.sums) for each in inputs]
    best = max(range(len(measured)), key=lambda place: likely[place])
    if likely[best] < LEAST:
        return None
    first, last = grown(message.text, measured, likely, best)
    if sum(len(each.tokens) for each in measured[first : last + 1]) < _FEWEST:
        return None
    text = message.text[measured[first].sentence.start : measured[last].sentence.end]
    sums = inputs[best].sums
    title = measured[best].sentence.text
    return PersonStatement(message.at, text, title, kind(sums), round(likely[best], 3), inputs[best], message.refused)


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
    places = [place for place, event in enumerate(events) if _words(event) is not None]
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
        refused = event.command or event.name if isinstance(event, ToolUse) else ""
        found.append(PersonMessage(at, text, around, refused))
        previous = text
    return found


def _words(event: ViewEvent) -> tuple[str, EventSpan] | None:
    """Return the words of an event that a person said, and their place: a message, or the reason of a refusal."""
    if isinstance(event, UserText):
        return (event.text, event.at) if event.voice != "shell" else None
    if isinstance(event, ToolUse) and event.refused and _SAID in event.output:
        return event.output, event.output_at or event.at
    return None


def _reply(events: list[ViewEvent]) -> str:
    return "".join(_pieces(events))


def _pieces(events: list[ViewEvent]) -> Iterator[str]:
    size = 0
    for event in events:
        if isinstance(event, ModelText) and size < _REPLY:
            yield event.text[:_REPLY] + "\n"
            size += min(len(event.text), _REPLY) + 1
