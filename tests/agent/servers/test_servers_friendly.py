"""Real servers, made with the official SDK: the same talk over pipes and over HTTP, with streams and with JSON."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from server_fixtures import FOLDER, PATIENCE, detail, opened, told

from commonplace.agent.servers.config import ServerAddress, ServerCommand, ServerConfig
from pictures import png, url

PROGRAM = str(FOLDER / "friendly.py")
TESTS = str(FOLDER.parent.parent)


@contextmanager
def served(*options: str) -> Generator[str]:
    """Start a server that is reached over HTTP; give its address."""
    words = [sys.executable, PROGRAM, "http", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": TESTS}) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.kill()


@pytest.fixture(scope="module")
def streaming() -> Generator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def plain() -> Generator[str]:
    with served("json") as address:
        yield address


@pytest.fixture(params=["stdio", "http", "http-json"])
def friend(request: pytest.FixtureRequest) -> ServerConfig:
    if request.param == "stdio":
        command = ServerCommand(sys.executable, (PROGRAM, "stdio"), {"PYTHONPATH": TESTS})
        return ServerConfig("friend", command, start_seconds=PATIENCE)
    address = str(request.getfixturevalue("streaming" if request.param == "http" else "plain"))
    return ServerConfig("friend", ServerAddress(address), start_seconds=PATIENCE)


async def test_the_tools_of_a_real_server_are_offered_and_can_be_called(tmp_path: Path, friend: ServerConfig) -> None:
    async with opened(tmp_path, friend) as here:
        tools = await here.offered()

        assert ["add", "write", "fail", "media", "weather"] == [tool.definition.name for tool in tools.values()]
        add = tools["mcp__friend__add"]
        assert "mcp__friend" == add.definition.namespace
        assert "Add two numbers." == add.definition.description
        assert {"a", "b"} == {*add.definition.parameters["properties"]}
        assert (True, False) == (add.parallel, add.mutates)
        output = await here.call("mcp__friend__add", {"a": 40, "b": 2})
        assert output.ok
        assert isinstance(output.content, list)
        assert str(output.content[0]["text"]).startswith("Wall time: ")
        assert "42" == told(output)
        assert {"result": 42} == detail(output).structured_content
        assert [{"type": "text", "text": "42"}] == detail(output).content
        (asked,) = here.asked
        assert ("call", True, {"a": 40, "b": 2}) == (asked.kind, asked.read_only, asked.arguments)
        assert [] == here.warnings


async def test_a_call_that_cannot_be_done_says_why(tmp_path: Path, friend: ServerConfig) -> None:
    async with opened(tmp_path, friend) as here:
        await here.offered()
        output = await here.call("mcp__friend__fail")

        assert not output.ok
        assert "it does not work" in told(output)
        assert "it does not work" in str(detail(output).error)
        assert "it does not work" in str(detail(output).result)

        assert not (await here.call("mcp__friend__add", {"a": "x"})).ok
        assert "no JSON" in told(await here.call("mcp__friend__add", "{"))
        assert "must be a JSON object" in told(await here.call("mcp__friend__add", "[1]"))


async def test_pictures_go_to_the_model_and_other_media_are_told_of(tmp_path: Path, friend: ServerConfig) -> None:
    async with opened(tmp_path, friend) as here:
        await here.offered()
        output = await here.call("mcp__friend__media")

        assert isinstance(output.content, list)
        pictures = [part for part in output.content if part["type"] == "input_image"]
        assert [{"type": "input_image", "image_url": url(png(3, 2)), "detail": "auto"}] == pictures
        assert [
            "first",
            "input_image",
            "[image left out: image/png, no picture that can be shown, or one too many]",
            "[audio left out: audio/wav, 6 bytes]",
            "[resource a link: note://two]",
            "[resource note://one]",
            "a note",
        ] == told(output).splitlines()


async def test_a_tool_that_may_change_something_is_asked_about(tmp_path: Path, friend: ServerConfig) -> None:
    async with opened(tmp_path, friend) as here:
        await here.offered()
        assert "wrote a.txt" == told(await here.call("mcp__friend__write", {"path": "a.txt"}))
        refused = await here.call("mcp__friend__write", {"path": "b.txt"}, refuse="not today")

        assert ("mcp", "friend", "write", '{"path":"a.txt"}') == here.asked[0].command
        assert ("call", False) == (here.asked[0].kind, here.asked[0].read_only)
        assert "mcp__friend__write was not called: not today" == told(refused)
        assert not refused.ok
        assert refused.detail is None


async def test_only_the_tools_that_the_person_wants_are_offered(tmp_path: Path, friend: ServerConfig) -> None:
    chosen = msgspec.structs.replace(
        friend, enabled_tools=frozenset({"add", "fail"}), disabled_tools=frozenset({"fail"})
    )
    async with opened(tmp_path, chosen) as here:
        assert {"mcp__friend__add"} == {*await here.offered()}
