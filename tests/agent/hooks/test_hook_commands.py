"""Hooks as real commands: what they are told, and that none of them can hold a session up."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from commonplace.agent.hooks.config import HookAnswer, HookCommand
from commonplace.agent.hooks.runner import MOST_BYTES, HookRunner
from commonplace.agent.tools.process_table import group_members

pytestmark = pytest.mark.anyio
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}


def _runner(tmp_path: Path, *hooks: HookCommand) -> HookRunner:
    return HookRunner({"pre_tool_use": hooks}, tmp_path, ENVIRONMENT)


async def test_a_hook_is_told_what_happens_as_json_on_stdin(tmp_path: Path) -> None:
    runner = _runner(tmp_path, HookCommand("cat > told.json"))
    assert await runner.ask("pre_tool_use", "shell", tool_name="shell", tool_input={"command": "ls"}) == HookAnswer()
    told = msgspec.json.decode((tmp_path / "told.json").read_bytes())
    assert told == {
        "hook_event_name": "PreToolUse",
        "cwd": str(tmp_path),
        "tool_name": "shell",
        "tool_input": {"command": "ls"},
    }


async def test_a_hook_that_reads_nothing_is_no_problem(tmp_path: Path) -> None:
    runner = _runner(tmp_path, HookCommand("exit 0"))
    assert await runner.ask("pre_tool_use", big="x" * 2_000_000) == HookAnswer()


async def test_only_hooks_that_match_are_asked(tmp_path: Path) -> None:
    runner = _runner(tmp_path, HookCommand("exit 2", "apply_patch"))
    assert await runner.ask("pre_tool_use", "shell") == HookAnswer()
    assert (await runner.ask("pre_tool_use", "apply_patch")).refused is not None
    assert runner.has("pre_tool_use")
    assert not runner.has("stop")


async def test_hooks_of_a_moment_run_side_by_side_and_answer_in_order(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    # The first can end only if the second runs meanwhile.
    first = HookCommand('cat pipe >/dev/null; echo \'{"additionalContext": "first"}\'')
    second = HookCommand('echo go > pipe; echo \'{"additionalContext": "second"}\'')
    answer = await _runner(tmp_path, first, second).ask("pre_tool_use")
    assert answer.context == ("first", "second")


async def test_a_hook_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    runner = _runner(tmp_path, HookCommand("echo $$ > group; sleep 1000 & wait", timeout=2))
    answer = await runner.ask("pre_tool_use")
    assert answer.refused is None
    assert "took more than 2 seconds" in answer.errors[0]
    assert group_members(int((tmp_path / "group").read_text())) == []


async def test_what_a_hook_leaves_behind_does_not_hold_it_open(tmp_path: Path) -> None:
    runner = _runner(tmp_path, HookCommand("sleep 1000 & exit 2"))
    assert (await runner.ask("pre_tool_use")).refused is not None


async def test_a_hook_that_floods_is_read_in_bounded_memory(tmp_path: Path) -> None:
    script = f"import sys; sys.stderr.write('x' * {3 * MOST_BYTES}); sys.exit(2)"
    answer = await _runner(tmp_path, HookCommand((sys.executable, "-c", script))).ask("pre_tool_use")
    assert answer.refused is not None
    assert len(answer.refused) == MOST_BYTES


@pytest.mark.parametrize("command", [("/no/such/program",), "exit 127"])
async def test_a_hook_that_cannot_run_is_a_warning(tmp_path: Path, command: str | tuple[str, ...]) -> None:
    answer = await _runner(tmp_path, HookCommand(command)).ask("pre_tool_use")
    assert answer.refused is None
    assert answer.errors


async def test_cancelling_ends_the_hook(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "me")
    runner = _runner(tmp_path, HookCommand("echo $$ > me; exec sleep 1000"))
    leader = 0
    async with anyio.create_task_group() as group:
        group.start_soon(runner.ask, "pre_tool_use")
        leader = int(await anyio.Path(tmp_path / "me").read_text())
        assert group_members(leader)
        group.cancel_scope.cancel()
    assert group_members(leader) == []
