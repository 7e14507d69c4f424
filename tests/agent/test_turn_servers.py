"""Servers of tools in a session: offered, called, shown, noted as foreign; and what a bad one cannot do to a turn."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from uuid import uuid4

import anyio
import msgspec
import pytest
from consent_doubles import answering, warnings
from scripted_session import Model, Stage, stage
from server_fixtures import FOLDER, PATIENCE, hostile, left
from session_invariants import Json

import commonplace
from commonplace.agent import events, undo
from commonplace.agent.servers.config import ServerCommand, ServerConfig
from commonplace.agent.session_environment import IsolatedEnvironment
from commonplace.models.base import FunctionTool
from commonplace.models.scripted import answer, call, say

ENVIRONMENT = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-secret"}


def friend(token: str) -> ServerConfig:
    words = (str(FOLDER / "friendly.py"), "stdio", token)
    place = ServerCommand(sys.executable, words, {"PYTHONPATH": str(FOLDER.parent.parent)})
    return ServerConfig("friend", place, start_seconds=PATIENCE, call_seconds=PATIENCE)


def marked(config: ServerConfig, token: str) -> ServerConfig:
    assert isinstance(config.place, ServerCommand)
    args = tuple(token if word == "TOKEN" else word for word in config.place.args)
    return msgspec.structs.replace(config, place=msgspec.structs.replace(config.place, args=args))


PLAIN = hostile("arguments", name="plain", start=PATIENCE, call=PATIENCE)
"""A server without the SDK, which takes most of the time of a start: `ok` only reads, `do` may change something."""


def shown(here: Stage) -> list[events.McpToolCall]:
    return [item for item in here.completed() if isinstance(item, events.McpToolCall)]


def foreign(here: Stage) -> list[tuple[str, str | None]]:
    own = [line["payload"] for line in here.lines() if line["payload"].get("kind") == "external"]
    return [(each["source"], each.get("tool")) for each in own]


async def test_a_servers_tools_are_offered_called_shown_and_noted_as_foreign(tmp_path: Path) -> None:
    token = f"token-{uuid4().hex}"
    add = call("add", {"a": 40, "b": 2}, "c1", namespace="mcp__friend")
    write = call("write", {"path": "a"}, "c2", namespace="mcp__friend")
    steps = [answer(add, write), answer(say("42."))]
    async with stage(tmp_path, *steps, servers=(friend(token),), environment=IsolatedEnvironment(ENVIRONMENT)) as here:
        end = await here.run("Add.")

        assert isinstance(end, events.TurnCompleted)
        offered = [tool for tool in here.requests[0].tools if isinstance(tool, FunctionTool)]
        named = [tool.name for tool in offered if tool.namespace == "mcp__friend"]
        assert ["add", "write", "fail", "media", "weather"] == named
        first, second = shown(here)
        assert ("friend", "add", {"a": 40, "b": 2}, "completed") == (
            first.server,
            first.tool,
            first.arguments,
            first.status,
        )
        assert {"content": [{"type": "text", "text": "42"}], "structured_content": {"result": 42}} == first.result
        assert "completed" == second.status
        assert [("mcp", "mcp__friend__add"), ("mcp", "mcp__friend__write")] == foreign(here)
        assert "42" in str(here.outputs()["c1"])
        (line,) = [
            line["payload"]["item"] for line in here.lines() if line["payload"].get("item", {}).get("tool") == "add"
        ]
        assert ("McpToolCall", "completed", None) == (line["type"], line["status"], line["error"])
        assert left(token)
    assert [] == left(token)


@pytest.mark.parametrize(("tool", "kept"), [("ok", 0), ("do", 1)])
async def test_a_tool_that_only_reads_costs_no_snapshot_and_no_question(tmp_path: Path, tool: str, kept: int) -> None:
    steps = [answer(call(tool, {}, "c1", namespace="mcp__plain")), answer(say("So."))]
    async with stage(
        tmp_path,
        *steps,
        servers=(PLAIN,),
        environment=IsolatedEnvironment(ENVIRONMENT),
        sandbox="workspace-write",
        approval="untrusted",
    ) as here:
        asked = answering(here, "approved")
        await here.run("Work.")

        assert kept == len(asked) == len(undo.listed(here.home))
        assert [("call", "mcp", "plain", tool)] * kept == [(each.kind, *each.command[:3]) for each in asked]


async def test_a_refused_call_is_shown_as_declined(tmp_path: Path) -> None:
    steps = [answer(call("do", {}, "c1", namespace="mcp__plain")), answer(say("So."))]
    async with stage(
        tmp_path,
        *steps,
        servers=(PLAIN,),
        environment=IsolatedEnvironment(ENVIRONMENT),
        sandbox="workspace-write",
        approval="untrusted",
    ) as here:
        answering(here, "denied")
        await here.run("Work.")

        (item,) = shown(here)
        assert ("declined", None) == (item.status, item.result)
        assert "did not allow it" in here.outputs()["c1"]


@pytest.mark.parametrize(
    ("behaviour", "seconds", "told"),
    [
        ("hang-call", 0.2, "did not answer within 0.2 seconds"),
        ("crash-call", PATIENCE, "The server bad failed"),
        ("flood-forever", 0.5, "The server bad"),
        ("endless-line", PATIENCE, "The server bad failed"),
        ("garbage", PATIENCE, "Wall time"),
        ("huge", PATIENCE, "truncated"),
    ],
)
async def test_a_server_that_behaves_badly_hurts_no_turn(
    tmp_path: Path, behaviour: str, seconds: float, told: str
) -> None:
    token = f"token-{uuid4().hex}"
    bad = marked(hostile(behaviour, name="bad", call=seconds), token)
    steps = [answer(call("do", {}, "c1", namespace="mcp__bad")), answer(say("So.")), answer(say("Still here."))]
    async with stage(tmp_path, *steps, servers=(bad,), environment=IsolatedEnvironment(ENVIRONMENT)) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnCompleted)
        assert told in str(here.outputs()["c1"])
        assert 1 == len(shown(here))
        assert len(str(here.outputs()["c1"])) < 100_000
        assert isinstance(await here.run("And now?"), events.TurnCompleted)
    assert [] == left(token)


async def test_a_turn_is_interrupted_while_a_server_hangs(tmp_path: Path) -> None:
    token = f"token-{uuid4().hex}"
    bad = marked(hostile("hang-call", name="bad"), token)
    steps = [answer(call("do", {}, "c1", namespace="mcp__bad"))]
    async with (
        stage(tmp_path, *steps, servers=(bad,), environment=IsolatedEnvironment(ENVIRONMENT)) as here,
        anyio.create_task_group() as tasks,
    ):

        async def stop() -> None:
            await here.until(events.ItemStarted)
            await here.session.interrupt()

        tasks.start_soon(stop)
        end = await here.run("Work.")

        assert isinstance(end, events.TurnAborted)
        (item,) = shown(here)
        assert "failed" == item.status
    assert [] == left(token)


async def test_a_server_that_is_required_and_missing_fails_the_turn_clearly(tmp_path: Path) -> None:
    missing = ServerConfig("db", ServerCommand("/no/such/program"), required=True)
    async with stage(tmp_path, servers=(missing,), environment=IsolatedEnvironment(ENVIRONMENT)) as here:
        end = await here.run("Work.")

        assert isinstance(end, events.TurnFailed)
        assert "the server db is required and did not start" in end.error.message
        assert "The MCP server db cannot be used: it cannot be started: No such file or directory." in warnings(here)


async def test_a_server_that_is_not_there_is_told_of_and_missed_by_nobody(tmp_path: Path) -> None:
    missing = ServerConfig("db", ServerCommand("/no/such/program"))
    async with stage(
        tmp_path, answer(say("So.")), servers=(missing,), environment=IsolatedEnvironment(ENVIRONMENT)
    ) as here:
        assert isinstance(await here.run("Work."), events.TurnCompleted)
        assert 1 == len(warnings(here))


async def test_a_turn_can_be_interrupted_while_a_server_starts(tmp_path: Path) -> None:
    token = f"token-{uuid4().hex}"
    slow = marked(hostile("hang-at-start", name="slow"), token)
    async with (
        stage(tmp_path, servers=(slow,), environment=IsolatedEnvironment(ENVIRONMENT)) as here,
        anyio.create_task_group() as tasks,
    ):

        def hear(event: events.Event) -> None:
            if isinstance(event, events.TurnStarted):
                tasks.start_soon(here.session.interrupt)

        here.listeners.append(hear)
        end = await here.run("Work.")

        assert isinstance(end, events.TurnAborted)
    assert [] == left(token)


class Told(IsolatedEnvironment):
    """Hears of what comes in from outside."""

    def __init__(self) -> None:
        super().__init__(ENVIRONMENT)
        self.told: list[str] = []

    def external(self, thread_id: str) -> None:
        self.told.append(thread_id)


async def test_the_rest_of_the_program_hears_once_in_a_turn_that_something_came_from_outside(tmp_path: Path) -> None:
    outside = Told()
    first, second, third = (call("ok", {}, f"c{number}", namespace="mcp__plain") for number in range(3))
    steps = [answer(first, second), answer(say("42.")), answer(say("Nothing.")), answer(third), answer(say("42."))]
    async with stage(tmp_path, *steps, servers=(PLAIN,), environment=outside) as here:
        await here.run("Add.")
        assert [here.session.thread_id] == outside.told
        await here.run("Think.")
        assert [here.session.thread_id] == outside.told
        await here.run("Add again.")

    assert [here.session.thread_id] * 2 == outside.told


ITEMS: dict[str, Json] = {
    "tool_search": {"type": "tool_search_call", "call_id": "t1", "execution": "server", "arguments": {}},
    "unasked": {"type": "function_call_output", "output": "a page"},
}


@pytest.mark.parametrize("source", ITEMS)
async def test_what_else_the_models_server_brings_in_is_noted_as_foreign(tmp_path: Path, source: str) -> None:
    outside = Told()
    async with stage(tmp_path, answer(ITEMS[source], say("Found.")), environment=outside) as here:
        await here.run("Search.")

        assert [(source, None)] == foreign(here)
        assert [here.session.thread_id] == outside.told


async def test_a_search_by_the_models_server_is_noted_as_foreign(tmp_path: Path) -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    async with stage(tmp_path, answer(search, say("Found."))) as here:
        await here.run("Search.")

        assert [("web_search", None)] == foreign(here)
        (item,) = [item for item in here.completed() if isinstance(item, events.WebSearch)]
        assert "x" == item.query


async def test_servers_of_the_settings_are_offered_and_do_not_get_our_keys(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    home.mkdir()
    (home / "config.toml").write_text(
        f'[mcp_servers.around]\ncommand = "{sys.executable}"\n'
        f'args = ["{FOLDER / "hostile_stdio.py"}", "environment"]\nstartup_timeout_sec = 100\n'
    )
    (tmp_path / "project").mkdir()
    steps = [answer(call("do", {}, "c1", namespace="mcp__around")), answer(say("So."))]
    async with Model(*steps) as model, commonplace.open() as book:
        thread = await book.start(cwd=tmp_path / "project", speaker=model, sandbox="read-only")
        await thread.turn("Look around.")

        offered = [tool for tool in model.requests[0].tools if isinstance(tool, FunctionTool)]
        assert ["do", "ok"] == [tool.name for tool in offered if tool.namespace == "mcp__around"]
        assert b"PATH" in model.requests[1].input[-1]
        assert b"sk-secret" not in model.requests[1].input[-1]
