"""Sub-agents as clients see them: threads that come by themselves, with turns, questions and a place in lists."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from app_server.app_client import AppClient

from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, reply
from exec_driver import Place, make_place

Json = dict[str, Any]
TASK = "count the files"


@pytest.fixture
def model() -> Generator[ScriptedResponses]:
    with ScriptedResponses([]) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, model: ScriptedResponses) -> Place:
    return make_place(tmp_path, model.base_url)


class Family:
    """The answers of a parent, and of the child that it starts; each is asked in its own order."""

    def __init__(self, model: ScriptedResponses, parent: list[Answer], child: list[Answer]) -> None:
        self._parent, self._child = parent, child
        model.add(*[self._answer] * (len(parent) + len(child)))

    def _answer(self, body: Json) -> Answer:
        said = json.dumps(body["input"])
        is_child = f'"text": "{TASK}"' in said
        given = (self._child if is_child else self._parent).pop(0)
        agent = json.loads(self._output(body, "s1")).get("agent_id", "") if "s1" in said and not is_child else ""
        return Answer(
            items=tuple(json.loads(json.dumps(item).replace("AGENT", agent)) for item in given.items), hold=given.hold
        )

    @staticmethod
    def _output(body: Json, call_id: str) -> str:
        outputs = [item["output"] for item in body["input"] if item.get("call_id") == call_id and "output" in item]
        return outputs[0] if outputs else "{}"


SPAWN = answer(call("spawn_agent", {"message": TASK}, "s1", namespace="multi_agent_v1"))
WAIT = answer(call("wait_agent", {"targets": ["AGENT"]}, "w1", namespace="multi_agent_v1"))


def children(client: AppClient, thread: str) -> list[Json]:
    """The threads that came by themselves."""
    started = [message["params"]["thread"] for message in client.told if message.get("method") == "thread/started"]
    return [each for each in started if each["id"] != thread]


def told_of(client: AppClient, thread: str) -> list[str]:
    """What was told of one thread, in order."""
    found: list[str] = []
    for message in client.told:
        params: Json = message.get("params") or {}
        if params.get("threadId", params.get("thread", {}).get("id")) == thread:
            kind = params.get("item", {}).get("type", "")
            found.append(f"{message['method']} {kind}".strip())
    return found


def test_a_client_sees_a_sub_agent_begin_work_and_end(place: Place, model: ScriptedResponses) -> None:
    Family(model, [SPAWN, WAIT, reply("The child says 7.")], [reply("There are 7.")])
    with AppClient(place) as client:
        thread = client.start()
        turn = client.run(thread, "How many?")
        (child,) = children(client, thread)
        client.notice("turn/completed", threadId=child["id"])
        order = told_of(client, child["id"])
        listed = client.ask("thread/list", {"parentThreadId": thread})["data"]
        below = client.ask("thread/list", {"ancestorThreadId": thread, "sourceKinds": ["subAgentThreadSpawn"]})["data"]
        plain = client.ask("thread/list", {})["data"]
        kinds = client.ask("thread/list", {"sourceKinds": ["subAgent"]})["data"]
        read = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]
        loaded = client.ask("thread/loaded/list", {})["data"]

    assert turn["status"] == "completed"
    assert order == [
        "thread/started",
        "thread/status/changed",
        "turn/started",
        "item/started userMessage",
        "item/completed userMessage",
        "item/started agentMessage",
        "item/agentMessage/delta",
        "item/completed agentMessage",
        "thread/tokenUsage/updated",
        "thread/readState/changed",
        "thread/status/changed",
        "turn/completed",
    ]
    nickname = child["agentNickname"]
    assert nickname
    spawned = {
        "parent_thread_id": thread,
        "depth": 1,
        "agent_path": None,
        "agent_nickname": nickname,
        "agent_role": None,
    }
    assert child["source"] == {"subAgent": {"thread_spawn": spawned}}
    assert (child["parentThreadId"], child["sessionId"], child["threadSource"]) == (thread, thread, "subagent")
    for rows in (listed, below, kinds):
        assert [(row["id"], row["agentNickname"], row["source"]) for row in rows] == [
            (child["id"], nickname, child["source"])
        ]
    assert [row["id"] for row in plain] == [thread]
    assert sorted(loaded) == sorted([thread, child["id"]])
    calls = [item for each in read["turns"] for item in each["items"] if item["type"] == "collabAgentToolCall"]
    assert [(each["tool"], each["status"], each["receiverThreadIds"]) for each in calls] == [
        ("spawnAgent", "completed", [child["id"]]),
        ("wait", "completed", [child["id"]]),
    ]
    assert calls[0]["prompt"] == TASK
    assert calls[1]["agentsStates"] == {child["id"]: {"status": "completed", "message": "There are 7."}}
    live = [message["params"]["item"] for message in client.told if message.get("method") == "item/completed"]
    assert [item for item in live if item["type"] == "collabAgentToolCall"] == calls


def test_the_questions_of_a_sub_agent_carry_its_own_thread(place: Place, model: ScriptedResponses) -> None:
    work = answer(call("exec_command", {"cmd": "touch made"}, "c1"))
    Family(model, [SPAWN, WAIT, reply("Made.")], [work, reply("Made.")])
    with AppClient(place) as client:
        thread = client.start(approvalPolicy="untrusted")
        client.run(thread, "Make it.")
        (child,) = children(client, thread)
        asked = [message for message in client.told if message.get("method") == "item/commandExecution/requestApproval"]

    assert [each["params"]["threadId"] for each in asked] == [child["id"]]
    assert (place.cwd / "made").exists()


def test_an_interrupt_of_the_parent_reaches_the_child_which_can_then_be_told_more(
    place: Place, model: ScriptedResponses
) -> None:
    hold = threading.Event()
    never = Answer(items=reply("Never.").items, hold=hold)
    Family(model, [SPAWN, WAIT], [never, reply("Yes.")])
    with AppClient(place) as client:
        thread = client.start()
        turn = client.turn(thread, "How many?")
        model.wait_for_requests(3)
        client.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
        (child,) = children(client, thread)
        stopped = client.notice("turn/completed", threadId=child["id"])["turn"]
        again = client.run(child["id"], "Are you there?")
        hold.set()

    assert (stopped["status"], again["status"]) == ("interrupted", "completed")


def test_children_come_again_with_their_parent_and_go_with_it(place: Place, model: ScriptedResponses) -> None:
    Family(model, [SPAWN, WAIT, reply("7.")], [reply("There are 7.")])
    with AppClient(place) as client:
        thread = client.start()
        client.run(thread, "How many?")
        (child,) = children(client, thread)
    with AppClient(place) as client:
        client.ask("thread/resume", {"threadId": thread})
        client.notice("thread/started")
        (again,) = children(client, thread)
        client.ask("thread/archive", {"threadId": thread})
        client.notice("thread/closed", threadId=child["id"])
        client.notice("thread/archived", threadId=child["id"])
        archived = [
            message["params"]["threadId"] for message in client.told if message.get("method") == "thread/archived"
        ]
        left = client.ask("thread/list", {"sourceKinds": ["subAgent"]})["data"]

    for name in ("id", "agentNickname", "parentThreadId", "source"):
        assert again[name] == child[name]
    assert archived == [thread, child["id"]]
    assert left == []


def test_children_that_ran_when_their_process_was_killed_are_found_by_their_parent(
    place: Place, model: ScriptedResponses
) -> None:
    hold = threading.Event()
    Family(model, [SPAWN, WAIT], [Answer(items=reply("Never.").items, hold=hold)])
    with AppClient(place, preloaded=False) as client:
        thread = client.start()
        client.turn(thread, "How many?")
        model.wait_for_requests(3)
        child = client.wait(
            lambda message: message.get("method") == "thread/started" and message["params"]["thread"]["id"] != thread
        )["params"]["thread"]["id"]
        client.process.kill()
        client.end()
    hold.set()
    with AppClient(place) as client:
        found = [each["id"] for each in client.ask("thread/list", {"ancestorThreadId": thread})["data"]]

    assert found == [child]


@pytest.mark.parametrize("field", ["parentThreadId", "ancestorThreadId"])
def test_a_list_by_parent_needs_the_capability(place: Place, field: str) -> None:
    with AppClient(place, experimental=False) as client:
        code, text = client.fail("thread/list", {field: "01a1dddc-8646-7c22-bb1d-cc3d829fde08"})

    assert (code, text) == (-32600, f"thread/list.{field} requires experimentalApi capability")
