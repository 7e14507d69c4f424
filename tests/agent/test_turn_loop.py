"""The loop of a turn: what the model asks for is done, in its order, and told back until it asks for nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from scripted_session import Doing, stage, used
from session_invariants import Json

from commonplace.agent import events
from commonplace.agent.tools.registry import ToolContext, ToolInvocation, ToolOutput
from commonplace.agent.user_input import UserInput
from commonplace.models.scripted import Step, answer, call, custom, say, think


async def test_a_turn_goes_on_until_the_model_calls_nothing_more(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        answer(think("I look."), say("Looking.", phase="commentary"), call("shell", {"command": "echo one"}, "c1")),
        answer(call("shell", {"command": ["printf", "two"]}, "c2")),
        answer(say("Both are there."), usage=used(500)),
    ) as here:
        end = await here.run("What is there?")

        assert isinstance(end, events.TurnCompleted)
        assert "Both are there." == end.message
        assert "one\n" in here.outputs()["c1"]
        assert "two" in here.outputs()["c2"]
        shown = [type(item).__name__ for item in here.completed()]
        assert ["UserMessage", "Reasoning", "AgentMessage", "CommandExecution"] == shown[:4]
        assert ["CommandExecution", "AgentMessage"] == shown[4:]


async def test_calls_that_are_safe_beside_others_really_run_beside_them(tmp_path: Path) -> None:
    met = [anyio.Event(), anyio.Event()]

    async def meet(which: ToolInvocation, _: ToolContext) -> str:
        own = int(which.arguments)
        met[own].set()
        await met[1 - own].wait()
        return f"{own} met the other"

    async with stage(
        tmp_path,
        answer(call("meet", "0", "c0"), call("meet", "1", "c1")),
        answer(say("They met.")),
        tools=[Doing("meet", meet)],
    ) as here:
        await here.run("Meet.")

        assert {"c0": "0 met the other", "c1": "1 met the other"} == here.outputs()


async def test_outputs_are_recorded_in_the_order_of_the_calls_whatever_order_they_end_in(tmp_path: Path) -> None:
    done = {"0": anyio.Event(), "1": anyio.Event(), "2": anyio.Event()}
    ended: list[str] = []

    async def backwards(which: ToolInvocation, _: ToolContext) -> str:
        if which.arguments != "2":
            await done[str(int(which.arguments) + 1)].wait()
        done[which.arguments].set()
        ended.append(which.arguments)
        return which.arguments

    async with stage(
        tmp_path,
        answer(*(call("backwards", str(number), f"c{number}") for number in range(3))),
        answer(say("Done.")),
        tools=[Doing("backwards", backwards)],
    ) as here:
        await here.run("Count.")

        assert ["2", "1", "0"] == ended
        assert ["c0", "c1", "c2"] == [*here.outputs()]
        recorded = [line["payload"] for line in here.lines() if line["payload"].get("type") == "function_call_output"]
        assert ["0", "1", "2"] == [each["output"] for each in recorded]


async def test_a_call_that_is_not_safe_beside_others_waits_for_those_before_and_holds_up_those_after(
    tmp_path: Path,
) -> None:
    log: list[str] = []

    async def note(which: ToolInvocation, _: ToolContext) -> str:
        log.append(f"{which.name} {which.arguments} begins")
        for _step in range(5):
            await anyio.lowlevel.checkpoint()
        log.append(f"{which.name} {which.arguments} ends")
        return "ok"

    async with stage(
        tmp_path,
        answer(
            call("beside", "0", "c0"),
            call("beside", "1", "c1"),
            call("alone", "2", "c2"),
            call("alone", "3", "c3"),
            call("beside", "4", "c4"),
        ),
        answer(say("Done.")),
        tools=[Doing("beside", note), Doing("alone", note, parallel=False)],
    ) as here:
        await here.run("Work.")

    assert ["beside 0 begins", "beside 1 begins"] == log[:2]
    assert {"beside 0 ends", "beside 1 ends"} == set(log[2:4])
    alone = ["alone 2 begins", "alone 2 ends", "alone 3 begins", "alone 3 ends", "beside 4 begins", "beside 4 ends"]
    assert alone == log[4:]


async def test_a_call_begins_while_the_answer_still_streams(tmp_path: Path) -> None:
    began = anyio.Event()

    async def begin(which: ToolInvocation, _: ToolContext) -> str:
        began.set()
        return "begun"

    async with stage(
        tmp_path,
        answer(call("begin", "{}", "c1"), hold=began),  # would wait for ever if the call began only afterwards
        answer(say("Done.")),
        tools=[Doing("begin", begin)],
    ) as here:
        await here.run("Begin.")

        assert "begun" == here.outputs()["c1"]


async def _breaks(which: ToolInvocation, _: ToolContext) -> str:
    raise KeyError("inside the tool")


WRONG: list[tuple[str, Json, str]] = [
    ("an unknown tool", call("no_such", {}, "c1"), "There is no tool 'no_such'"),
    ("an unknown free tool", custom("no_such", "text", "c1"), "There is no tool 'no_such'"),
    ("bad JSON", call("shell", "{not json", "c1"), "the arguments are no JSON"),
    ("no object", call("shell", "[1]", "c1"), "must be a JSON object"),
    ("wrong fields", call("shell", {"comand": "ls"}, "c1"), "shell"),
    ("a tool that raises", call("breaks", {}, "c1"), "breaks failed: KeyError"),
    ("an unknown namespace", call("shell", {"command": "ls"}, "c1", namespace="else"), "There is no tool"),
    ("a program that is not there", call("shell", {"command": ["/no/such"]}, "c1"), "cannot be started"),
]


@pytest.mark.parametrize(("wrong", "told"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
async def test_a_call_that_cannot_be_done_is_answered_and_the_turn_goes_on(
    tmp_path: Path, wrong: Json, told: str
) -> None:
    async with stage(tmp_path, answer(wrong), answer(say("I see."))) as here:
        here.session.tools.add(Doing("breaks", _breaks))
        end = await here.run("Try.")

        assert isinstance(end, events.TurnCompleted)
        assert told in here.outputs()["c1"]
        shown = next(item for item in here.completed() if item.id == "c1")
        assert isinstance(shown, events.ToolCall | events.CommandExecution)
        assert "failed" == shown.status


async def test_a_server_that_says_that_the_turn_is_not_over_is_asked_again(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Part one."), end_turn=False), answer(say("Part two."))) as here:
        end = await here.run("Tell me.")

        assert isinstance(end, events.TurnCompleted)
        assert "Part two." == end.message
        assert "Part one." == here.said()[-1]


async def test_an_answer_that_the_server_paused_is_gone_on_with(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Wait."), stop="paused"), answer(say("Here."))) as here:
        await here.run("Tell me.")

        assert 2 == len(here.requests)


async def test_a_call_in_the_oldest_format_runs_as_a_command(tmp_path: Path) -> None:
    action: Json = {"type": "exec", "command": ["printf", "old"], "timeout_ms": 5000, "env": {}}
    old: Json = {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": action}
    async with stage(tmp_path, answer(old), answer(say("Done."))) as here:
        await here.run("Print.")

        assert "old" in here.outputs()["c1"]
        assert "function_call_output" == here.items()[-1]["type"]


async def test_a_free_text_call_gets_a_free_text_answer(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"
    async with stage(tmp_path, answer(custom("apply_patch", patch, "c1")), answer(say("Done."))) as here:
        await here.run("Write it.")

        assert "hello\n" == (here.cwd / "new.txt").read_text()
        assert "custom_tool_call_output" == here.items()[-1]["type"]
        shown = next(item for item in here.completed() if isinstance(item, events.FileChange))
        assert ("new.txt", "add", "completed") == (
            Path(shown.changes[0].path).name,
            shown.changes[0].kind,
            shown.status,
        )


async def test_a_tool_of_a_namespace_is_offered_and_found_by_both_names(tmp_path: Path) -> None:
    async def look(which: ToolInvocation, _: ToolContext) -> str:
        return f"{which.namespace}.{which.name} found it"

    async with stage(
        tmp_path,
        answer(call("search", {}, "c1", namespace="books")),
        answer(say("Found.")),
        tools=[Doing("search", look, namespace="books")],
    ) as here:
        await here.run("Search.")

        assert "books.search found it" == here.outputs()["c1"]
        offered: Any = here.requests[0].tools[0]
        assert ("search", "books") == (offered.name, offered.namespace)


async def test_two_calls_with_the_same_id_in_one_answer_are_both_answered(tmp_path: Path) -> None:
    async def number(which: ToolInvocation, _: ToolContext) -> str:
        return which.arguments

    async with stage(
        tmp_path,
        answer(call("number", "1", "same"), call("number", "2", "same")),
        answer(call("number", "3", "same")),
        answer(say("Done.")),
        tools=[Doing("number", number)],
    ) as here:
        await here.run("Count.")

        told = [item["output"] for item in here.items() if item["type"] == "function_call_output"]
        assert ["1", "2", "3"] == told


async def test_a_plan_is_one_item_that_changes_and_is_completed_with_the_turn(tmp_path: Path) -> None:
    def plan(status: str, call_id: str) -> Json:
        return call("update_plan", {"plan": [{"step": "look", "status": status}]}, call_id)

    async with stage(
        tmp_path, answer(plan("in_progress", "c1")), answer(plan("completed", "c2")), answer(say("Done."))
    ) as here:
        await here.run("Plan.")

        kinds = [type(event).__name__ for event in here.events if isinstance(getattr(event, "item", 0), events.Plan)]
        assert ["ItemStarted", "ItemUpdated", "ItemCompleted"] == kinds
        assert "completed" == next(item for item in here.completed() if isinstance(item, events.Plan)).steps[0].status


async def test_pictures_of_a_tool_are_sent_as_pictures_to_a_model_that_sees(tmp_path: Path) -> None:
    url = "data:image/png;base64,AAAA"

    async def show(which: ToolInvocation, _: ToolContext) -> ToolOutput:
        return ToolOutput(content=[{"type": "input_image", "image_url": url}])

    async with stage(
        tmp_path, answer(call("show", {}, "c1")), answer(say("A picture.")), tools=[Doing("show", show)]
    ) as here:
        await here.run("Show me.")

        told: Any = here.outputs()["c1"]
        assert [{"type": "input_image", "image_url": url}] == told


STEPS: list[Step] = [answer(say("Yes."))]


async def test_a_turn_without_words_says_only_what_the_client_knows(tmp_path: Path) -> None:
    async with stage(tmp_path, *STEPS) as here:
        end = await here.run(UserInput())

        assert isinstance(end, events.TurnCompleted)
