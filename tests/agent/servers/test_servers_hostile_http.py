"""A hostile server over HTTP: whatever it does, the turn goes on, and it gets nothing that was not meant for it."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hostile_http import Web, serving
from server_fixtures import PATIENCE, detail, opened, told

from commonplace.agent.servers.config import ServerAddress, ServerConfig
from commonplace.agent.servers.http_transport import MOST_RESUMED


@pytest.fixture
async def web() -> AsyncGenerator[Web]:
    async with serving() as running:
        yield running


def config(web: Web, behaviour: str, *, start: float = PATIENCE, call: float = PATIENCE) -> ServerConfig:
    return ServerConfig("bad", ServerAddress(web.url(behaviour)), start_seconds=start, call_seconds=call)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("start-hang", "was not ready within 1 seconds"),
        ("start-endless", "it sent more than 16777216 bytes"),
        ("start-401", "it answered with HTTP status 401"),
        ("start-garbage", "it cannot be reached"),
        ("start-bomb", "its answer is compressed"),
        ("start-redirect", "not followed"),
    ],
)
async def test_a_server_that_cannot_be_connected_to_is_a_warning(
    tmp_path: Path, web: Web, behaviour: str, reason: str
) -> None:
    start = 1.0 if "1 seconds" in reason else PATIENCE
    async with opened(tmp_path, config(web, behaviour, start=start)) as here:
        assert {} == await here.offered()
        assert 1 == len(here.warnings)
        assert here.warnings[0].startswith("The MCP server bad cannot be used: ")
        assert reason in here.warnings[0]


async def test_a_server_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    async with opened(tmp_path, ServerConfig("bad", ServerAddress("http://127.0.0.1:1/mcp"))) as here:
        assert {} == await here.offered()
        assert "it cannot be reached: ConnectError" in here.warnings[0]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("hang", "did not answer within 1 seconds"),
        ("hang-in-stream", "did not answer within 1 seconds"),
        ("endless-events", "did not answer within 1 seconds"),
        ("other-id", "did not answer within 1 seconds"),
        ("endless-json", "it sent more than"),
        ("endless-values", "it sent more than"),
        ("endless-event", "exceeded the 16777216 byte limit"),
        ("breaks-off", "ended without a response"),
        ("breaks-off-again", "reconnection attempts were exhausted"),
        ("bomb", "its answer is compressed"),
        ("garbage", "it cannot be reached"),
        ("redirect", "not followed"),
        ("loop", "not followed"),
        ("no-json", "Failed to parse JSON"),
        ("no-event", "Failed to parse SSE"),
        ("types", "does not follow the protocol"),
        ("status", "it answered with HTTP status 500"),
        ("accepted", "202"),
        ("page", "Unexpected content type"),
    ],
)
async def test_a_call_that_goes_wrong_gives_an_error_and_the_next_one_is_answered(
    tmp_path: Path, web: Web, behaviour: str, reason: str
) -> None:
    call = 1.0 if "1 seconds" in reason else PATIENCE
    async with opened(tmp_path, config(web, behaviour, call=call)) as here:
        await here.offered()
        output = await here.call("mcp__bad__do")

        assert not output.ok
        assert reason in told(output)
        assert len(told(output)) < 5000
        assert told(output) == detail(output).error
        assert "fine" == told(await here.call("mcp__bad__ok"))
        assert [] == here.warnings
    assert web.count()["GET"] <= MOST_RESUMED


@pytest.mark.parametrize(("behaviour", "expected"), [("notes", "after the flood"), ("asks", "asked")])
async def test_what_nobody_asked_for_is_dropped(tmp_path: Path, web: Web, behaviour: str, expected: str) -> None:
    async with opened(tmp_path, config(web, behaviour)) as here:
        await here.offered()

        assert expected == told(await here.call("mcp__bad__do"))


@pytest.mark.parametrize("behaviour", ["bomb", "endless-json", "endless-event"])
async def test_an_answer_without_end_takes_bounded_memory(tmp_path: Path, web: Web, behaviour: str) -> None:
    async with opened(tmp_path, config(web, behaviour)) as here:
        await here.offered()
        tracemalloc.start()
        try:
            await here.call("mcp__bad__do")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert peak < 100 * 2**20


async def test_a_server_that_forgot_the_session_is_connected_to_again_in_the_next_turn(
    tmp_path: Path, web: Web
) -> None:
    async with opened(tmp_path, config(web, "forgotten")) as here:
        await here.offered()
        assert "it does not know the session any more" in told(await here.call("mcp__bad__do"))

        await here.offered()

        assert "fine" == told(await here.call("mcp__bad__ok"))
        assert 1 == len(here.warnings)


async def test_a_session_is_ended_with_a_goodbye_that_nobody_has_to_take(tmp_path: Path, web: Web) -> None:
    async with opened(tmp_path, config(web, "hang-at-end")) as here:
        await here.offered()
        await here.servers.close()

        assert web.ended.is_set()


async def test_no_standing_stream_is_asked_for(tmp_path: Path, web: Web) -> None:
    async with opened(tmp_path, config(web, "notes")) as here:
        await here.offered()
        await here.call("mcp__bad__ok")

        assert 0 == web.count()["GET"]


async def test_headers_and_token_are_sent_from_the_variables_that_the_person_named(tmp_path: Path, web: Web) -> None:
    place = ServerAddress(web.url("notes"), "TOKEN", {"X-Own": "a"}, {"X-Var": "VAR", "X-Empty": "EMPTY"})
    given = {"TOKEN": "secret", "VAR": "b", "OPENAI_API_KEY": "never"}
    async with opened(tmp_path, ServerConfig("bad", place), environment=given) as here:
        await here.offered()

        for each in web.seen:
            sent = {name: each.headers.get(name) for name in ("authorization", "x-own", "x-var", "x-empty")}
            assert {"authorization": "Bearer secret", "x-own": "a", "x-var": "b", "x-empty": None} == sent
            assert "never" not in str(each.headers)


async def test_a_token_that_is_not_set_is_a_warning(tmp_path: Path, web: Web) -> None:
    async with opened(
        tmp_path, ServerConfig("bad", ServerAddress(web.url("notes"), "TOKEN")), environment={"A": "b"}
    ) as here:
        assert {} == await here.offered()
        assert "the variable TOKEN is not set" in here.warnings[0]
        assert [] == web.seen
