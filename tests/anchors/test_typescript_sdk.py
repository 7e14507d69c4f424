"""The published TypeScript SDK of Codex, unchanged, drives `commonplace` instead of Codex."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from anchors import fetch
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, failure, reply, say
from exec_driver import PROGRAM, Place, make_place, run_exec, wait_for_end
from pictures import png

pytestmark = pytest.mark.anchor

Json = dict[str, Any]
SCRIPT = Path(__file__).with_name("sdk_program.mjs")
PACKAGE = fetch.PACKAGES["codex-sdk"]
KEY = "sk-scripted"
USAGE = {"cached_input_tokens": 0, "cache_write_input_tokens": 0, "reasoning_output_tokens": 0}


@pytest.fixture
def sdk() -> Path:
    """The SDK's entry, where it was fetched."""
    folder = fetch.cache() / "codex-sdk"
    if shutil.which("node") is None:
        pytest.skip("no node on PATH, which the SDK runs on")
    if not fetch.fetched(folder, PACKAGE):
        pytest.skip(f"no {PACKAGE} under {folder} (run `make anchors`)")
    return folder / "node_modules" / PACKAGE.rpartition("@")[0] / "dist" / "index.js"


class Client:
    """Somebody's program that uses the SDK, pointed at us."""

    def __init__(self, sdk: Path, root: Path, base_url: str) -> None:
        self.place = Place(root)
        self._sdk = sdk
        self._base_url = base_url
        for folder in (self.place.cwd, root / "user"):
            folder.mkdir(parents=True)
        self._launcher = root / "codex"
        self._launcher.write_text(f'#!/bin/sh\necho $$ > {root}/launched\nexec {shlex.join(PROGRAM)} "$@"\n')
        self._launcher.chmod(0o755)

    def play(self, scene: str, *, thread: Json | None = None, **more: Any) -> Json:
        """Play a scene to its end and return what it found."""
        given = {
            "scene": scene,
            "codexPathOverride": str(self._launcher),
            "baseUrl": self._base_url,
            "apiKey": KEY,
            "env": self.place.environment(),
            "thread": {
                "model": "gpt-5.5",
                "workingDirectory": str(self.place.cwd),
                "skipGitRepoCheck": True,
                "sandboxMode": "danger-full-access",
                **(thread or {}),
            },
            **more,
        }
        done = subprocess.run(
            ["node", str(SCRIPT), str(self._sdk), json.dumps(given)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(self.place.root / "user")},
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)


def shell(command: str, call_id: str = "c1") -> Json:
    return call("exec_command", {"cmd": command}, call_id)


def texts(shown: list[Json], role: str) -> list[str]:
    return [part["text"] for item in shown if item.get("role") == role for part in item["content"] if "text" in part]


def test_a_thread_runs_goes_on_and_is_resumed_by_its_id(sdk: Path, tmp_path: Path) -> None:
    script = [answer(say("I look."), shell("echo hi")), reply("One."), reply("Two."), reply("Three.")]
    with ScriptedResponses(script) as server:
        client = Client(sdk, tmp_path, server.base_url)
        found = client.play("talk")

    assert [turn["finalResponse"] for turn in found["turns"]] == ["One.", "Two.", "Three."]
    assert [item["type"] for item in found["turns"][0]["items"]] == [
        "agent_message",
        "command_execution",
        "agent_message",
    ]
    assert found["turns"][0]["items"][1]["aggregated_output"] == "hi\n"
    assert found["turns"][0]["usage"] == {"input_tokens": 200, "output_tokens": 20, **USAGE}
    assert found["turns"][2]["usage"] == {"input_tokens": 400, "output_tokens": 40, **USAGE}
    assert len(set(found["ids"])) == 1
    assert len(client.place.ledgers()) == 1
    assert texts(server.inputs()[-1], "assistant") == ["I look.", "One.", "Two."]
    assert [said for said in texts(server.inputs()[-1], "user") if said.startswith("turn")] == [
        "turn 0",
        "turn 1",
        "turn 2",
    ]


def test_the_key_reaches_the_server_and_no_command(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([answer(shell("env")), reply("Done.")]) as server:
        client = Client(sdk, tmp_path, server.base_url)
        found = client.play("streamed")

    assert [headers["authorization"] for headers in server.headers] == [f"Bearer {KEY}"] * 2
    assert KEY not in json.dumps(found)
    assert KEY not in client.place.ledgers()[0].read_text("utf-8")


def test_the_answer_follows_a_schema(sdk: Path, tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "number"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    with ScriptedResponses([reply('{"n": 3}')]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("structured", schema=schema)

    assert found["answer"] == {"n": 3}
    wanted = server.requests[0]["text"]["format"]
    assert (wanted["type"], wanted["schema"], wanted["strict"]) == ("json_schema", schema, True)


def test_events_are_streamed_as_they_happen(sdk: Path, tmp_path: Path) -> None:
    plan = call("update_plan", {"plan": [{"step": "look", "status": "completed"}]}, "c0")
    with ScriptedResponses([answer(plan, shell("echo hi; false")), reply("Done.")]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("streamed")

    seen = found["events"]
    assert [event["type"] + " " + event.get("item", {}).get("type", "") for event in seen] == [
        "thread.started ",
        "turn.started ",
        "item.started todo_list",
        "item.started command_execution",
        "item.completed command_execution",
        "item.completed agent_message",
        "item.completed todo_list",
        "turn.completed ",
    ]
    assert seen[4]["item"] == {**seen[3]["item"], "aggregated_output": "hi\n", "exit_code": 1, "status": "failed"}


@pytest.mark.parametrize(
    "thread",
    [
        {"approvalPolicy": "never", "modelReasoningEffort": "high", "webSearchMode": "cached"},
        {"approvalPolicy": "on-request", "networkAccessEnabled": True, "webSearchEnabled": False},
        {"approvalPolicy": "on-failure", "threadSource": "user"},
        {"approvalPolicy": "untrusted", "additionalDirectories": ["user"]},
    ],
    ids=lambda thread: json.dumps(thread)[1:-1].replace('"', ""),
)
def test_every_option_of_a_thread_is_taken(sdk: Path, tmp_path: Path, thread: Json) -> None:
    with ScriptedResponses([reply("Done.")]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("streamed", thread=thread)

    assert found["events"][-1]["type"] == "turn.completed"
    effort = thread.get("modelReasoningEffort", "medium")
    assert server.requests[0]["reasoning"]["effort"] == effort


def test_the_option_of_a_turn_that_means_nothing_here_is_taken(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("Done.")]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("streamed", turn={"cyberAccessProgram": "standard"})

    assert found["events"][-1]["type"] == "turn.completed"


def test_settings_are_taken_as_a_client_of_codex_gives_them(sdk: Path, tmp_path: Path) -> None:
    config = {
        "show_raw_agent_reasoning": True,
        "sandbox_workspace_write": {"network_access": True},
        "notify": ["a", "b"],
    }
    with ScriptedResponses([reply("Done.")]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("streamed", config=config)

    assert found["events"][-1]["type"] == "turn.completed"


def test_a_local_picture_is_shown_to_the_model(sdk: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(png(2, 2))
    with ScriptedResponses([reply("A picture.")]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("picture", image=str(picture))

    assert found["turn"]["finalResponse"] == "A picture."
    content = server.inputs()[0][-1]["content"]
    urls = [part["image_url"] for part in content if part["type"] == "input_image"]
    assert urls == [f"data:image/png;base64,{base64.b64encode(png(2, 2)).decode()}"]
    assert content[-1]["text"] == "What is this?\n\nBe brief."


def test_a_picture_can_come_with_a_turn_that_goes_on(sdk: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(png(2, 2))
    with ScriptedResponses([reply("A picture."), reply("The same.")]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("picture", image=str(picture), again=True)

    assert found["again"]["finalResponse"] == "The same."
    shown: list[Json] = [part for item in server.inputs()[1] for part in item.get("content", [])]
    assert [part["type"] for part in shown].count("input_image") == 2


def test_the_server_is_told_who_asks(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("Done.")]) as server:
        Client(sdk, tmp_path, server.base_url).play("streamed")

    assert [headers["originator"] for headers in server.headers] == ["codex_sdk_ts"]


def test_outside_a_repository_the_sdk_is_told_how_to_go_on(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("Done.")]) as server:
        client = Client(sdk, tmp_path, server.base_url)
        found = client.play("failing", thread={"skipGitRepoCheck": False})
        assert "--skip-git-repo-check" in found["error"]["message"]
        (client.place.cwd / ".git").mkdir()
        assert client.play("failing", thread={"skipGitRepoCheck": False})["error"] is None


def test_an_aborted_turn_ends_its_command_and_can_be_gone_on_with(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([answer(shell("echo $$ > pid; cat fifo")), reply("Going on.")]) as server:
        client = Client(sdk, tmp_path, server.base_url)
        fifo = client.place.cwd / "fifo"
        os.mkfifo(fifo)
        found = client.play("abort", fifo=str(fifo))
        assert wait_for_end(int((tmp_path / "launched").read_text()))
        assert wait_for_end(int((client.place.cwd / "pid").read_text()))
        make_place(tmp_path, server.base_url)
        ran = run_exec(client.place, "resume", found["id"], "go on")

    assert found["error"]["name"] == "AbortError"
    seen = [event["type"] for event in found["events"]]
    assert seen == ["thread.started", "turn.started", "item.started", "item.completed"]
    assert ran.code == 0, ran.out
    assert any(text.startswith("<turn_aborted>") for text in texts(server.inputs()[-1], "user"))


FAILURES: dict[str, list[Answer]] = {
    "at once": [failure("invalid_prompt")],
    "after a command": [answer(shell("echo hi")), failure("invalid_prompt")],
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_turn_is_thrown_with_its_reason(sdk: Path, tmp_path: Path, name: str) -> None:
    with ScriptedResponses(FAILURES[name]) as server:
        found = Client(sdk, tmp_path, server.base_url).play("failing")

    assert "scripted invalid_prompt" in found["error"]["message"]
    assert found["id"]


def test_a_missing_key_is_thrown_as_one_sentence(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses() as server:
        found = Client(sdk, tmp_path, server.base_url).play("failing", apiKey=None)

    assert "OPENAI_API_KEY is not set" in found["error"]["message"]
    assert "Traceback" not in found["error"]["message"]
