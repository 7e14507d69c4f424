"""Hooks that hang, crash or flood: the turn goes on, or ends when it is interrupted, and nothing is left of them."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from consent_doubles import Gate, Listener, warnings
from scripted_session import Doing, stage
from server_fixtures import left

from commonplace.agent import events, turn_end, user_input
from commonplace.agent.hooks.config import MOMENTS, HookCommand, Moment
from commonplace.agent.tools.registry import ToolContext, ToolInvocation
from commonplace.models.scripted import answer, call, say

LONG = [say("word " * 6_000)] * 6
"""More than what a compaction leaves, in pieces that are recorded whole."""


@pytest.mark.parametrize("moment", [each for each in MOMENTS if not each.endswith("_compact")])
async def test_a_turn_is_interrupted_while_a_hook_hangs(tmp_path: Path, moment: Moment) -> None:
    gate = Gate(tmp_path)
    steps = [answer(call("shell", {"command": "echo 1"}, "c1")), answer(say("Done."))]
    async with stage(tmp_path, *steps, hooks={moment: (gate.hook,)}) as here, anyio.create_task_group() as tasks:

        async def stop() -> None:
            await gate.reached()
            await here.session.interrupt()

        tasks.start_soon(stop)
        end = await here.run("Work.")

        assert isinstance(end, events.TurnAborted)
        assert [] == left(str(tmp_path / "gate.log"))
        here.model.instead()


@pytest.mark.parametrize("moment", ["pre_compact", "post_compact"])
async def test_a_compaction_is_interrupted_while_a_hook_hangs(tmp_path: Path, moment: Moment) -> None:
    gate = Gate(tmp_path)
    steps = [answer(*LONG), answer(say("A summary."))]
    async with stage(tmp_path, *steps, hooks={moment: (gate.hook,)}) as here, anyio.create_task_group() as tasks:
        await here.run("Talk.")

        async def stop() -> None:
            await gate.reached()
            await here.session.interrupt()

        tasks.start_soon(stop)
        end = await here.compact()

        assert isinstance(end, events.TurnAborted)
        assert [] == left(str(tmp_path / "gate.log"))
        here.model.instead()


@pytest.mark.parametrize(
    ("script", "warned"),
    [
        ("exit 3", "failed with exit code 3"),
        ("kill -9 $$", "failed with exit code -9"),
        ("head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1", "failed with exit code 1"),
        ("echo '{broken'", "cannot be read"),
        ("exec 0<&-; head -c 3000000 /dev/zero >&2", None),
        ("sleep 300 &", None),
    ],
)
async def test_hooks_that_break_change_nothing_and_are_told_of(tmp_path: Path, script: str, warned: str | None) -> None:
    hooks = {moment: (HookCommand(script),) for moment in MOMENTS}
    steps = [answer(call("shell", {"command": "echo 1"}, "c1")), answer(say("Done."))]
    async with stage(tmp_path, *steps, hooks=hooks) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert "1" in here.outputs()["c1"]
        assert (5 if warned else 0) == len(warnings(here))
        assert all(warned is not None and warned in text for text in warnings(here))


async def test_a_hook_that_takes_too_long_is_ended_and_the_turn_goes_on(tmp_path: Path) -> None:
    mark = str(tmp_path / "a-long-time")
    hook = HookCommand(("/bin/sh", "-c", "sleep 300; :", mark), timeout=0.1)
    async with stage(tmp_path, answer(say("Done.")), hooks={"user_prompt_submit": (hook,)}) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert ["A user_prompt_submit hook took more than 0.1 seconds and was ended."] == warnings(here)
        assert [] == left(mark)


async def test_a_program_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    async with stage(tmp_path, answer(say("Done.")), hooks={"stop": (HookCommand(("/no/such/program",)),)}) as here:
        assert isinstance(await here.run("Work."), events.TurnCompleted)
        assert "A stop hook cannot be started" in warnings(here)[0]


async def test_flooded_context_is_cut(tmp_path: Path) -> None:
    flood = HookCommand("head -c 3000000 /dev/zero | tr '\\0' x")
    async with stage(tmp_path, answer(say("Done.")), hooks={"session_start": (flood,)}) as here:
        await here.run("Work.")

        (text,) = [text for text in here.texts() if text.startswith("xxx")]
        assert len(text) < 41_000
        assert "characters left out" in text


async def test_what_is_left_at_the_end_is_recorded_though_its_hook_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_end, "_LONGEST", 3.0)

    async def steer(_: ToolInvocation, __: ToolContext) -> str:
        here.session.steer(user_input.text("late"))
        return "done"

    listener = Listener(tmp_path / "told")
    hangs = HookCommand(("/bin/sh", "-c", "grep -q late && sleep 300; :", str(tmp_path / "hang")))
    hooks = {"user_prompt_submit": (hangs,), "post_tool_use": (listener.says({"continue": False}),)}
    steps = [answer(call("steer", {}, "c1")), answer(say("Yes."))]
    async with stage(tmp_path, *steps, tools=[Doing("steer", steer)], hooks=hooks) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert [] == left(str(tmp_path / "hang"))
        here.model.instead()
        assert "late" in here.path.read_text("utf-8")
