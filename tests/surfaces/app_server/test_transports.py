"""The same talk over each transport, several clients on one server, and who may not come in."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from app_server.serving import Transport, listening, talking

import processes
from anchors.scripted_responses import ScriptedResponses, answer, call, reply, say
from commonplace import AppServerError, client
from commonplace.client import calls, params
from exec_driver import Place, make_place

ALL = pytest.mark.parametrize("transport", ["stdio", "unix", "ws"])
SOCKETS = pytest.mark.parametrize("transport", ["unix", "ws"])


@pytest.fixture
def model() -> Generator[ScriptedResponses]:
    with ScriptedResponses([]) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, model: ScriptedResponses) -> Place:
    return make_place(tmp_path, model.base_url)


async def begin(server: client.Client, place: Place, **more: Any) -> str:
    opened = await server.request(calls.THREAD_START, params.ThreadStartParams(cwd=str(place.cwd), **more))
    return opened.thread.id


async def all_of(notices: AsyncGenerator[client.Notice]) -> list[client.Notice]:
    async with aclosing(notices):
        return [notice async for notice in notices]


@ALL
async def test_a_talk_is_the_same_over_each_transport(
    place: Place, model: ScriptedResponses, transport: Transport
) -> None:
    model.add(answer(call("exec_command", {"cmd": "touch made"}, "c1")), reply("Done."), reply("Ünïcode \u2028."))
    asked: list[client.Question] = []

    async def allow(question: client.Question) -> dict[str, Any]:
        asked.append(question)
        return {"decision": "accept"}

    async with talking(place, transport, answer=allow) as server:
        thread = await begin(server, place, approval_policy="untrusted")
        first = await all_of(server.turn(thread, "do it"))
        second = await all_of(server.turn(thread, "again"))
        read = await server.request(calls.THREAD_READ, params.ThreadReadParams(thread_id=thread, include_turns=True))
        with pytest.raises(AppServerError) as refused:
            await server.request(calls.TURN_INTERRUPT, params.TurnInterruptParams(thread_id=thread, turn_id="x"))

    assert [question.method for question in asked] == ["item/commandExecution/requestApproval"]
    assert (place.cwd / "made").exists()
    assert (first[0].method, first[-1].method) == ("thread/status/changed", "turn/completed")
    assert second[-1].params["turn"]["items"][0]["text"] == "Ünïcode \u2028."
    assert [turn.status for turn in read.thread.turns] == ["completed", "completed"]
    assert (refused.value.rpc_code, refused.value.message) == (-32600, "no active turn to interrupt")
    assert server.server.codex_home == str(place.home)


@SOCKETS
async def test_clients_of_one_server_share_its_threads(
    place: Place, model: ScriptedResponses, transport: Transport
) -> None:
    model.add(reply("One."))
    with listening(place, transport) as server:
        async with server.connect() as one, server.connect() as two:
            thread = await begin(one, place)
            resumed = await two.request(calls.THREAD_RESUME, params.ThreadResumeParams(thread_id=thread))
            with two.notices() as heard:
                by_one = [notice.method for notice in await all_of(one.turn(thread, "hi"))]
                by_two = [notice.method async for notice in until_completed(heard)]
    assert resumed.thread.id == thread
    assert [each for each in by_two if not each.startswith("account/")] == by_one


@SOCKETS
async def test_a_turn_goes_on_when_its_client_goes_away(
    place: Place, model: ScriptedResponses, transport: Transport
) -> None:
    hold = threading.Event()
    model.add(answer(say("Late."), hold=hold))
    with listening(place, transport) as server:
        async with server.connect() as one:
            thread = await begin(one, place)
            given = params.TurnStartParams(thread_id=thread, input=[params.TextInput(text="go on")])
            turn = (await one.request(calls.TURN_START, given)).turn
        async with server.connect() as two:
            await two.request(calls.THREAD_RESUME, params.ThreadResumeParams(thread_id=thread))
            with two.notices() as heard:
                hold.set()
                done = [each async for each in until_completed(heard)]

    assert (done[-1].params["turn"]["id"], done[-1].params["turn"]["status"]) == (turn.id, "completed")


@pytest.mark.soak
@SOCKETS
async def test_a_hundred_turns_at_once_all_end(place: Place, model: ScriptedResponses, transport: Transport) -> None:
    hold = threading.Event()
    model.add(*[answer(say("Done."), hold=hold)] * 100)
    ended: list[str] = []
    with listening(place, transport) as server:
        async with server.connect() as one, anyio.create_task_group() as tasks:

            async def turn() -> None:
                notices = await all_of(one.turn(await begin(one, place), "go"))
                ended.append(notices[-1].params["turn"]["status"])

            for _ in range(100):
                tasks.start_soon(turn)
            await anyio.to_thread.run_sync(model.wait_for_requests, 100)
            hold.set()

    assert ended == ["completed"] * 100


async def until_completed(heard: Any) -> AsyncGenerator[client.Notice]:
    async for notice in heard:
        yield notice
        if notice.method == "turn/completed":
            return


@SOCKETS
async def test_a_signal_ends_the_server_in_order(place: Place, model: ScriptedResponses, transport: Transport) -> None:
    hold = threading.Event()
    model.add(answer(say("Never."), hold=hold))
    with listening(place, transport) as server:
        async with server.connect() as one:
            thread = await begin(one, place)
            given = params.TurnStartParams(thread_id=thread, input=[params.TextInput(text="wait")])
            await one.request(calls.TURN_START, given)
            await anyio.to_thread.run_sync(model.wait_for_requests, 1)
            with one.notices() as heard:
                assert await anyio.to_thread.run_sync(server.end) == 0
                hold.set()
                async for _ in heard:
                    pass  # ends with the server
            with pytest.raises(AppServerError, match="gone"):
                await one.request(calls.THREAD_LOADED_LIST, params.PageParams())

    assert any(line["payload"].get("type") == "turn_aborted" for line in place.lines())
    assert not (place.home / "app-server" / "app-server.sock").exists()


def test_a_port_wants_its_token_and_no_web_page(place: Place) -> None:
    with listening(place, "ws") as server:
        base = server.address.replace("ws://", "http://")
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }
        good = {"Authorization": f"Bearer {server.token}"}
        page = {"Origin": "http://localhost:3000"}

        def status(path: str, **headers: str) -> int:
            return httpx2.get(f"{base}{path}", headers={**headers}, timeout=60).status_code

        assert status("/readyz") == status("/healthz") == 200
        assert status("/readyz", **page) == 403
        assert status("/", **upgrade) == 401
        assert status("/", **upgrade, Authorization="Bearer wrong") == 401
        assert status("/", **upgrade, **good, **page) == 403
        assert status("/", **upgrade, **good, Host="evil.example") == 403
        assert stat.S_IMODE((place.home / "app-server" / "token").stat().st_mode) == 0o600


def test_a_socket_is_its_owners_alone_and_takes_no_web_page(place: Place) -> None:
    with listening(place, "unix") as server:
        path = place.home / "app-server" / "app-server.sock"
        assert server.address == f"unix://{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        transport = httpx2.HTTPTransport(uds=str(path))
        with httpx2.Client(transport=transport, timeout=60) as http:
            assert http.get("http://localhost/readyz").status_code == 200
            assert http.get("http://localhost/readyz", headers={"Origin": "null"}).status_code == 403
        second = processes.run(["app-server", "--listen", "unix://"], env=place.environment(), cwd=place.cwd, text=True)
        assert (second.returncode, "listens on" in second.stderr) == (1, True)


def test_a_socket_that_a_dead_server_left_behind_is_replaced(place: Place) -> None:
    folder = place.home / "app-server"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "app-server.sock"))
    with listening(place, "unix") as server:
        assert server.end() == 0


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("ws://0.0.0.0:0", "on this machine only"),
        ("ws://192.168.0.1:5", "on this machine only"),
        ("ws://127.0.0.1", "is no address"),
        ("ws://127.0.0.1:99999", "is no address"),
        ("http://127.0.0.1:1", "cannot listen"),
        ("off", "cannot listen"),
        ("unix:///" + "x" * 200, "too long"),
        ("unix:///proc/nothing/a.sock", "cannot be used"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(place: Place, address: str, text: str) -> None:
    done = processes.run(["app-server", "--listen", address], env=place.environment(), cwd=place.cwd, text=True)

    assert (done.returncode, text in done.stderr, done.stderr.count("\n")) == (1, True, 1), done.stderr


async def test_nobody_answers_is_said(place: Place) -> None:
    with pytest.raises(AppServerError, match="No server takes us"):
        async with client.connect(f"unix://{place.home}/nobody.sock"):
            pass
    with pytest.raises(AppServerError, match="cannot be started"):
        async with client.start([os.devnull]):
            pass


def test_the_proxy_joins_lines_and_a_socket(place: Place) -> None:
    hello = b'{"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "a", "version": "1"}}}\n'
    lines = hello + b"\xff\xfe\n" + b'{"id": 2, "method": "thread/loaded/list", "params": {}}\n'
    with listening(place, "unix"):
        bridge = processes.Process(
            ["app-server", "proxy"], stdin=processes.PIPE, stderr=processes.DEVNULL, env=place.environment()
        )
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        bridge.stdin.write(lines)
        bridge.stdin.flush()
        answers = [line for line in (bridge.stdout.readline() for _ in range(3)) if b'"id":' in line]
        bridge.stdin.close()
        assert bridge.wait(60) == 0
        bridge.stdout.close()
    done = processes.run(["app-server", "proxy"], env=place.environment(), text=True)

    assert [b'"id":1' in answers[0], answers[1]] == [True, b'{"id":2,"result":{"data":[],"nextCursor":null}}\n']
    assert (done.returncode, "No server answers" in done.stderr) == (1, True)
