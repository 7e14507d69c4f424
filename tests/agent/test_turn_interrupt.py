"""A turn that is stopped, at every kind of moment: what was said and done stays, nothing runs on, the thread does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from scripted_session import Doing, Stage, stage, used
from session_invariants import kinds

from commonplace.agent import events, ledger_lines, user_input
from commonplace.agent.session import Session
from commonplace.agent.tools import processes
from commonplace.agent.tools.process_table import group_members
from commonplace.agent.tools.registry import ToolContext, ToolInvocation
from commonplace.errors import BadInput
from commonplace.models import base
from commonplace.models.scripted import Answer, answer, call, say, think
from commonplace.protocol import items

Stop = Callable[..., Awaitable[events.End]]


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ignores a request to end is killed soon."""
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.2)


async def interrupted(here: Stage, when: Callable[[], Awaitable[object]], words: str = "Work.") -> events.End:
    """Run a turn and interrupt it when something has happened; return how it ended."""
    ends: list[events.End] = []

    async def run() -> None:
        ends.append(await here.run(words))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await when()
        await here.session.interrupt()
        assert here.session.turn is None
    return ends[0]


async def cancelled(here: Stage, when: Callable[[], Awaitable[object]], words: str = "Work.") -> events.End:
    """Run a turn and cancel the task around it; return how listeners were told that it ended."""
    async with anyio.create_task_group() as group:
        group.start_soon(here.run, words)
        await when()
        group.cancel_scope.cancel()
    end = here.events[-1]
    assert isinstance(end, events.TurnAborted | events.TurnCompleted | events.TurnFailed)
    return end


WAYS = pytest.mark.parametrize("stop", [interrupted, cancelled], ids=["interrupted", "cancelled"])


def was_aborted(here: Stage, end: events.End) -> None:
    """Check what an interrupted turn leaves."""
    assert isinstance(end, events.TurnAborted)
    assert end == here.events[-1]
    assert kinds(here.lines())[-1] == "turn_aborted"
    last = here.session.history.entries[-1].view
    assert isinstance(last, items.Message)
    assert ledger_lines.ABORTED == last.text()
    assert 1 == sum(isinstance(event, events.TurnAborted) for event in here.events)


async def goes_on(here: Stage) -> None:
    """Check that the next turn works, in this session and after a resume; its requests are checked by the model."""
    here.model.add(answer(say("On we go.")), answer(say("And on.")))
    assert isinstance(await here.run("Go on."), events.TurnCompleted)
    await here.resume()
    assert isinstance(await here.run("And on."), events.TurnCompleted)


@WAYS
async def test_before_the_first_token_nothing_is_said_and_the_request_stays(tmp_path: Path, stop: Stop) -> None:
    asked = anyio.Event()

    def nothing_yet(_: object) -> Answer:
        asked.set()
        return answer(hold=anyio.Event())

    async with stage(tmp_path, nothing_yet) as here:
        was_aborted(here, await stop(here, asked.wait))
        await goes_on(here)

        assert ["Work.", ledger_lines.ABORTED, "On we go.", "And on."] == [
            text for text in here.said() if text in ("Work.", ledger_lines.ABORTED, "On we go.", "And on.")
        ]


@WAYS
async def test_in_the_middle_of_a_text_what_was_said_is_recorded(tmp_path: Path, stop: Stop) -> None:
    async with stage(tmp_path, answer(say("The first half and the second."), piece=15)) as here:
        here.model.stalls = base.TextDelta
        was_aborted(here, await stop(here, lambda: here.until(events.TextDelta)))

        assert "The first half " in [event.text for event in here.events if isinstance(event, events.TextDelta)]
        shown = next(item for item in here.completed() if isinstance(item, events.AgentMessage))
        assert "The first half " == shown.text
        await goes_on(here)
        assert "The first half " in here.texts()


@WAYS
async def test_in_the_middle_of_a_thought_the_thought_is_ended_and_not_sent(tmp_path: Path, stop: Stop) -> None:
    async with stage(tmp_path, answer(think("A long thought that never ends."))) as here:
        here.model.stalls = base.ReasoningDelta
        was_aborted(here, await stop(here, lambda: here.until(events.ReasoningDelta)))
        await goes_on(here)

        assert "reasoning" not in [item["type"] for item in here.items()]


@WAYS
async def test_a_message_that_was_only_announced_is_ended_for_listeners_and_not_sent(
    tmp_path: Path, stop: Stop
) -> None:
    async with stage(tmp_path, answer(say("Never said."))) as here:
        here.model.stalls = base.ItemAdded
        was_aborted(here, await stop(here, lambda: here.until(events.ItemStarted)))
        await goes_on(here)


LOUD = "echo begun; (trap '' TERM; sleep 300 & sleep 301) & sleep 302"


@WAYS
async def test_in_a_running_command_its_children_end_and_its_output_is_told(tmp_path: Path, stop: Stop) -> None:
    async with stage(tmp_path, answer(call("shell", {"command": LOUD}, "c1"))) as here:
        groups: list[int] = []
        real = here.session.processes.start

        def start(launch: processes.Launch) -> processes.RunningCommand:
            running = real(launch)
            groups.append(running.group)
            return running

        here.session.processes.start = start
        was_aborted(here, await stop(here, lambda: here.until(events.OutputDelta)))

        assert [] == group_members(groups[0])
        shown = next(item for item in here.completed() if isinstance(item, events.CommandExecution))
        assert ("begun\n", "failed") == (shown.output, shown.status)
        await goes_on(here)
        assert "aborted; it had printed:\nbegun\n" == here.outputs()["c1"]


@WAYS
async def test_while_two_tools_run_and_one_waits_each_gets_an_output(tmp_path: Path, stop: Stop) -> None:
    running = [anyio.Event(), anyio.Event()]

    async def wait(which: ToolInvocation, _: ToolContext) -> str:
        running[int(which.arguments)].set()
        await anyio.sleep_forever()
        return "never"

    async def both() -> None:
        for each in running:
            await each.wait()

    async with stage(
        tmp_path,
        answer(call("wait", "0", "c0"), call("wait", "1", "c1"), call("alone", "{}", "c2")),
        tools=[Doing("wait", wait), Doing("alone", wait, parallel=False)],
    ) as here:
        was_aborted(here, await stop(here, both))
        recorded = [line["payload"] for line in here.lines() if line["payload"].get("type") == "function_call_output"]
        assert [("c0", "aborted"), ("c1", "aborted"), ("c2", "aborted")] == [
            (each["call_id"], each["output"]) for each in recorded
        ]
        await goes_on(here)


@WAYS
async def test_while_a_question_is_open_nothing_is_run(tmp_path: Path, stop: Stop) -> None:
    command = {"command": "touch was-run"}
    async with stage(
        tmp_path, answer(call("shell", command, "c1")), sandbox="workspace-write", approval="untrusted"
    ) as here:
        was_aborted(here, await stop(here, lambda: here.until(events.Asked)))
        asked = next(event for event in here.events if isinstance(event, events.Asked))
        with pytest.raises(BadInput, match="no open question"):
            here.session.decide(asked.request_id, "approved")
        await goes_on(here)

        assert not (here.cwd / "was-run").exists()
        assert "aborted" == here.outputs()["c1"]


async def test_a_person_who_answers_a_question_with_stop_stops_the_turn(tmp_path: Path) -> None:
    async with stage(
        tmp_path, answer(call("shell", {"command": "touch was-run"}, "c1")), sandbox="read-only", approval="untrusted"
    ) as here:
        here.listeners.append(lambda event: decide(here.session, event))
        end = await here.run("Work.")

        was_aborted(here, end)
        assert not (here.cwd / "was-run").exists()
        here.listeners.clear()
        await goes_on(here)


def decide(session: Session, event: events.Event) -> None:
    if isinstance(event, events.Asked):
        session.decide(event.request_id, "abort")


@WAYS
async def test_between_two_requests_the_tools_are_done_and_the_answer_is_not_asked_for(
    tmp_path: Path, stop: Stop
) -> None:
    asked = anyio.Event()

    def second(_: object) -> Answer:
        asked.set()
        return answer(hold=anyio.Event())

    async with stage(tmp_path, answer(call("shell", {"command": "echo done"}, "c1"), usage=used(900)), second) as here:
        was_aborted(here, await stop(here, asked.wait))
        await goes_on(here)

        assert "done\n" in here.outputs()["c1"]


@WAYS
async def test_during_a_compaction_the_history_stays_as_it_was(tmp_path: Path, stop: Stop) -> None:
    async with stage(
        tmp_path, answer(say("A " + "long " * 4000), usage=used(95_000)), answer(hold=anyio.Event())
    ) as here:
        await here.run("Talk.")
        before = here.session.history.for_prompt()
        was_aborted(here, await stop(here, lambda: here.until(events.ItemStarted)))

        assert before == here.session.history.for_prompt()[: len(before)]
        assert "compacted" not in kinds(here.lines())
        here.model.add(answer(say("The summary.")))
        await goes_on(here)


async def test_a_compaction_of_its_own_can_be_interrupted(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("A " + "long " * 40_000)), answer(hold=anyio.Event())) as here:
        await here.run("Talk.")
        ends: list[events.End] = []

        async def compact() -> None:
            ends.append(await here.compact())

        async with anyio.create_task_group() as group:
            group.start_soon(compact)
            await here.until(events.ItemStarted)
            await here.session.interrupt()

        was_aborted(here, ends[0])
        await goes_on(here)


async def test_an_interrupt_without_a_turn_does_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Hello."))) as here:
        await here.session.interrupt()
        await here.run("Hello?")
        await here.session.interrupt()

        assert "turn_aborted" not in kinds(here.lines())


async def test_closing_a_session_ends_its_turn_first(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(call("shell", {"command": LOUD}, "c1"))) as here:
        async with anyio.create_task_group() as group:
            group.start_soon(here.run, "Work.")
            await here.until(events.OutputDelta)
            await here.session.close()

        assert kinds(here.lines())[-1] == "turn_aborted"
        await here.resume()
        await goes_on(here)


async def test_what_runs_in_the_background_survives_an_interrupt_and_ends_with_the_session(tmp_path: Path) -> None:
    asked = anyio.Event()

    def second(_: object) -> Answer:
        asked.set()
        return answer(hold=anyio.Event())

    script = {"command": "echo up; exec sleep 300", "background": True}
    async with stage(tmp_path, answer(call("shell", script, "c1")), second) as here:
        await interrupted(here, asked.wait)
        running = here.session.processes.find(1)

        assert [running.group] == group_members(running.group)
        await here.resume()
        assert [] == group_members(running.group)


async def test_queued_input_is_let_go_by_an_interrupt(tmp_path: Path) -> None:
    asked = anyio.Event()

    def second(_: object) -> Answer:
        asked.set()
        return answer(hold=anyio.Event())

    async with stage(tmp_path, second) as here:

        async def when() -> None:
            await asked.wait()
            here.session.queue(user_input.text("Later."))

        was_aborted(here, await interrupted(here, when))
        await goes_on(here)

        assert "Later." not in here.texts()
