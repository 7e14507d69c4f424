"""The lives of servers: begun when needed, begun again when they died, ended from anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import msgspec
from server_fixtures import detail, hostile, left, opened, told

from commonplace.agent.servers.pool import MOST_STARTS
from waiting import until


async def test_nothing_is_started_before_tools_are_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("arguments", name="a")) as here:
        await anyio.lowlevel.checkpoint()

        assert [] == left(here.token)


async def test_a_server_that_is_not_enabled_is_never_started(tmp_path: Path) -> None:
    config = msgspec.structs.replace(hostile("crash-at-start"), enabled=False)
    async with opened(tmp_path, config) as here:
        assert {} == await here.offered()
        assert [] == here.warnings


def test_the_sdk_is_imported_by_nobody_who_has_no_server() -> None:
    program = """
import anyio, sys
from pathlib import Path
from commonplace.agent.servers.pool import Servers
from commonplace.agent.servers.config import ServerCommand, ServerConfig, configured
async def main():
    async with anyio.create_task_group() as tasks:
        servers = Servers([ServerConfig("a", ServerCommand("x"), enabled=False)], Path(), {}, tasks, print)
        assert [] == await servers.tools()
        await servers.close()
anyio.run(main)
assert not {"mcp", "mcp_types", "pydantic", "httpx2"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)


async def test_a_server_lives_on_between_turns(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("arguments", name="a")) as here:
        first = await here.offered()
        before = left(here.token)
        second = await here.offered()

        assert [*first] == [*second]
        assert before == left(here.token)
        assert 1 == len(before)


async def test_a_server_that_died_in_a_call_is_there_again_in_the_next_turn(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("crash-once", str(tmp_path / "died"), name="a")) as here:
        await here.offered()
        assert not (await here.call("mcp__a__do")).ok
        again = await here.call("mcp__a__do")
        assert "is not running" in told(again)

        await here.offered()

        assert "born again" == told(await here.call("mcp__a__do"))
        assert ["The MCP server a stopped: it ended the connection (exit code 1)."] == here.warnings


async def test_a_server_that_dies_between_calls_is_there_again_in_the_next_turn(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("parting", name="a")) as here:
        for _ in range(2):
            await here.offered()
            assert "and now I go" == told(await here.call("mcp__a__do"))
            state = here.servers._servers[0]._state  # pyright: ignore[reportPrivateUsage]
            assert state is not None
            await state.ended.wait()


async def test_a_server_that_always_dies_is_left_alone_after_a_few_times(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("crash-at-start", name="a")) as here:
        for _ in range(MOST_STARTS + 3):
            assert {} == await here.offered()

        assert 2 == len(here.warnings)
        assert "left alone for the rest of the session" in here.warnings[1]


async def test_a_server_that_stops_answering_is_ended(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("hang-call", name="a", call=0.2)) as here:
        await here.offered()
        for _ in range(3):
            assert "did not answer within" in told(await here.call("mcp__a__do"))

        assert "is not running" in told(await here.call("mcp__a__do"))
        await here.offered()
        assert ["The MCP server a stopped: it stopped answering."] == here.warnings


async def test_tools_that_changed_are_listed_again_in_the_next_turn(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("changed", name="a")) as here:
        assert "mcp__a__do" in await here.offered()
        await here.call("mcp__a__do")

        assert {"mcp__a__new", "mcp__a__ok"} == {*await here.offered()}


async def test_servers_start_at_the_same_time(tmp_path: Path) -> None:
    slow = [hostile("hang-at-start", name=f"slow{number}") for number in range(5)]
    async with opened(tmp_path, *slow) as here, anyio.create_task_group() as tasks:
        tasks.start_soon(here.offered)
        await until(lambda: len(left(here.token)) == len(slow))

        await here.servers.close()


async def test_close_ends_servers_that_are_still_starting(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("hang-at-start", name="slow")) as here, anyio.create_task_group() as tasks:
        tasks.start_soon(here.offered)
        await until(lambda: bool(left(here.token)))

        await here.servers.close()

        assert [] == left(here.token)
        assert [] == here.warnings


async def test_servers_can_be_closed_from_another_task_while_a_call_runs(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("hang-call", name="a")) as here:
        await here.offered()
        outputs: list[str] = []

        async def call() -> None:
            outputs.append(told(await here.call("mcp__a__do")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(here.servers.close)

        assert 1 == len(outputs)
        assert "The server a failed" in outputs[0]
        assert {} == await here.offered()


async def test_an_interrupt_ends_a_call_at_once_and_the_server_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("arguments", name="a"), hostile("hang-call", name="b")) as here:
        await here.offered()
        scope = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:

            async def interrupt() -> None:
                await anyio.lowlevel.checkpoint()
                scope.cancel()

            tasks.start_soon(interrupt)
            assert "aborted" == told(await here.call("mcp__b__do", scope=scope))

        assert "fine" == told(await here.call("mcp__a__ok"))
        assert [] == here.warnings


async def test_a_server_that_is_required_and_not_there_is_named(tmp_path: Path) -> None:
    config = msgspec.structs.replace(hostile("crash-at-start", name="a"), required=True)
    async with opened(tmp_path, config, hostile("arguments", name="b")) as here:
        await here.offered()

        assert ("a",) == here.servers.missing()


async def test_a_server_gets_no_variable_that_it_has_no_use_for(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "OPENAI_API_KEY": "sk-1", "DEEP_SECRET": "2", "GIVEN": "3"}
    config = hostile("environment", name="a")
    place = msgspec.structs.replace(config.place, env={"OWN": "4"}, env_vars=("GIVEN", "UNSET"))
    async with opened(tmp_path, msgspec.structs.replace(config, place=place), environment=environment) as here:
        await here.offered()
        output = await here.call("mcp__a__do")

        given = msgspec.json.decode(detail(output).content[0]["text"], type=dict[str, str])
        given.pop("COMMONPLACE_SERVER_MARK")
        given.pop("LC_CTYPE", None)
        assert {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "GIVEN": "3", "OWN": "4"} == given
