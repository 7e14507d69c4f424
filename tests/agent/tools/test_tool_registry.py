"""Calls and answers: what a model wrote wrongly becomes an answer that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.agent.tools import arguments
from commonplace.agent.tools.patch.tool import ApplyPatch
from commonplace.agent.tools.plan import PlanUpdate, UpdatePlan
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.registry import (
    Registry,
    ToolContext,
    ToolDefinition,
    ToolInvocation,
    ToolOutput,
    output_item,
)
from commonplace.agent.tools.shell import Process, Shell, ShellArguments
from commonplace.errors import ToolError

Surrounded = Callable[..., ToolContext]


class Odd:
    """A tool that does what it is told to."""

    aliases = ("strange",)
    parallel = True
    mutates = False
    definition = ToolDefinition("odd", "function", "Odd.", {"type": "object"})

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure

    async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
        if self._failure is not None:
            raise self._failure
        return ToolOutput(content=call.arguments)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("no_such", "{}", "There is no tool 'no_such'. Tools: update_plan."),
        ("update_plan", "{", "no JSON"),
        ("update_plan", "[]", "must be a JSON object"),
        ("update_plan", "", "`plan`"),
        ("update_plan", '{"plan": 3}', "Expected `array`"),
        ("update_plan", '{"plan": [], "mood": 1}', "unknown field `mood`"),
        ("update_plan", '{"plan": [{"step": "a", "status": "done"}]}', "Invalid enum value 'done'"),
        ("update_plan", "[" * 100_000, "JSON"),
        ("update_plan", '{"plan": "\ud800"}', "JSON"),
        ("\ud800" * 200, "{}", "There is no tool"),
    ],
)
async def test_a_call_that_cannot_be_understood_is_answered(
    name: str, text: str, said: str, surrounded: Surrounded
) -> None:
    output = await Registry([UpdatePlan()]).run(ToolInvocation("1", name, text), surrounded())

    assert not output.ok
    assert said in str(output.content)
    msgspec.json.encode(output_item(ToolInvocation("1", "x", ""), output))


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (ToolError("io", "the disk is full", hint="Make room."), "odd: the disk is full Make room."),
        (ZeroDivisionError("oops"), "odd failed: ZeroDivisionError: oops"),
        (OSError("gone"), "odd failed: OSError: gone"),
    ],
)
async def test_a_tool_that_fails_is_an_answer_too(failure: Exception, said: str, surrounded: Surrounded) -> None:
    output = await Registry([Odd(failure)]).run(ToolInvocation("1", "odd", "{}"), surrounded())

    assert (False, said) == (output.ok, output.content)


async def test_a_tool_answers_to_its_other_names(surrounded: Surrounded) -> None:
    output = await Registry([Odd()]).run(ToolInvocation("1", "strange", "hello"), surrounded())

    assert "hello" == output.content


def test_two_tools_cannot_have_one_name() -> None:
    with pytest.raises(ValueError, match="two tools named odd"):
        Registry([Odd(), Odd()])


def test_definitions_keep_their_order_and_their_bytes() -> None:
    def made() -> Registry:
        processes = Processes()
        return Registry([Shell(processes), Process(processes), ApplyPatch(), UpdatePlan()])

    first = made().definitions()

    assert ["shell", "process", "apply_patch", "update_plan"] == [each.name for each in first]
    assert msgspec.json.encode(first) == msgspec.json.encode(made().definitions())
    assert ["function", "function", "custom", "function"] == [each.kind for each in first]


def test_a_schema_stands_in_one_piece() -> None:
    made = arguments.schema(PlanUpdate)

    assert b"$ref" not in msgspec.json.encode(made)
    steps = made["properties"]["plan"]["items"]
    assert ["step", "status"] == steps["required"]
    assert {"enum": ["completed", "in_progress", "pending"], "type": "string"} == steps["properties"]["status"]
    assert ["plan"] == made["required"]
    assert made["additionalProperties"] is False
    assert {"type": "string", "description": "Why the plan changed."} == made["properties"]["explanation"]


def test_null_is_as_good_as_left_out() -> None:
    assert "ls" == arguments.decode('{"command": "ls", "workdir": null, "background": null}', ShellArguments).command


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(st.text() | _json.map(lambda value: msgspec.json.encode(value).decode()))
def test_any_text_is_arguments_or_a_reason(text: str) -> None:
    reasons: list[ToolError] = []
    try:
        arguments.decode(text, PlanUpdate)
    except ToolError as error:
        reasons.append(error)

    assert all("bad_arguments" == reason.kind and reason.sentence().encode() for reason in reasons)


async def test_cancelling_a_call_ends_it_alone(surrounded: Surrounded) -> None:
    class Waits(Odd):
        async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
            context.scope.cancel()
            await anyio.sleep_forever()
            raise AssertionError

    output = await Registry([Waits()]).run(ToolInvocation("1", "odd", "{}"), surrounded())

    assert (False, "aborted") == (output.ok, output.content)


async def test_cancelling_the_task_around_a_call_goes_on_to_the_caller(surrounded: Surrounded) -> None:
    class Waits(Odd):
        async def run(self, call: ToolInvocation, context: ToolContext) -> ToolOutput:
            outer.cancel()
            await anyio.sleep_forever()
            raise AssertionError

    answered: list[Any] = []
    with anyio.CancelScope() as outer:
        answered.append(await Registry([Waits()]).run(ToolInvocation("1", "odd", "{}"), surrounded()))

    assert outer.cancelled_caught
    assert [] == answered


async def test_time_is_told_by_the_clock_that_was_given(surrounded: Surrounded) -> None:
    times = iter([10.0, 12.5])

    output = await Registry([Odd()]).run(ToolInvocation("1", "odd", "{}"), surrounded(now=lambda: next(times)))

    assert 2.5 == output.seconds


@pytest.mark.parametrize(
    ("kind", "expected"), [("function", "function_call_output"), ("custom", "custom_tool_call_output")]
)
def test_an_answer_is_an_item_of_the_kind_of_its_call(kind: Any, expected: str) -> None:
    made = output_item(ToolInvocation("c7", "odd", "", kind), ToolOutput(content="done"))

    assert {"type": expected, "call_id": "c7", "output": "done"} == made
