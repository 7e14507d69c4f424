"""The scripted model: it does what its script says and fails on anything else."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from dialects import ask, collected, done

from commonplace.errors import CommonplaceError, ContextTooLong, StreamBroken
from commonplace.models.base import Completed, ItemDone, Limit, Model, RateLimits, ReasoningDelta, TextDelta, Usage
from commonplace.models.scripted import (
    Answer,
    ScriptedModel,
    ScriptError,
    answer,
    call,
    compaction,
    custom,
    say,
    think,
)


async def test_steps_are_answered_in_order_and_requests_are_kept() -> None:
    usage = Usage(input=5, output=2, total=7)
    async with ScriptedModel(
        answer(think("hm"), call("shell", {"command": "ls"}, "c1"), custom("patch", "x", "c2")),
        answer(say("Done, all of it."), usage=usage, end_turn=False),
        answer(compaction(), limits=RateLimits((Limit("tokens", 50.0),))),
    ) as model:
        first = await collected(model.stream(ask("one")))
        second = await collected(model.stream(ask("two")))
        third = await collected(model.stream(ask("three")))

    assert ["reasoning", "function_call", "custom_tool_call"] == [item["type"] for item in done(first)]
    assert "hm" == "".join(event.text for event in first if isinstance(event, ReasoningDelta))
    assert Completed("resp_1", None, "tools") == first[-1]
    assert "Done, all of it." == "".join(event.text for event in second if isinstance(event, TextDelta))
    assert [usage, Completed("resp_2", False, "end")] == second[-2:]
    assert isinstance(third[0], RateLimits)
    assert [b"one" in request.input[0] for request in model.requests] == [True, False, False]
    ids = [item["id"] for events in (first, second, third) for item in done(events)]
    assert len(ids) == len(set(ids))


async def test_it_is_a_model() -> None:
    model: Model = ScriptedModel(answer(say("x")))

    assert await collected(model.stream(ask()))
    await model.aclose()


async def test_an_item_with_an_id_keeps_its_bytes() -> None:
    raw = b'{ "type":"message", "id":"msg_9", "role":"assistant", "content":[] }'
    [_, done_event, _] = await collected(ScriptedModel(answer(raw)).stream(ask()))

    assert ItemDone(raw) == done_event


async def test_a_request_beyond_the_script_fails_now_and_at_the_end() -> None:
    model = ScriptedModel()
    with pytest.raises(ScriptError, match="request 1 is not in the script"):
        await collected(model.stream(ask()))
    with pytest.raises(ScriptError, match="request 1"):
        model.check()


async def test_unused_steps_fail_at_the_end() -> None:
    with pytest.raises(ScriptError, match="1 steps were never asked for"):
        async with ScriptedModel(answer(say("x"))):
            pass


async def test_an_error_in_the_block_is_not_hidden_by_unused_steps() -> None:
    with pytest.raises(ZeroDivisionError):
        async with ScriptedModel(answer(say("x"))):
            raise ZeroDivisionError


async def test_a_request_that_is_not_expected_fails() -> None:
    def wants_tools(request: object) -> None:
        assert getattr(request, "tools"), "no tools were offered"  # noqa: B009

    def wants_nothing(request: object) -> bool:
        return request is None

    for expect in (wants_tools, wants_nothing):
        model = ScriptedModel(answer(say("x"), expect=expect))
        with pytest.raises(ScriptError, match="not what the script expects"):
            await collected(model.stream(ask()))


def test_a_broken_script_is_no_error_that_a_program_copes_with() -> None:
    assert not issubclass(ScriptError, CommonplaceError)


async def test_errors_come_instead_of_an_answer_or_after_its_items() -> None:
    broken = answer(say("half"), breaks=StreamBroken("lost"))
    model = ScriptedModel(ContextTooLong("full"), broken, lambda request: answer(say(request.model)))
    with pytest.raises(ContextTooLong):
        await collected(model.stream(ask()))
    events: list[object] = []
    with pytest.raises(StreamBroken):  # noqa: PT012 (what came before the error is the point)
        async for event in model.stream(ask()):
            events.append(event)  # noqa: PERF401
    computed = await collected(model.stream(ask()))

    assert isinstance(events[-1], ItemDone)
    assert "m-1" == msgspec.json.decode(next(e.item for e in computed if isinstance(e, ItemDone)))["content"][0]["text"]
    model.check()


async def test_an_answer_that_holds_waits_for_its_event() -> None:
    hold, said = anyio.Event(), anyio.Event()
    model = ScriptedModel(Answer(items=answer(say("x")).items, hold=hold))
    completed: list[object] = []

    async def listen() -> None:
        async for event in model.stream(ask()):
            if isinstance(event, ItemDone):
                said.set()
            completed.append(event)

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await said.wait()
        assert not [event for event in completed if isinstance(event, Completed)]
        hold.set()

    assert isinstance(completed[-1], Completed)
