"""The real Codex and `commonplace exec` start a sub-agent by the same script: both models are shown the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import exec_driver
from anchors import codex_driver
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, say

pytestmark = pytest.mark.anchor

Json = dict[str, Any]
TASK = "think of a number"
NAMESPACE = "multi_agent_v1"
PROMPTS = ("turn one", "turn two")


def script(spawn: Json) -> Any:
    """Return what decides on each answer: a command and an answer, then a child that is waited for."""

    def decide(body: Json) -> Answer:
        if is_child(body["input"]):
            return answer(say("The answer is 7.", phase="final_answer"))
        calls = {item["call_id"] for item in body["input"] if item["type"] == "function_call"}
        if "c0" not in calls:
            return answer(say("I look.", phase="commentary"), call("exec_command", {"cmd": "echo hi"}, "c0"))
        if PROMPTS[1] not in json.dumps(body["input"]):
            return answer(say("It says hi.", phase="final_answer"))
        if "s1" not in calls:
            return answer(call("spawn_agent", spawn, "s1", namespace=NAMESPACE))
        if "w1" not in calls:
            (output,) = [item["output"] for item in body["input"] if item.get("call_id") == "s1" and "output" in item]
            return answer(call("wait_agent", {"targets": [json.loads(output)["agent_id"]]}, "w1", namespace=NAMESPACE))
        return answer(say("The child says 7.", phase="final_answer"))

    return decide


def is_child(items: list[Json]) -> bool:
    return f'"text": "{TASK}"' in json.dumps(items)


def shown(items: list[Json]) -> list[tuple[str, str]]:
    """What is said and called in a request, without what either program tells of itself; ids are left out."""
    found: list[tuple[str, str]] = []
    for item in items:
        if item["type"] == "message" and item["role"] in ("user", "assistant"):
            texts = [part["text"] for part in item["content"]]
            found += [(item["role"], _neutral(text)) for text in texts if not text.startswith("<environment_context>")]
        elif item["type"] != "message":
            found.append((item["type"], str(item.get("name", item.get("call_id")))))
    return found


def _neutral(text: str) -> str:
    begin, end = "<subagent_notification>\n", "\n</subagent_notification>"
    if not text.startswith(begin):
        return text
    told = json.loads(text.removeprefix(begin).removesuffix(end))
    return json.dumps({**told, "agent_path": "ID"})


def outputs(items: list[Json]) -> dict[str, Any]:
    """The fields of what the tools about agents gave; ids and names are left out."""
    found: dict[str, Any] = {}
    for item in items:
        if item["type"] == "function_call_output" and item["call_id"] in ("s1", "w1"):
            given: Json = json.loads(item["output"])
            found[item["call_id"]] = {**given, "status": [*given["status"].values()]} if "status" in given else [*given]
    return found


@pytest.mark.parametrize("fork", [False, True])
def test_parent_and_child_are_shown_what_codex_shows_them(codex: Path, tmp_path: Path, fork: bool) -> None:
    spawn = {"message": TASK, "fork_context": fork}
    with ScriptedResponses([script(spawn)] * 6) as server:
        home = codex_driver.make_home(codex, tmp_path / "theirs", server.base_url)
        first = codex_driver.run_exec(home, PROMPTS[0])
        codex_driver.run_exec(home, PROMPTS[1], resume=first.thread_id)
    theirs = server.inputs()
    with ScriptedResponses([script(spawn)] * 6) as server:
        place = exec_driver.make_place(tmp_path / "ours", server.base_url)
        ran = exec_driver.run_exec(place, PROMPTS[0])
        exec_driver.run_exec(place, "resume", ran.thread_id, PROMPTS[1])
    ours = server.inputs()

    def child(requests: list[list[Json]]) -> list[Json]:
        (found,) = [items for items in requests if is_child(items)]
        return found

    def parent(requests: list[list[Json]]) -> list[Json]:
        return [items for items in requests if not is_child(items)][-1]

    assert shown(child(ours)) == shown(child(theirs))
    assert shown(parent(ours)) == shown(parent(theirs))
    assert outputs(parent(ours)) == outputs(parent(theirs))
    assert (("assistant", "It says hi.") in shown(child(ours))) is fork
