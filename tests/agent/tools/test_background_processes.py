"""Commands that go on in the background: asked for, written to, ended by their number."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from commonplace.agent.tools import processes as running
from commonplace.agent.tools.process_table import group_members
from commonplace.agent.tools.processes import Launch, Processes, RunningCommand
from commonplace.agent.tools.registry import Registry, ToolContext, ToolInvocation, ToolOutput
from commonplace.agent.tools.shell import Shell
from commonplace.errors import ToolError
from waiting import until

Run = Callable[..., Awaitable[ToolOutput]]
LONG = 60_000
"""As long as it takes; what is waited for comes at once."""


async def _until(run: Run, number: int, text: str, **more: Any) -> str:
    """Ask until a process has printed something."""
    heard = ""
    while text not in heard:
        output = await run("process", {"id": number, "wait_ms": LONG, **more})
        heard += str(output.content)
        more = {}
    return heard


async def test_a_process_is_written_to_and_ends_with_its_input(run: Run) -> None:
    started = await run("shell", {"command": "cat; echo over", "background": True})

    assert started.process == 1
    assert str(started.content).endswith("[still running as process 1]")
    assert "hello" in await _until(run, 1, "hello", input="hello\n")
    ended = await run("process", {"id": 1, "close_input": True, "wait_ms": LONG})
    assert (True, 0, None) == (ended.ok, ended.exit_code, ended.process)
    assert str(ended.content).endswith("Output:\nover\n")


async def test_a_process_that_was_told_of_is_forgotten(run: Run) -> None:
    await run("shell", {"command": "cat", "background": True})
    await run("process", {"id": 1, "close_input": True, "wait_ms": LONG})

    again = await run("process", {"id": 1})

    assert not again.ok
    assert "there is no process 1; those known: none" in str(again.content)


async def test_what_another_agent_calls_it_works_too(run: Run) -> None:
    await run("exec_command", {"cmd": "cat", "background": True})

    output = await run("write_stdin", {"session_id": 1, "chars": "hi\n", "yield_time_ms": LONG})

    assert "hi" in str(output.content)


async def test_each_answer_tells_only_what_is_new(run: Run) -> None:
    await run("shell", {"command": "cat", "background": True})
    await _until(run, 1, "one", input="one\n")

    heard = await _until(run, 1, "two", input="two\n")

    assert "one" not in heard


async def test_a_command_that_takes_longer_than_the_call_waits_goes_on(run: Run) -> None:
    output = await run("shell", {"command": "echo up; sleep 1000", "yield_time_ms": 0})

    assert 1 == output.process
    ended = await run("process", {"id": 1, "end": True})
    assert 143 == ended.exit_code


async def test_a_process_is_ended_with_all_its_children(run: Run, processes: Processes) -> None:
    await run("shell", {"command": "(trap '' TERM; sleep 1000) & echo ready; wait", "background": True})
    group = processes.find(1).group

    output = await run("process", {"id": 1, "end": True})

    assert [] == group_members(group)
    assert output.process is None


async def test_a_process_is_interrupted(run: Run) -> None:
    script = "trap 'echo caught; exit 5' INT; sleep 1000 >/dev/null 2>&1 & echo ready; wait"
    started = await run("shell", {"command": script, "background": True})
    if "ready" not in str(started.content):
        await _until(run, 1, "ready")

    output = await run("process", {"id": 1, "input": "\x03", "wait_ms": 2000})
    while output.process is not None:  # a shell that was just about to wait does not hear it
        output = await run("process", {"id": 1, "input": "\x03", "wait_ms": 2000})

    assert 5 == output.exit_code


async def test_a_process_is_interrupted_although_this_one_ignores_it(run: Run) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        await test_a_process_is_interrupted(run)
    finally:
        signal.signal(signal.SIGINT, before)


async def test_what_the_leader_leaves_goes_on_while_it_holds_the_output(run: Run, processes: Processes) -> None:
    started = await run("shell", {"command": "sleep 1000 & echo left", "background": True})

    assert 1 == started.process
    left = processes.find(1)
    await until(lambda: 1 == len(group_members(left.group)))  # the leader has ended
    assert not left.ended.is_set()


async def test_a_process_in_the_background_is_ended_when_its_time_is_over(run: Run) -> None:
    output = await run("shell", {"command": "echo up; sleep 1000", "background": True, "timeout_ms": 100})
    while output.process is not None:
        output = await run("process", {"id": 1, "wait_ms": LONG})

    assert 124 == output.exit_code


async def test_leaving_the_session_ends_everything(folder: Path) -> None:
    groups: list[int] = []
    async with Processes() as processes:
        for _ in range(3):
            started = processes.start(Launch(("sh", "-c", "sleep 1000 & echo up; wait"), folder, {}, background=True))
            await started.settled(0)
            groups.append(started.group)

    assert [[], [], []] == [group_members(group) for group in groups]


async def test_a_session_that_ended_starts_nothing(folder: Path) -> None:
    processes = Processes()
    async with processes:
        pass

    with pytest.raises(ToolError, match="has ended"):
        processes.start(Launch(("true",), folder, {}))


async def test_there_is_a_bound_on_how_many_run(
    processes: Processes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST", 2)
    first = processes.start(Launch(("cat",), folder, {"PATH": "/bin:/usr/bin"}, background=True))
    processes.start(Launch(("cat",), folder, {"PATH": "/bin:/usr/bin"}, background=True))

    with pytest.raises(ToolError, match="2 processes are running"):
        processes.start(Launch(("true",), folder, {}))

    await first.end()
    processes.start(Launch(("cat",), folder, {"PATH": "/bin:/usr/bin"}, background=True))


async def test_a_cancelled_question_does_not_end_the_process(run: Run, processes: Processes) -> None:
    await run("shell", {"command": "cat", "background": True})

    with anyio.CancelScope() as scope:
        scope.cancel()
        await run("process", {"id": 1, "wait_ms": LONG})

    assert not processes.find(1).ended.is_set()


async def test_a_process_that_takes_no_input_is_told_of(run: Run) -> None:
    await run("shell", {"command": "sleep 1000", "yield_time_ms": 0})

    output = await run("process", {"id": 1, "input": "hello\n"})

    assert "the input of process 1 is closed" in str(output.content)


async def test_what_left_the_group_and_holds_the_output_is_not_waited_for(run: Run) -> None:
    script = "import os, time\nif os.fork() == 0:\n os.setsid()\n print(os.getpid(), flush=True)\n time.sleep(1000)"
    started = await run("shell", {"command": ["python3", "-c", script], "background": True})
    heard = started.command_output.text() if started.command_output is not None else ""
    while not heard.strip():
        more = await run("process", {"id": 1, "wait_ms": LONG})
        heard = more.command_output.text() if more.command_output is not None else ""

    try:
        output = await run("process", {"id": 1, "end": True})
    finally:
        os.kill(int(heard), signal.SIGKILL)

    assert 0 == output.exit_code


async def test_an_error_in_a_session_comes_out_as_it_is(folder: Path) -> None:
    async def session() -> None:
        async with Processes() as processes:
            processes.start(Launch(("sleep", "1000"), folder, {"PATH": "/bin:/usr/bin"}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await session()


async def test_input_that_nobody_reads_does_not_hold_the_call(run: Run) -> None:
    await run("shell", {"command": "sleep 1000", "background": True})

    output = await run("process", {"id": 1, "input": "x" * 1_000_000, "wait_ms": 0})

    assert "of its input unread; they are not sent" in str(output.content)


async def test_a_process_that_ends_while_it_is_written_to_is_told_of(run: Run, processes: Processes) -> None:
    await run("shell", {"command": "sleep 1000", "background": True})
    outputs: list[ToolOutput] = []

    async def write() -> None:
        outputs.append(await run("process", {"id": 1, "input": "x" * 1_000_000, "wait_ms": LONG}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        await processes.find(1).end()

    assert "takes no input any more" in str(outputs[0].content)


class Watched(Processes):
    """Remembers the groups of what it started."""

    def __init__(self, groups: list[int]) -> None:
        super().__init__()
        self._groups = groups

    def start(self, launch: Launch) -> RunningCommand:
        started = super().start(launch)
        self._groups.append(started.group)
        return started


@pytest.mark.parametrize("how", ["call", "task", "session"])
async def test_cancelling_after_any_number_of_steps_leaves_no_process(
    how: str, surrounded: Callable[..., ToolContext]
) -> None:
    command = json.dumps({"command": "sleep 1000 & sleep 1000 & echo up; wait"})
    groups: list[int] = []

    async def session(context: ToolContext, scopes: dict[str, anyio.CancelScope]) -> None:
        with scopes["session"]:
            async with Watched(groups) as processes:
                with scopes["task"]:
                    await Registry([Shell(processes)]).run(ToolInvocation("1", "shell", command), context)

    for steps in range(25):
        context = surrounded()
        scopes = {"call": context.scope, "task": anyio.CancelScope(), "session": anyio.CancelScope()}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session, context, scopes)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            scopes[how].cancel()

    assert [] == [group for group in groups if group_members(group)]
    assert groups
