"""A fork that leaves no file: it knows what its source knew, and the source stays as it is."""

from __future__ import annotations

from pathlib import Path

from app_server.app_client import AppClient

from anchors.scripted_responses import ScriptedResponses, reply
from exec_driver import make_place


def test_a_fork_that_leaves_no_file_goes_on_beside_its_source(tmp_path: Path) -> None:
    with ScriptedResponses([reply(text) for text in ("One.", "Two.", "Three.", "Four.")]) as model:
        place = make_place(tmp_path, model.base_url)
        with AppClient(place) as client:
            thread = client.start()
            first = client.run(thread, "one")["id"]
            client.run(thread, "two")
            wanted = {"threadId": thread, "ephemeral": True, "excludeTurns": True}
            assert client.fail("thread/fork", {**wanted, "excludeTurns": False})[0] == -32600
            whole = client.ask("thread/fork", wanted)["thread"]
            early = client.ask("thread/fork", {**wanted, "lastTurnId": first})["thread"]
            assert client.run(whole["id"], "three")["status"] == "completed"
            assert client.run(early["id"], "four")["status"] == "completed"
            turns = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]

    said = [
        [part["text"] for item in shown if item.get("role") == "assistant" for part in item["content"]]
        for shown in model.inputs()[2:]
    ]
    assert said == [["One.", "Two."], ["One."]]
    assert [(each["ephemeral"], each["path"], each["forkedFromId"]) for each in (whole, early)] == [
        (True, None, thread)
    ] * 2
    assert (len(turns), place.thread_ids()) == (2, [thread])
