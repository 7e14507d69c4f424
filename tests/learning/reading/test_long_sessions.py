"""A session of very many short messages costs in proportion to its length: calls are counted, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from commonplace.learning.extract import rules
from commonplace.learning.lasting.statements import spoken
from commonplace.learning.reading.session_view import (
    EventSpan,
    ModelText,
    SessionView,
    ToolUse,
    Turn,
    UserText,
    ViewEvent,
)

SHORT = 60


def span(number: int) -> EventSpan:
    return EventSpan(1, number, number + 1)


def asked(number: int) -> list[ViewEvent]:
    return [UserText(span(number), "please fix the test")]


def answered(number: int) -> list[ViewEvent]:
    return [UserText(span(number), "please fix it"), ModelText(span(number), "done")]


def ran(number: int) -> list[ViewEvent]:
    failed = ToolUse(span(number), "shell", "{}", command="make test", ok=False, output="1 failed")
    return [UserText(span(number), "fix it"), failed]


def wished(number: int) -> list[ViewEvent]:
    return [UserText(span(number), "From now on, always use tabs.")]


def calls(made: Callable[[int], list[ViewEvent]], length: int) -> int:
    """Return how many calls of functions reading a session takes."""
    view = SessionView("t", "t.jsonl", "cli", "/repo", "/repo", None, "", "")
    view.turns = [Turn(1, [event for number in range(length) for event in made(number)])]
    count = 0

    def counted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    rules.extract(view)
    sys.setprofile(counted)
    try:
        rules.extract(view)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("made", [asked, answered, ran, wished])
def test_eight_times_the_messages_are_at_most_nine_times_the_work(made: Callable[[int], list[ViewEvent]]) -> None:
    assert calls(made, 8 * SHORT) <= 9 * calls(made, SHORT)


def test_of_more_than_anybody_types_in_a_session_the_longest_messages_are_not_judged() -> None:
    pasted = [UserText(span(number), "Please read the file again. " * 500) for number in range(100)]
    view = SessionView("t", "t.jsonl", "cli", "/repo", "/repo", None, "", "")
    view.turns = [Turn(1, [*pasted, *wished(200)])]

    found = spoken(view)

    assert ["From now on, always use tabs."] == [each.text for each in found.statements if "tabs" in each.text]
    assert 10_000 < len(found.sentences) < 20_000  # of 50,000
