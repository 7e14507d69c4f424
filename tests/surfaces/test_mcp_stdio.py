"""`commonplace mcp` on stdin and stdout: the life of a session, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from talking import INITIALIZE, PROGRAM, Talk, checkout, teach

import processes
from commonplace.surfaces.mcp import stdio

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@pytest.mark.parametrize("version", HANDSHAKES)
def test_a_version_that_is_known_is_spoken(version: str) -> None:
    with Talk() as talk:
        answer = talk.request("initialize", {**INITIALIZE, "protocolVersion": version})["result"]

    assert answer["protocolVersion"] == version
    assert answer["serverInfo"]["name"] == "commonplace"
    assert set(answer["capabilities"]) == {"tools", "resources"}
    assert "find" in answer["instructions"]


@pytest.mark.parametrize("version", ["1999-01-01", "", "2026-07-28", "latest"])
def test_for_a_version_that_is_not_known_the_newest_is_offered(version: str) -> None:
    with Talk() as talk:
        answer = talk.request("initialize", {**INITIALIZE, "protocolVersion": version})

    assert answer["result"]["protocolVersion"] == "2025-11-25"


def test_nothing_is_opened_before_a_tool_is_called(home: Path) -> None:
    with Talk() as talk:
        talk.begin()
        talk.request("ping")

    assert not home.exists()


def test_a_ping_is_answered_before_the_session_begins() -> None:
    with Talk() as talk:
        assert talk.request("ping")["result"] == {}


def test_other_requests_wait_for_the_beginning() -> None:
    with Talk() as talk:
        assert talk.request("tools/list")["error"]["code"] == -32600


def test_a_session_begins_once() -> None:
    with Talk() as talk:
        talk.begin()

        assert talk.request("initialize", INITIALIZE)["error"]["code"] == -32600
        assert talk.request("ping")["result"] == {}


@pytest.mark.parametrize(
    "params",
    [{}, {"protocolVersion": 5}, {"protocolVersion": "2025-11-25", "capabilities": []}, {"protocolVersion": None}],
)
def test_a_beginning_that_says_nothing_is_refused(params: dict[str, object]) -> None:
    with Talk() as talk:
        assert talk.request("initialize", params)["error"]["code"] == -32602
        assert talk.begin()["protocolVersion"] == "2025-11-25"


def test_what_is_sent_before_the_end_is_answered_after_it(home: Path) -> None:
    teach(home)
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list"}},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"queries": ["a"]}},
        },
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
    ]
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    done = processes.run(["mcp"], given=lines, text=True)

    assert done.returncode == 0
    assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {1, 2, 3, 4}


def test_the_last_line_needs_no_end() -> None:
    with Talk() as talk:
        talk.write(b'{"jsonrpc":"2.0","id":7,"method":"ping"}')
        assert talk.end() == 0

    assert json.loads(talk.rest) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_order(number: signal.Signals) -> None:
    with Talk() as talk:
        talk.begin()
        talk.process.send_signal(number)
        code = talk.process.wait(100)

    assert code == 0
    assert talk.stderr == ""


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_loop_that_ends_while_lines_wait_ends_the_reader_quietly(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    incoming, outgoing = os.pipe()

    async def nobody_takes_them() -> None:
        with stdio.LineReader(incoming):
            os.write(outgoing, b"a line that nobody takes\n" * count)
            for _ in range(100):
                await anyio.lowlevel.checkpoint()

    anyio.run(nobody_takes_them)
    os.close(outgoing)
    for thread in threading.enumerate():
        if thread.name == "line-reader":
            thread.join(100)
            assert not thread.is_alive()
    os.close(incoming)

    # What the thread did not expect would be a warning, and warnings are errors; what asyncio minds, it logs.
    assert caplog.records == []


def test_a_client_that_goes_away_ends_the_server() -> None:
    with Talk() as talk:
        talk.begin()
        assert talk.process.stdout is not None
        talk.process.stdout.close()
        talk.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        code = talk.process.wait(100)

    assert code == 0


def test_a_line_that_is_too_long_is_refused_with_its_id() -> None:
    with Talk() as talk:
        talk.begin()
        talk.write(b'{"jsonrpc":"2.0","id":9,"method":"' + b"x" * (17 * 1024 * 1024) + b'"}\n')

        refused = talk.receive()
        assert (refused["id"], refused["error"]["code"]) == (9, -32600)
        assert talk.request("ping")["result"] == {}


def test_a_batch_is_answered_with_a_batch_where_the_version_has_them() -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/nothing"},
        {"jsonrpc": "2.0", "id": 2, "method": "nothing"},
        7,
    ]
    with Talk() as talk:
        talk.request("initialize", {**INITIALIZE, "protocolVersion": "2025-03-26"})
        talk.send(batch)
        answers = talk.receive()
        talk.send([{"jsonrpc": "2.0", "method": "notifications/nothing"}])
        assert talk.request("ping")["result"] == {}

    assert [answer["id"] for answer in answers] == [1, 2, None]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32601, -32600]


def test_a_batch_is_refused_where_the_version_has_none() -> None:
    with Talk() as talk:
        talk.begin()
        talk.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])

        assert talk.receive()["error"]["code"] == -32600


def test_settings_that_cannot_be_used_become_the_answer(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("model = 3", "utf-8")
    with Talk() as talk:
        talk.begin()
        result = talk.call("list")
        assert talk.request("ping")["result"] == {}

    assert result["isError"] is True
    assert "config.toml" in result["content"][0]["text"]


def test_a_database_that_is_broken_costs_no_answer(home: Path) -> None:
    teach(home)
    for file in home.glob("state.sqlite*"):
        file.unlink()
    (home / "state.sqlite").write_bytes(b"this is no database" * 1000)
    with Talk() as talk:
        talk.begin()
        listed = talk.call("list", {"project": "*"})
        found = talk.call("find", {"query": "pnpm"})

    assert listed["isError"] is False
    assert "MEMORY.md" in listed["content"][0]["text"]
    assert {"content", "isError"} <= set(found)
    assert "database" in talk.stderr


def test_a_database_that_is_locked_costs_no_answer_and_holds_up_nobody(home: Path) -> None:
    teach(home)
    with closing(sqlite3.connect(home / "state.sqlite", isolation_level=None)) as other, Talk() as talk:
        talk.begin()
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        arguments = {"queries": ["pnpm"], "project": "*"}
        talk.send(
            {
                "jsonrpc": "2.0",
                "id": "slow",
                "method": "tools/call",
                "params": {"name": "search", "arguments": arguments},
            }
        )
        talk.send({"jsonrpc": "2.0", "id": "quick", "method": "ping"})
        order = [talk.receive(), talk.receive()]
        other.execute("ROLLBACK")

    assert [answer["id"] for answer in order] == ["quick", "slow"]
    assert "pnpm" in order[1]["result"]["content"][0]["text"]


def test_a_database_that_is_not_there_costs_no_answer(home: Path) -> None:
    teach(home)
    environment = {**os.environ, "COMMONPLACE_DATABASE": "postgresql://nobody@127.0.0.1:1/nothing"}
    with Talk(environment=environment) as talk:
        talk.begin()
        results = [talk.call("search", {"queries": ["pnpm"], "project": "*"}) for _ in range(2)]
        found = talk.call("find", {"query": "pnpm"})

    assert all("pnpm" in result["content"][0]["text"] for result in results)
    assert found["content"][0]["text"]


def test_a_home_without_a_memory_has_tools_all_the_same(home: Path) -> None:
    with Talk() as talk:
        talk.begin()
        results = [talk.call("list"), talk.call("search", {"queries": ["x"]}), talk.call("read", {"path": "MEMORY.md"})]
        summary = talk.request("resources/read", {"uri": "commonplace://memory/summary"})["result"]

    assert all(result["content"][0]["text"] for result in results)
    assert summary["contents"][0]["text"] == ""


def test_a_cancelled_call_is_not_answered_twice_and_harms_nothing(home: Path) -> None:
    with Talk() as talk:
        talk.begin()
        talk.send({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "list"}})
        talk.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}})
        talk.send({"jsonrpc": "2.0", "id": "y", "method": "ping"})
        assert talk.end() == 0

    ids = [json.loads(line)["id"] for line in talk.rest.splitlines()]
    assert ids in (["y"], ["x", "y"], ["y", "x"])


def test_many_calls_at_once_are_all_answered(home: Path) -> None:
    teach(home)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list", {}),
        ("read", {"path": "MEMORY.md"}),
        ("search", {"queries": ["a"]}),
        ("find", {"query": "pnpm"}),
    ]
    with Talk() as talk:
        talk.begin()
        for number in range(100):
            name, arguments = calls[number % len(calls)]
            params = {"name": name, "arguments": {**arguments, "project": "*"}}
            talk.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        answers = [talk.receive() for _ in range(100)]
        assert talk.end() == 0

    assert {answer["id"] for answer in answers} == set(range(100))
    assert not any(answer["result"]["isError"] for answer in answers)
    assert talk.stderr == ""


def test_a_client_that_does_not_answer_about_its_roots_gets_its_answer(home: Path) -> None:
    with Talk() as talk:
        talk.begin(roots={"listChanged": True})
        talk.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "list"}})
        asked = talk.receive()
        talk.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}})

        assert asked["method"] == "roots/list"
        assert talk.receive()["id"] == 5


def test_the_scope_follows_the_roots_of_the_client(home: Path, tmp_path: Path) -> None:
    teach(home)
    shop, blog = checkout(tmp_path / "a folder", "shop"), checkout(tmp_path / "b", "blog")

    def texts(talk: Talk, root: Path) -> str:
        talk.send(
            {
                "jsonrpc": "2.0",
                "id": 50,
                "method": "tools/call",
                "params": {"name": "read", "arguments": {"path": "MEMORY.md"}},
            }
        )
        asked = talk.receive()
        roots = [{"uri": "https://example.com/"}, {"uri": root.as_uri(), "name": "x"}]
        talk.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}})
        return str(talk.receive()["result"]["structuredContent"]["content"])

    with Talk(cwd=tmp_path) as talk:
        talk.begin(roots={"listChanged": True})
        first = texts(talk, shop)
        again = talk.call("read", {"path": "MEMORY.md"})["structuredContent"]["content"]
        talk.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        second = texts(talk, blog)

    assert "pnpm" in first
    assert "release branch" not in first
    assert again == first
    assert "release branch" in second
    assert "pnpm" not in second


def test_what_a_library_prints_does_not_reach_the_client(home: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import threading\nthreading.Timer(0.0, lambda: None)\n"
        "import os, atexit\natexit.register(lambda: print('bye from a library'))\n",
        "utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}) + "\n"
    done = subprocess.run(
        [*PROGRAM, "mcp"], input=hello, env=environment, capture_output=True, text=True, check=False, timeout=100
    )

    assert done.returncode == 0
    assert [1] == [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert "bye from a library" in done.stderr
