"""Threads and turns of the app server, as a client that speaks line by line sees them."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from app_server.app_client import AppClient

from anchors.scripted_responses import ScriptedResponses, answer, call, refusal, reply, say
from exec_driver import Place, make_place

Json = dict[str, Any]
UNKNOWN = "01a1dddc-8646-7c22-bb1d-cc3d829fde08"


@pytest.fixture
def model() -> Generator[ScriptedResponses]:
    with ScriptedResponses([]) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, model: ScriptedResponses) -> Place:
    return make_place(tmp_path, model.base_url)


def texts(shown: list[Json], *roles: str) -> list[str]:
    return [part["text"] for item in shown if item.get("role") in roles for part in item["content"] if "text" in part]


def test_a_turn_is_told_in_the_order_of_codex(place: Place, model: ScriptedResponses) -> None:
    model.add(reply("Hello."))
    with AppClient(place) as client:
        thread = client.start()
        client.run(thread, "hi")
        told = client.methods()

    assert told == [
        "answer",
        "remoteControl/status/changed",
        "answer",
        "thread/started",
        "answer",
        "thread/status/changed",
        "turn/started",
        "item/started userMessage",
        "item/completed userMessage",
        "item/started agentMessage",
        "item/agentMessage/delta",
        "item/completed agentMessage",
        "thread/tokenUsage/updated",
        "account/rateLimits/updated",
        "thread/readState/changed",
        "thread/status/changed",
        "turn/completed",
    ]


def test_compaction_is_a_turn_of_its_own(place: Place, model: ScriptedResponses) -> None:
    model.add(reply("One."), reply("The summary."), reply("Two."))
    with AppClient(place) as client:
        thread = client.start()
        client.run(thread, "one")
        client.told.clear()
        assert client.ask("thread/compact/start", {"threadId": thread}) == {}
        client.notice("turn/completed")
        told = [each for each in client.methods() if each != "account/rateLimits/updated"]
        assert client.run(thread, "two")["status"] == "completed"

    assert told == [
        "answer",
        "thread/status/changed",
        "turn/started",
        "item/started contextCompaction",
        *["thread/tokenUsage/updated"] * 3,
        "item/completed contextCompaction",
        "thread/status/changed",
        "turn/completed",
    ]


def test_a_turn_that_fails_says_why_and_the_thread_goes_on(place: Place, model: ScriptedResponses) -> None:
    model.add(refusal(400, "bad"), reply("Yes."))
    with AppClient(place) as client:
        thread = client.start()
        failed = client.run(thread, "fail")
        error = client.notice("error")
        assert client.run(thread, "again")["status"] == "completed"
        read = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]

    changes = [each["params"] for each in client.told if each.get("method") == "thread/status/changed"]
    statuses = [each["status"]["type"] for each in changes]
    assert statuses == ["active", "systemError", "active", "idle"]
    assert (failed["status"], failed["error"]["codexErrorInfo"]) == ("failed", "badRequest")
    assert (error["willRetry"], error["error"]) == (False, failed["error"])
    assert [turn["status"] for turn in read["turns"]] == ["failed", "completed"]


def test_before_the_handshake_nothing_is_answered_and_there_is_only_one(place: Place) -> None:
    with AppClient(place, hello=False) as client:
        assert client.fail("thread/list", {}) == (-32600, "Not initialized")
        assert client.fail("initialize", {"clientInfo": {"name": "a\nb", "version": "1"}})[0] == -32600
        found = client.hello()
        assert client.fail("initialize", {"clientInfo": {"name": "a", "version": "1"}}) == (
            -32600,
            "Already initialized",
        )
        code = client.end()

    assert found["userAgent"].startswith("test/")
    assert found["codexHome"] == str(place.home)
    assert (found["platformFamily"], code) == ("unix", 0)


@pytest.mark.parametrize(
    ("method", "params", "code", "text"),
    [
        ("no/such", {}, -32601, "Method not found"),
        ("turn/start", {"threadId": 5, "input": []}, -32602, "threadId"),
        ("turn/start", {"input": []}, -32602, "threadId"),
        ("thread/list", [1], -32602, "array"),
        ("turn/start", {"threadId": "x", "input": []}, -32600, "invalid thread id"),
        ("turn/start", {"threadId": UNKNOWN, "input": []}, -32600, "thread not found"),
        ("turn/steer", {"threadId": UNKNOWN, "expectedTurnId": "x", "input": []}, -32600, "thread not found"),
        ("turn/interrupt", {"threadId": UNKNOWN, "turnId": "x"}, -32600, "thread not found"),
        ("thread/read", {"threadId": UNKNOWN}, -32600, "thread not loaded"),
        ("thread/resume", {"threadId": UNKNOWN}, -32600, "no rollout found"),
        ("thread/fork", {"threadId": UNKNOWN}, -32600, "no rollout found"),
        ("thread/archive", {"threadId": UNKNOWN}, -32600, "no rollout found"),
        ("thread/unarchive", {"threadId": UNKNOWN}, -32600, "no archived rollout found"),
        ("thread/delete", {"threadId": UNKNOWN}, -32600, "no rollout found"),
        ("thread/rollback", {"threadId": UNKNOWN, "numTurns": 1}, -32600, "no rollout found"),
        ("thread/rollback", {"threadId": UNKNOWN, "numTurns": 0}, -32600, "numTurns"),
        ("thread/name/set", {"threadId": UNKNOWN, "name": " "}, -32600, "must not be empty"),
        ("thread/list", {"cursor": "bad"}, -32600, "invalid cursor"),
        ("thread/start", {"cwd": "/no/such/folder"}, -32600, "no folder"),
        ("thread/start", {"approvalPolicy": "sometimes"}, -32602, "approvalPolicy"),
        ("thread/start", {"personality": "grim"}, -32602, "personality"),
        ("account/login/start", {"type": "chatgpt"}, -32600, "no accounts"),
        ("account/login/start", {"type": "apiKey", "apiKey": " "}, -32600, "no key"),
        ("account/login/cancel", {"loginId": "x"}, -32600, "invalid login id"),
        ("thread/start", {"model": "nobody:nothing", "modelProvider": "nobody"}, -32600, "provider"),
    ],
)
def test_each_error_has_its_code(place: Place, method: str, params: Any, code: int, text: str) -> None:
    with AppClient(place) as client:
        found = client.fail(method, params)
        assert client.ask("thread/loaded/list", {}) == {"data": [], "nextCursor": None}

    assert (found[0], text in found[1]) == (code, True), found


def test_steering_and_interrupting_name_the_turn_that_runs(place: Place, model: ScriptedResponses) -> None:
    hold = threading.Event()
    model.add(answer(say("Never."), hold=hold))
    with AppClient(place) as client:
        thread = client.start()
        said = [{"type": "text", "text": "more"}]
        steer = {"threadId": thread, "expectedTurnId": "wrong", "input": said}
        assert client.fail("turn/steer", steer) == (-32600, "no active turn to steer")
        assert client.fail("turn/interrupt", {"threadId": thread, "turnId": "x"}) == (
            -32600,
            "no active turn to interrupt",
        )
        turn = client.turn(thread, "hi")
        model.wait_for_requests(1)
        assert client.fail("turn/steer", steer) == (-32600, f"expected active turn id `wrong` but found `{turn}`")
        empty: Json = {"threadId": thread, "expectedTurnId": turn, "input": []}
        context = {"additionalContext": {"a": {"value": "b", "kind": "untrusted"}}}
        assert client.fail("turn/steer", {**empty, **context}) == (-32600, "input must not be empty")
        assert client.fail("turn/interrupt", {"threadId": thread, "turnId": "wrong"}) == (
            -32600,
            f"expected active turn id wrong but found {turn}",
        )
        large = {**steer, "expectedTurnId": turn, "input": [{"type": "text", "text": "x" * 1_048_577}]}
        error = client.answer(client.send("turn/steer", large))["error"]
        assert (error["code"], error["data"]) == (
            -32602,
            {"input_error_code": "input_too_large", "max_chars": 1_048_576, "actual_chars": 1_048_577},
        )
        remote = {**steer, "expectedTurnId": turn, "input": [{"type": "image", "url": "https://example.com/a.png"}]}
        assert "remote image" in client.fail("turn/steer", remote)[1]
        assert client.ask("turn/interrupt", {"threadId": thread, "turnId": turn}) == {}
        assert client.finish(turn)["status"] == "interrupted"


def test_what_a_client_knows_is_told_once_and_again_after_it_was_left_out(
    place: Place, model: ScriptedResponses
) -> None:
    model.add(*(reply("Yes.") for _ in range(5)))
    page = {"value": "a page", "kind": "untrusted", "more": 1}
    file = {"value": "a file", "kind": "application"}
    maps: list[Json | None] = [{"page": page, "a<b": file}, {"page": page, "a<b": file}, {}, {"page": page}, None]
    with AppClient(place) as client:
        thread = client.start()
        for number, each in enumerate(maps):
            client.run(thread, f"turn {number}", additionalContext=each)
        read = client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]

    told = [text for text in texts(model.inputs()[-1], "user", "developer") if text.startswith(("<a&", "<external_"))]
    assert told == [
        "<a&#60;b>a file</a&#60;b>",
        "<external_page>a page</external_page>",
        "<external_page>a page</external_page>",
    ]
    said = [item["content"] for turn in read["turns"] for item in turn["items"] if item["type"] == "userMessage"]
    assert [part["text"] for content in said for part in content] == [f"turn {number}" for number in range(5)]
    assert read["preview"] == "turn 0"


def test_a_thread_without_a_turn_can_be_named_forked_read_and_archived(place: Place) -> None:
    with AppClient(place) as client:
        thread = client.start()
        assert client.ask("thread/turns/list", {"threadId": thread})["data"] == []
        assert client.ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"] == []
        assert client.ask("thread/name/set", {"threadId": thread, "name": " a  name "}) == {}
        assert client.notice("thread/name/updated") == {"threadId": thread, "threadName": "a name"}
        assert client.ask("thread/read", {"threadId": thread})["thread"]["name"] == "a name"
        assert client.ask("thread/fork", {"threadId": thread})["thread"]["forkedFromId"] == thread
        assert client.ask("thread/archive", {"threadId": thread}) == {}
        assert client.notice("thread/archived") == {"threadId": thread}
        assert "archived" in client.fail("thread/resume", {"threadId": thread})[1]
        found = client.ask("thread/unarchive", {"threadId": thread})["thread"]

    assert (found["id"], found["status"]) == (thread, {"type": "notLoaded"})


def test_turns_are_taken_back_by_number_and_by_id(place: Place, model: ScriptedResponses) -> None:
    model.add(*(reply(f"Answer {number}.") for number in range(4)))
    with AppClient(place) as client:
        thread = client.start()
        turns = [client.run(thread, f"turn {number}")["id"] for number in range(3)]
        after = client.ask("thread/rollback", {"threadId": thread, "numTurns": 1})["thread"]
        assert [turn["id"] for turn in after["turns"]] == turns[:2]
        after = client.ask("thread/revert", {"threadId": thread, "beforeTurnId": turns[1]})["thread"]
        assert [turn["id"] for turn in after["turns"]] == turns[:1]
        client.run(thread, "again")
        page = client.ask("thread/turns/list", {"threadId": thread, "limit": 1})
        rest = client.ask("thread/turns/list", {"threadId": thread, "limit": 5, "cursor": page["nextCursor"]})

    assert texts(model.inputs()[-1], "assistant") == ["Answer 0."]
    assert [turn["id"] for turn in rest["data"]] == turns[:1]


def test_settings_of_a_turn_hold_for_those_after_it(place: Place, model: ScriptedResponses) -> None:
    model.add(reply("One."), reply("Two."))
    with AppClient(place) as client:
        thread = client.start()
        client.run(thread, "one", model="gpt-5.4", effort="low", outputSchema={"type": "object"})
        client.run(thread, "two", clientUserMessageId="mine")
        item = client.wait(lambda message: _client_id(message) == "mine")

    first, second = model.requests
    assert [(each["model"], each["reasoning"]["effort"]) for each in (first, second)] == [("gpt-5.4", "low")] * 2
    assert ["format" in each.get("text", {}) for each in (first, second)] == [True, False]
    assert item["method"] == "item/started"


def _client_id(message: Json) -> Any:
    params: Json = message.get("params") or {}
    return params.get("item", {}).get("clientId")


def test_an_ephemeral_thread_leaves_no_file(place: Place, model: ScriptedResponses) -> None:
    model.add(reply("One."))
    with AppClient(place) as client:
        thread = client.start(ephemeral=True)
        client.run(thread, "one")
        found = client.ask("thread/read", {"threadId": thread})["thread"]
        assert client.ask("thread/list", {})["data"] == []

    assert (found["ephemeral"], found["path"], found["preview"]) == (True, None, "one")
    assert place.ledgers() == []


def test_an_approval_is_asked_between_the_start_and_the_end_of_its_item(place: Place, model: ScriptedResponses) -> None:
    model.add(answer(call("exec_command", {"cmd": "touch made"}, "c1")), reply("Done."))
    with AppClient(place) as client:
        client.decide = lambda _: {"decision": "decline"}
        thread = client.start(approvalPolicy="untrusted")
        client.run(thread, "do it")
        told = client.methods()
        asked = client.wait(lambda message: message.get("method") == "item/commandExecution/requestApproval")
        resolved = client.notice("serverRequest/resolved")

    order = [
        "item/started commandExecution",
        "item/commandExecution/requestApproval",
        "serverRequest/resolved",
        "item/completed commandExecution",
    ]
    assert [each for each in told if each in order] == order
    assert resolved == {"threadId": thread, "requestId": asked["id"]}
    assert (asked["params"]["itemId"], asked["params"]["cwd"]) == ("c1", str(place.cwd))
    assert not (place.cwd / "made").exists()


def test_a_question_shows_the_whole_command_its_folder_and_its_program(place: Place, model: ScriptedResponses) -> None:
    (place.cwd / "bash").symlink_to("/bin/sh")
    wanted = {"command": ["./bash", "-c", "git status"], "justification": "look"}
    model.add(answer(call("shell", wanted, "c1")), reply("Done."))
    with AppClient(place) as client:
        client.decide = lambda _: {"decision": "decline"}
        thread = client.start(approvalPolicy="untrusted")
        client.run(thread, "do it")
        asked = client.wait(lambda message: message.get("method") == "item/commandExecution/requestApproval")["params"]

    assert asked["command"] == asked["commandActions"][0]["command"] == "./bash -c 'git status'"
    assert asked["reason"].startswith(f"with {place.cwd / 'bash'} -> {Path('/bin/sh').resolve()}; ")
    assert asked["reason"].endswith("; look")


def test_the_end_of_the_input_interrupts_what_runs_and_keeps_it(place: Place, model: ScriptedResponses) -> None:
    hold = threading.Event()
    model.add(answer(say("Never."), hold=hold))
    with AppClient(place) as client:
        thread = client.start()
        client.turn(thread, "hi")
        model.wait_for_requests(1)
        assert client.end() == 0
    with AppClient(place) as client:
        turns = client.ask("thread/resume", {"threadId": thread})["thread"]["turns"]

    assert [turn["status"] for turn in turns] == ["interrupted"]


def test_the_memory_is_looked_at_noted_in_and_reset(place: Place) -> None:
    with AppClient(place) as client:
        note = client.ask("memory/note", {"text": "Always run the tests with make test.", "cwd": str(place.cwd)})
        assert Path(note["path"]).is_file()
        read = client.ask("memory/read", {"path": "MEMORY.md"})
        hits = client.ask("memory/search", {"query": "how do I run the tests"})["hits"]
        assert "jobs" in client.ask("memory/status")["status"]
        thread = client.start()
        assert client.ask("thread/memoryMode/set", {"threadId": thread, "mode": "disabled"}) == {}
        assert client.ask("memory/reset", None) == {}

    assert "make test" in read["content"]
    assert "make test" in json.dumps(hits)


def test_models_settings_and_the_account_can_be_read(place: Place) -> None:
    with AppClient(place) as client:
        models = client.ask("model/list", {"limit": 2})
        more = client.ask("model/list", {"limit": 2, "cursor": models["nextCursor"]})
        settings = client.ask("config/read", {})
        account = client.ask("account/read", {})

    assert next((each["id"], each["isDefault"]) for each in models["data"]) == ("gpt-5.5", True)
    assert not {each["id"] for each in models["data"]} & {each["id"] for each in more["data"]}
    assert (settings["config"]["model"], settings["config"]["model_provider"]) == ("gpt-5.5", "mock")
    assert settings["config"]["sandbox_mode"] == "danger-full-access"
    file = {"type": "user", "file": str(place.home / "config.toml"), "profile": None}
    assert (settings["origins"]["sandbox_mode"]["name"], "database" in settings["origins"]) == (file, False)
    assert account["account"] is None
