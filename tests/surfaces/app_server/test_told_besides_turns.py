"""What clients are told besides turns: keys that are handed over, changed settings, what was not read yet."""

from __future__ import annotations

from pathlib import Path

from app_server.app_client import AppClient

from anchors.scripted_responses import ScriptedResponses, reply
from exec_driver import make_place


def test_a_key_that_a_client_hands_over_serves_until_it_signs_out(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One.")]) as model:
        place = make_place(tmp_path, "http://127.0.0.1:9/v1", model="openai:gpt-5.5")
        config = place.home / "config.toml"
        config.write_text(config.read_text() + f'[providers.openai]\nbase_url = "{model.base_url}"\n')
        with AppClient(place) as client:
            assert client.ask("account/read", {}) == {"account": None, "requiresOpenaiAuth": True}
            assert client.ask("account/login/start", {"type": "apiKey", "apiKey": "sk-handed"}) == {"type": "apiKey"}
            assert client.notice("account/login/completed") == {"loginId": None, "success": True, "error": None}
            assert client.ask("account/read", {})["account"] == {"type": "apiKey"}
            client.run(client.start(), "hi")
            assert client.ask("account/logout") == {}
            assert client.notice("account/updated", authMode=None) == {"authMode": None, "planType": None}
            assert client.ask("account/read", {})["account"] is None
            assert "OPENAI_API_KEY is not set" in client.fail("thread/start", {"cwd": str(place.cwd)})[1]

    assert model.headers[0]["authorization"] == "Bearer sk-handed"
    assert not [path for path in place.home.rglob("*") if path.is_file() and b"sk-handed" in path.read_bytes()]


def test_a_change_of_settings_is_told_to_who_understands_it(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two.")]) as model:
        place = make_place(tmp_path, model.base_url)
        with AppClient(place) as client:
            thread = client.start()
            client.run(thread, "one", effort="low", approvalPolicy="never")
            told = client.notice("thread/settings/updated", threadId=thread)["threadSettings"]
            client.told.clear()
            client.run(thread, "two", effort="low")
            assert "thread/settings/updated" not in client.methods()

    assert (told["effort"], told["model"], told["sandboxPolicy"]) == ("low", "gpt-5.5", {"type": "dangerFullAccess"})


def test_what_was_not_read_is_told_and_marked(tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two.")]) as model:
        place = make_place(tmp_path, model.base_url)
        with AppClient(place) as client:
            thread = client.start()
            first = client.run(thread, "one")["id"]
            client.run(thread, "two")
            state = client.ask("thread/read", {"threadId": thread})["readState"]
            given = {"threadId": thread, "operation": {"type": "read"}}
            stale = client.fail("thread/readState/update", {**given, "expectedRevision": "x"})
            marked = {**given, "expectedRevision": state["revision"]}
            after = client.ask("thread/readState/update", marked)["readState"]
            client.until(lambda: client.methods().count("thread/readState/changed") == 3)

    assert state["firstUnread"] == {"type": "turn", "turnId": first}
    assert (stale[0], after["firstUnread"], after["revision"] != state["revision"]) == (-32600, None, True)
