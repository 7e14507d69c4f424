"""What our app server says is what the schema of the real Codex allows, as the binary prints it itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from app_server.app_client import AppClient

from anchors import codex_driver
from anchors.codex_driver import Missing
from anchors.scripted_responses import ScriptedResponses, answer, call, custom_call, refusal, reply, say
from exec_driver import make_place

pytestmark = pytest.mark.anchor

Json = dict[str, Any]
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"
PLAN = {"plan": [{"step": "look", "status": "in_progress"}]}
THOUGHT: Json = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"}
RESULTS = {
    "thread/start": "ThreadStartResponse",
    "thread/resume": "ThreadResumeResponse",
    "thread/fork": "ThreadForkResponse",
    "thread/list": "ThreadListResponse",
    "thread/loaded/list": "ThreadLoadedListResponse",
    "thread/read": "ThreadReadResponse",
    "thread/turns/list": "ThreadTurnsListResponse",
    "thread/revert": "ThreadRevertResponse",
    "thread/unarchive": "ThreadUnarchiveResponse",
    "thread/unsubscribe": "ThreadUnsubscribeResponse",
    "turn/start": "TurnStartResponse",
    "model/list": "ModelListResponse",
    "config/read": "ConfigReadResponse",
    "account/read": "GetAccountResponse",
    "memory/status": "MemoryStatusResponse",
}


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    """The folder of the real Codex's schemas."""
    binary = codex_driver.locate()
    if isinstance(binary, Missing):
        pytest.skip(binary.reason)
    folder = tmp_path / "schemas"
    home = codex_driver.make_home(binary, tmp_path / "codex", "http://127.0.0.1:9/v1")
    words = ["app-server", "generate-json-schema", "--experimental", "--out", str(folder)]
    subprocess.run([binary, *words], check=True, capture_output=True, env=home.environment(), timeout=100)
    return folder


def read(path: Path) -> Json:
    return cast("Json", json.loads(path.read_text("utf-8")))


def by_method(path: Path) -> dict[str, Json]:
    """The schema of each method of a union."""
    whole = read(path)
    parts: list[Json] = whole["oneOf"]
    return {part["properties"]["method"]["enum"][0]: {"definitions": whole["definitions"], **part} for part in parts}


def wrong(schema: Json, value: Any) -> list[str]:
    validator: Any = jsonschema.Draft7Validator(schema)
    return [f"{[*error.absolute_path]}: {error.message[:200]}" for error in validator.iter_errors(value)]


def play(client: AppClient) -> dict[str, list[Json]]:
    """Do everything once; return the results of each method."""
    found: dict[str, list[Json]] = {}

    def ask(method: str, params: Json) -> Json:
        result = client.ask(method, params)
        found.setdefault(method, []).append(result)
        return result

    def run(thread: str, **more: Any) -> None:
        given = {"threadId": thread, "input": [{"type": "text", "text": "go"}], **more}
        client.finish(ask("turn/start", given)["turn"]["id"])

    cwd = str(client.place.cwd)
    thread = ask("thread/start", {"cwd": cwd})["thread"]["id"]
    run(thread, effort="low", approvalPolicy="untrusted")
    run(thread)
    ask("thread/compact/start", {"threadId": thread})
    client.until(lambda: client.methods().count("turn/completed") == 3)
    turns = ask("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    fork = ask("thread/fork", {"threadId": thread})["thread"]["id"]
    ask("thread/name/set", {"threadId": thread, "name": "called"})
    for method in ("thread/list", "thread/loaded/list", "model/list", "config/read", "account/read", "memory/status"):
        ask(method, {})
    ask("thread/turns/list", {"threadId": thread})
    ask("thread/revert", {"threadId": thread, "beforeTurnId": turns[1]["id"]})
    ask("thread/resume", {"threadId": fork})
    ask("thread/archive", {"threadId": fork})
    ask("thread/unarchive", {"threadId": fork})
    ask("thread/delete", {"threadId": fork})
    ask("account/login/start", {"type": "apiKey", "apiKey": "sk-test"})
    ask("account/logout", {})
    ask("thread/unsubscribe", {"threadId": thread})
    return found


def test_everything_that_is_said_follows_the_schema_of_codex(schemas: Path, tmp_path: Path) -> None:
    work = [THOUGHT, say("I look."), call("update_plan", PLAN, "c0"), call("exec_command", {"cmd": "echo hi"}, "c1")]
    script = [answer(*work), answer(custom_call("apply_patch", PATCH, "c2")), reply("Done.")]
    script += [refusal(400, "bad")] * 3  # a turn, and both tries to sum it up: nothing is compacted
    with ScriptedResponses(script) as model, AppClient(make_place(tmp_path, model.base_url)) as client:
        results = play(client)
        told = [message for message in client.told if "method" in message]
        model.drop()

    unions = {False: "ServerNotification.json", True: "ServerRequest.json"}
    known = {asks: by_method(schemas / file) for asks, file in unions.items()}
    problems = [
        f"{message['method']} {problem}"
        for message in told
        for problem in wrong(known["id" in message][message["method"]], message)
    ]
    problems += [
        f"{method} {problem}"
        for method, name in RESULTS.items()
        for result in results[method]
        for problem in wrong(read(schemas / "v2" / f"{name}.json"), result)
    ]
    assert problems == []
    assert {"error", "turn/diff/updated", "thread/settings/updated", "thread/reverted"} <= {
        each["method"] for each in told
    }
