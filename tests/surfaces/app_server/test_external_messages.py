"""What another program says (`toolOutput`) begins a turn or joins one; it is external, and no words of a person."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from app_server.app_client import AppClient

from anchors.scripted_responses import ScriptedResponses, answer, reply, say
from exec_driver import make_place

Json = dict[str, Any]


def said(output: Any, name: str = "mail", **more: Any) -> Json:
    return {"input": [], "toolOutput": {"name": name, "output": output, **more}}


def test_what_another_program_says_begins_a_turn_and_joins_one(tmp_path: Path) -> None:
    hold = threading.Event()
    with ScriptedResponses([reply("One."), answer(say("Two."), hold=hold), reply("Three.")]) as model:
        place = make_place(tmp_path, model.base_url)
        with AppClient(place) as client:
            thread = client.start()
            begun = client.ask("turn/start", {"threadId": thread, **said("You have mail.")})["turn"]["id"]
            assert client.finish(begun)["status"] == "completed"
            running = client.turn(thread, "read it")
            model.wait_for_requests(2)
            picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
            parts = [{"type": "input_text", "text": "More"}, picture, {"type": "input_text", "text": "mail."}]
            joined = client.ask("turn/start", {"threadId": thread, **said(parts, namespace="home")})["turn"]["id"]
            hold.set()
            client.finish(running)
            read = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]

    first, _, last = (shown[-1]["content"][0]["text"] for shown in model.inputs())
    assert (first, last) == (
        "<external_mail>You have mail.</external_mail>",
        "<external_home.mail>More\n[input_image is left out]\nmail.</external_home.mail>",
    )
    assert (joined, read["preview"]) == (running, "read it")
    kinds = [[item["type"] for item in turn["items"]] for turn in read["turns"]]
    assert kinds == [
        ["functionCallOutput", "agentMessage"],
        ["userMessage", "agentMessage", "functionCallOutput", "agentMessage"],
    ]
    shown = [item for turn in read["turns"] for item in turn["items"] if item["type"] == "functionCallOutput"]
    assert [(item["namespace"], item["name"], item["output"]) for item in shown] == [
        (None, "mail", "You have mail."),
        ("home", "mail", parts),
    ]
    assert "You have mail." not in str([each for each in place.lines() if "user.text" in str(each)])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({**said("x"), "input": [{"type": "text", "text": "both"}]}, "cannot be combined"),
        (said("x", " "), "must not be empty"),
        (said([{"type": "input_text", "text": 5}]), "must be text"),
    ],
)
def test_what_is_no_text_of_another_program_is_refused(tmp_path: Path, given: Json, text: str) -> None:
    with AppClient(make_place(tmp_path, "http://127.0.0.1:9/v1")) as client:
        code, message = client.fail("turn/start", {"threadId": client.start(), **given})

    assert (code, text in message) == (-32600, True), message
