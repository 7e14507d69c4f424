"""What clients are told beside the items of a turn: hooks, servers, commands that go on, plans, items as recorded."""

from __future__ import annotations

import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from app_server.app_client import AppClient
from app_server.serving import Transport, talking

from anchors import progress_server
from anchors.scripted_responses import ScriptedResponses, answer, call, reply
from commonplace.client import calls, params
from exec_driver import Place, make_place

Json = dict[str, Any]
PLAN = "<proposed_plan>\nthe plan\n</proposed_plan>"
PLANNING: Json = {"mode": "plan", "settings": {"model": "gpt-5.5"}}
GOES_ON: Json = {"cmd": "read line; echo got $line", "background": True}
MORE = f"""
[nonsense]
x = 1
[[hooks.stop]]
command = "true"
[mcp_servers.works]
command = {json.dumps(sys.executable)}
args = [{json.dumps(progress_server.__file__)}]
"""


def furnished(root: Path, base_url: str) -> Place:
    """A home with a hook, a server and a setting that means nothing."""
    place = make_place(root, base_url)
    with (place.home / "config.toml").open("a") as file:
        file.write(MORE)
    return place


@pytest.mark.parametrize("transport", ["stdio", "unix", "ws"])
async def test_they_are_told_over_each_transport(tmp_path: Path, transport: Transport) -> None:
    script = [answer(call("exec_command", GOES_ON, "c1")), reply("It runs.")]
    script += [answer(call("write_stdin", {"session_id": 1, "chars": "x\n"}, "c2")), reply("Done.")]
    told: list[tuple[str, Any]] = []
    with ScriptedResponses(script) as model:
        place = furnished(tmp_path, model.base_url)
        async with talking(place, transport) as server:
            given = params.ThreadStartParams(cwd=str(place.cwd), experimental_raw_events=True)
            thread = (await server.request(calls.THREAD_START, given)).thread.id
            with server.notices() as heard:
                for _ in range(2):
                    async with aclosing(server.turn(thread, "go")) as turn:
                        async for _ in turn:
                            pass
                while heard.statistics().current_buffer_used:
                    notice = heard.receive_nowait()
                    told.append((notice.method, notice.params))

    methods = [method for method, _ in told]
    for name in ("hook/started", "hook/completed", "rawResponseItem/completed"):
        assert name in methods
    assert [each["status"] for method, each in told if method.startswith("mcpServer/")] == ["starting", "ready"]
    (typed,) = [each for method, each in told if method == "item/commandExecution/terminalInteraction"]
    (ended,) = [
        each for method, each in told if method == "item/completed" and each["item"]["type"] == "commandExecution"
    ]
    assert (typed["itemId"], typed["stdin"], typed["processId"]) == ("c1", "x\n", "1")
    assert (ended["item"]["id"], ended["item"]["aggregatedOutput"], ended["item"]["exitCode"]) == ("c1", "got x\n", 0)
    assert ended["turnId"] != typed["turnId"]
    assert methods.index("item/commandExecution/terminalInteraction") < told.index(("item/completed", ended))


def told_to(place: Place, **capabilities: Any) -> set[str]:
    """The methods of what a client with these capabilities is told of one turn in plan mode."""
    with AppClient(place, hello=False) as client:
        client.hello(**capabilities)
        more: Json = {"experimentalRawEvents": True} if capabilities["experimental"] else {}
        thread = client.start(**more)
        planning: Json = {"collaborationMode": PLANNING} if capabilities["experimental"] else {}
        client.run(thread, "go", **planning)
        client.end()
        return {str(message["method"]) for message in client.told if "method" in message}


def test_who_does_not_want_or_understand_something_is_not_told_of_it(tmp_path: Path) -> None:
    quiet = ["hook/started", "mcpServer/startupStatus/updated", "configWarning"]
    with ScriptedResponses([reply(PLAN)] * 3) as model:
        place = furnished(tmp_path, model.base_url)
        everything = told_to(place, experimental=True)
        wanted = told_to(place, experimental=True, optOutNotificationMethods=quiet)
        plain = told_to(place, experimental=False)

    assert {*quiet, "hook/completed", "rawResponseItem/completed", "item/plan/delta"} <= everything
    assert everything - wanted == set(quiet)
    assert not {"rawResponseItem/completed", "item/plan/delta"} & plain
    assert set(quiet) <= plain


def test_a_command_that_outlives_everything_is_completed_when_its_session_closes(tmp_path: Path) -> None:
    script = [
        answer(call("exec_command", {"cmd": "echo up; exec sleep 300", "background": True}, "c1")),
        reply("It runs."),
    ]
    with ScriptedResponses(script) as model:
        place = make_place(tmp_path, model.base_url)
        with AppClient(place) as client:
            thread = client.start()
            turn = client.run(thread, "go")
            started = client.wait(lambda message: message.get("params", {}).get("item", {}).get("id") == "c1")
            assert "item/completed commandExecution" not in client.methods()
            client.ask("thread/archive", {"threadId": thread})
            ended = client.wait(
                lambda message: message.get("method") == "item/completed" and message["params"]["item"]["id"] == "c1"
            )["params"]
            client.ask("thread/unarchive", {"threadId": thread})
        with AppClient(place) as client:
            stored = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]

    assert started["params"]["item"]["status"] == "inProgress"
    assert (ended["turnId"], ended["item"]["status"]) == (turn["id"], "failed")
    assert (ended["item"]["aggregatedOutput"], ended["item"]["processId"]) == ("up\n", "1")
    assert stored[0]["items"][-1] == ended["item"]


def test_a_page_of_turns_shows_what_is_asked_for(tmp_path: Path) -> None:
    script = [answer(call("exec_command", {"cmd": "true"}, "c1")), reply("One."), reply("Two.")]
    with ScriptedResponses(script) as model, AppClient(make_place(tmp_path, model.base_url)) as client:
        thread = client.start()
        client.run(thread, "first")
        client.run(thread, "second")
        shown = {
            view: client.ask("thread/turns/list", {"threadId": thread, "itemsView": view})["data"]
            for view in (None, "summary", "full", "notLoaded")
        }

    kinds = {view: [[item["type"] for item in turn["items"]] for turn in turns] for view, turns in shown.items()}
    both = ["userMessage", "agentMessage"]
    assert kinds[None] == kinds["summary"] == [both, both]
    assert kinds["full"] == [both, ["userMessage", "commandExecution", "agentMessage"]]
    assert kinds["notLoaded"] == [[], []]
    assert [shown[view][0]["itemsView"] for view in shown] == ["summary", "summary", "full", "notLoaded"]


def test_a_command_of_a_turn_that_was_taken_back_shows_no_turn_when_it_ends(tmp_path: Path) -> None:
    script = [answer(call("exec_command", GOES_ON, "c1")), reply("It runs.")]
    with ScriptedResponses(script) as model, AppClient(make_place(tmp_path, model.base_url)) as client:
        thread = client.start()
        client.run(thread, "go")
        assert client.ask("thread/rollback", {"threadId": thread, "numTurns": 1})["thread"]["turns"] == []
        client.ask("thread/archive", {"threadId": thread})
        client.notice("item/completed", threadId=thread)
        client.ask("thread/unarchive", {"threadId": thread})
        found = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]

    assert found == []
