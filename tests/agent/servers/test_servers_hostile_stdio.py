"""A hostile server on stdio: whatever it does, the turn goes on, others answer, and nothing of it is left."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import anyio
import pytest
from server_fixtures import PATIENCE, detail, hostile, left, opened, told

from commonplace.agent.servers import pool
from commonplace.agent.servers.tool_list import MOST_BYTES, MOST_TOOLS

GOOD = hostile("arguments", name="good")


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("hang-at-start", "was not ready within 1 seconds"),
        ("flood-at-start", "was not ready within 1 seconds"),
        ("crash-at-start", "(exit code 3); it said: no configuration found"),
        ("version", "protocol version"),
        ("list-types", "does not follow the protocol"),
        ("list-error", "no list [31mtoday"),
        ("values", "it sent more than 100000 values in one answer"),
    ],
)
async def test_a_server_that_cannot_be_started_is_a_warning_and_others_go_on(
    tmp_path: Path, behaviour: str, reason: str
) -> None:
    start = 1.0 if "1 seconds" in reason else PATIENCE
    async with opened(tmp_path, hostile(behaviour, name="bad", start=start), GOOD) as here:
        assert {"mcp__good__do", "mcp__good__ok"} == {*await here.offered()}
        assert 1 == len(here.warnings), here.warnings
        assert here.warnings[0].startswith("The MCP server bad cannot be used: ")
        assert reason in here.warnings[0]
        assert "fine" == told(await here.call("mcp__good__ok"))


async def test_a_command_that_does_not_exist_is_a_warning(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("ok", name="bad"), GOOD) as here:
        server = here.servers._servers[0]  # pyright: ignore[reportPrivateUsage]
        server.config = pool.ServerConfig("bad", pool.ServerCommand("no-such-program-anywhere"))

        assert {"mcp__good__do", "mcp__good__ok"} == {*await here.offered()}
        assert ["The MCP server bad cannot be used: it cannot be started: No such file or directory."] == here.warnings


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("hang-call", "did not answer within 1 seconds"),
        ("flood-forever", "did not answer within 1 seconds"),
        ("other-id", "did not answer within 1 seconds"),
        ("result-null", "did not answer within 1 seconds"),
        ("deaf", "did not answer within 1 seconds"),
        ("crash-call", "(exit code 7); it said: Traceback: the disk [2Jis full"),
        ("endless-line", "it sent a message of more than 16777216 bytes"),
        ("result-types", "does not follow the protocol"),
        ("many-mistakes", "does not follow the protocol"),
        ("many-values", "it sent more than"),
        ("error", "mmm"),
    ],
)
async def test_a_call_that_goes_wrong_gives_an_error_and_others_go_on(
    tmp_path: Path, behaviour: str, reason: str
) -> None:
    call = 1.0 if "1 seconds" in reason else PATIENCE
    async with opened(tmp_path, hostile(behaviour, name="bad", call=call), GOOD) as here:
        await here.offered()
        output = await here.call("mcp__bad__do")

        assert not output.ok
        assert reason in told(output)
        assert len(told(output)) < 5000
        assert told(output) == detail(output).error
        assert detail(output).result is None
        assert "fine" == told(await here.call("mcp__good__ok"))


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ("flood-then-answer", "after the flood"),
        ("garbage", "after the garbage"),
        ("stderr", "said it all"),
        ("asks-much", "asked"),
    ],
)
async def test_what_nobody_asked_for_is_dropped_in_bounded_memory(
    tmp_path: Path, behaviour: str, expected: str
) -> None:
    async with opened(tmp_path, hostile(behaviour, name="bad")) as here:
        await here.offered()
        tracemalloc.start()
        try:
            output = await here.call("mcp__bad__do")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert expected == told(output)
        assert peak < 4 * 2**20


async def test_a_flood_leaves_the_loop_to_others(tmp_path: Path) -> None:
    turns = 0
    async with opened(tmp_path, hostile("flood-forever", name="bad", call=1.0)) as here:
        await here.offered()
        async with anyio.create_task_group() as tasks:

            async def others() -> None:
                nonlocal turns
                while True:
                    await anyio.lowlevel.checkpoint()
                    turns += 1

            tasks.start_soon(others)
            await here.call("mcp__bad__do")
            tasks.cancel_scope.cancel()
    assert turns > 100


async def test_what_a_server_asks_of_us_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("asks", name="bad")) as here:
        await here.offered()
        heard = told(await here.call("mcp__bad__do"))

        assert [
            "sampling/createMessage: -32601",
            "elicitation/create: -32601",
            "roots/list: -32601",
            "ping: {}",
            "made/up: -32601",
        ] == heard.splitlines()


async def test_a_huge_result_is_cut_for_the_model_and_for_those_who_watch(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("huge", name="bad")) as here:
        await here.offered()
        output = await here.call("mcp__bad__do")

        assert "tokens truncated" in told(output)
        assert len(told(output)) < 41_000
        assert len(detail(output).content[0]["text"]) < 300_000


async def test_absurd_names_become_names_that_can_be_used_and_none_is_there_twice(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("names", name="bad"), hostile("names", name="bad_")) as here:
        tools = await here.offered()

        assert "mcp__bad__do" in tools
        assert all(len(key) <= 64 and key.replace("-", "_").isidentifier() and key.isascii() for key in tools)
        own = [tool.listed.name for tool in tools.values() if tool.server == "bad"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        assert len(own) == len({*own}) == 14  # pyright: ignore[reportUnknownArgumentType]
        assert len(tools) == 28
        expected = "2 tools whose name is taken, 3 tools without a usable name"
        assert f"The MCP server bad has tools that are not offered: {expected}." in here.warnings


async def test_too_many_tools_are_left_out(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("many-tools"), hostile("long-tools"), hostile("pages")) as here:
        tools = await here.offered()
        by_server = [key.split("__")[1] for key in tools]

        assert MOST_TOOLS == by_server.count("many-tools")
        assert MOST_BYTES // 8_100 <= by_server.count("long-tools") <= MOST_BYTES // 8_000
        assert 1 == by_server.count("pages")
        assert 3 == len(here.warnings)


async def test_schemas_are_offered_without_what_no_api_would_take(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("schemas", name="bad")) as here:
        tools = await here.offered()
        schemas = {key.removeprefix("mcp__bad__"): tool.definition.parameters for key, tool in tools.items()}

        assert {"$ref": "#"} == schemas["recursive"]["properties"]["next"]
        assert {"$ref": "#/$defs/node"} == schemas["recursive"]["$defs"]["node"]["properties"]["child"]
        assert {"type": "object", "properties": {"a": {}, "b": {}}} == schemas["elsewhere"]
        assert {"type": "object", "properties": {}} == schemas["huge"]
        assert str(schemas["deep"]).count("properties") < 30


async def test_all_that_comes_of_a_server_is_killed_also_what_left_its_session(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("children", name="bad")) as here:
        await here.offered()
        assert "started" == told(await here.call("mcp__bad__do"))
        assert 4 <= len(left(here.token))

        await here.servers.close()

        assert [] == left(here.token)


async def test_one_that_ignores_every_request_to_end_is_killed(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("stubborn", name="bad")) as here:
        await here.offered()

        assert 1 == len(left(here.token))


async def test_leaving_the_task_group_ends_servers_too(tmp_path: Path) -> None:
    async with opened(tmp_path, hostile("children", name="bad")) as here:
        async with anyio.create_task_group() as tasks:
            here.servers._tasks = tasks  # pyright: ignore[reportPrivateUsage]
            await here.offered()
            await here.call("mcp__bad__do")
            tasks.cancel_scope.cancel()

        assert [] == left(here.token)
        assert [] == here.warnings
