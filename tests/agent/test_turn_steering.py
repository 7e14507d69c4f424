"""Words that come while a turn runs: they wait for the next request, or for a turn of their own, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from scripted_session import Stage, stage, used
from session_invariants import kinds

from commonplace.agent import events, user_input
from commonplace.agent.user_input import UserInput
from commonplace.context.additional import AdditionalContext
from commonplace.errors import BadInput, RequestRefused
from commonplace.models.base import Request
from commonplace.models.scripted import Answer, answer, call, say

LONG = "word " * 8_000


def steering(here: Stage, *words: str, **more: Any) -> Callable[[events.Event], None]:
    """Return a listener that steers as soon as the model says something."""
    left = list(words)

    def listen(event: events.Event) -> None:
        if isinstance(event, events.TextDelta) and left:
            before = len(here.requests)
            here.session.steer(user_input.text(left.pop(0), **more))
            assert before == len(here.requests)

    return listen


async def test_words_that_come_while_the_model_speaks_are_told_with_the_next_request(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(say("I begin."), call("shell", {"command": "echo one"}, "c1")),
        answer(say("As you like.")),
    ) as here:
        here.listeners.append(steering(here, "Be quick."))
        await here.run("Work.")

        assert ["Work.", "I begin.", "Be quick."] == here.said()
        assert "function_call_output" == here.items()[-2]["type"], "what the model did stands before"


async def test_words_that_come_during_the_last_answer_are_answered_too(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Done.")), answer(say("And that as well."))) as here:
        here.listeners.append(steering(here, "And that?"))
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert "And that as well." == end.message
        assert ["Work.", "Done.", "And that?"] == here.said()
        assert 1 == kinds(here.lines()).count("task_started")


async def test_several_words_are_told_in_their_order(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("One, two, three, four."), piece=4), answer(say("Yes."))) as here:
        here.listeners.append(steering(here, "First.", "Second.", "Third."))
        await here.run("Work.")

        assert ["First.", "Second.", "Third."] == here.said()[-3:]


async def test_after_a_compaction_the_model_goes_on_where_it_was_before_new_words_are_told(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(say(LONG), call("shell", {"command": "echo one"}, "c1"), usage=used(95_000)),
        answer(say("The summary.")),
        answer(call("shell", {"command": "echo two"}, "c2")),
        answer(say("Yes.")),
    ) as here:
        here.listeners.append(steering(here, "New words."))
        await here.run("Work.")

        assert "New words." not in here.texts(2)
        assert "New words." in here.texts(3)


async def test_after_a_compaction_new_words_are_told_at_once_if_the_model_had_nothing_to_do(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(say(LONG), usage=used(95_000)), answer(say("The summary.")), answer(say("Yes."))
    ) as here:
        here.listeners.append(steering(here, "New words."))
        await here.run("Work.")

        assert "New words." == here.said(2)[-1]


async def test_words_that_come_when_the_turn_fails_are_kept(tmp_path: Path) -> None:
    def refused(_: Request) -> RequestRefused:
        here.session.steer(user_input.text("Not lost."))
        return RequestRefused("No.", hint="")

    async with stage(tmp_path, refused) as here:
        end = await here.run("Work.")
        assert isinstance(end, events.TurnFailed)
        here.model.add(answer(say("I see both.")))
        await here.run("Again.")

        assert ["Work.", "Not lost.", "Again."] == here.said()


REFUSED: list[tuple[str, UserInput, dict[str, Any], str]] = [
    ("another turn", user_input.text("x"), {"expected": "another"}, "expected_turn_mismatch"),
    ("no words", UserInput(), {}, "empty_input"),
    ("context alone", UserInput(context={"a": AdditionalContext("b", "untrusted")}), {}, "empty_input"),
    ("another schema", user_input.text("x", schema={"type": "object"}), {}, "active_turn_output_schema_mismatch"),
    ("another turn, without words", UserInput(), {"expected": "another"}, "expected_turn_mismatch"),
    ("no words, another schema", UserInput(schema={"type": "object"}), {}, "empty_input"),
]


@pytest.mark.parametrize(("given", "more", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_words_that_cannot_be_taken_are_refused_with_the_reason_and_change_nothing(
    tmp_path: Path, given: UserInput, more: dict[str, Any], reason: str
) -> None:
    caught: list[BadInput] = []

    def first(_: Request) -> Answer:
        try:
            here.session.steer(given, **more)
        except BadInput as error:
            caught.append(error)
        return answer(say("Done."))

    async with stage(tmp_path, first) as here:
        await here.run(
            UserInput(parts=user_input.text("Work.").parts, context={"a": AdditionalContext("b", "application")})
        )
        here.model.add(answer(say("Yes.")))
        await here.run(
            UserInput(parts=user_input.text("Again.").parts, context={"a": AdditionalContext("b", "application")})
        )

        assert [reason] == [error.data["reason"] for error in caught]
        assert 1 == here.texts().count("<a>b</a>"), "what the session remembers of the context is untouched"


async def test_without_a_turn_there_is_nothing_to_steer(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        with pytest.raises(BadInput) as caught:
            here.session.steer(user_input.text("Hello?"))

        assert "no_active_turn" == caught.value.data["reason"]


async def test_a_turn_that_is_ending_takes_nothing_more(tmp_path: Path) -> None:
    caught: list[BadInput] = []

    def late(event: events.Event) -> None:
        if isinstance(event, events.TurnCompleted):
            with pytest.raises(BadInput) as error:
                here.session.steer(user_input.text("Too late."))
            caught.append(error.value)

    async with stage(tmp_path, answer(say("Done."))) as here:
        here.listeners.append(late)
        await here.run("Work.")

        assert "no_active_turn" == caught[0].data["reason"]


async def test_a_compaction_takes_no_words(tmp_path: Path) -> None:
    caught: list[BadInput] = []

    def summary(_: Request) -> Answer:
        with pytest.raises(BadInput) as error:
            here.session.steer(user_input.text("Hello?"))
        caught.append(error.value)
        return answer(say("The summary."))

    async with stage(tmp_path, answer(say(LONG * 5)), summary) as here:
        await here.run("Talk.")
        await here.compact()

        assert "active_turn_not_steerable" == caught[0].data["reason"]
        assert "Hello?" not in str(here.session.history.for_prompt())


async def test_a_steer_of_the_same_schema_is_taken(tmp_path: Path) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    async with stage(tmp_path, answer(say("{}")), answer(say("{}"))) as here:
        here.listeners.append(steering(here, "And?", schema=dict(schema)))
        await here.run(user_input.text("Work.", schema=schema))

        assert "And?" == here.said()[-1]
        assert all(request.output_schema for request in here.requests)


async def test_what_the_client_knows_is_told_before_steered_words_and_not_twice(tmp_path: Path) -> None:
    def first(_: Request) -> Answer:
        knows = {"page": AdditionalContext("two", "untrusted"), "mode": AdditionalContext("fast", "application")}
        here.session.steer(UserInput(parts=user_input.text("Look.").parts, context=knows))
        return answer(say("Done."))

    async with stage(tmp_path, first, answer(say("Yes."))) as here:
        given = {"mode": AdditionalContext("fast", "application")}
        await here.run(UserInput(parts=user_input.text("Work.").parts, context=given))

        assert ["<mode>fast</mode>", "Work.", "Done.", "<external_page>two</external_page>", "Look."] == here.said()


async def test_queued_words_are_a_turn_of_their_own(tmp_path: Path) -> None:
    def first(_: Request) -> Answer:
        here.session.queue(user_input.text("Then this."))
        here.session.queue(user_input.text("And this."))
        return answer(say("One."))

    async with stage(tmp_path, first, answer(say("Two.")), answer(say("Three."))) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert "Three." == end.message
        assert ["Work.", "One.", "Then this.", "Two.", "And this."] == here.said()
        assert 3 == kinds(here.lines()).count("task_complete")


async def test_a_second_turn_is_refused_while_one_runs(tmp_path: Path) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def first(_: Request) -> Answer:
        asked.set()
        return answer(say("Done."), hold=go)

    async with stage(tmp_path, first) as here, anyio.create_task_group() as group:
        group.start_soon(here.run, "Work.")
        await asked.wait()
        for refused in (lambda: here.run("Also."), here.compact, lambda: here.session.roll_back(1)):
            with pytest.raises(BadInput):
                await refused()
        go.set()
