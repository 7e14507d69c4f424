"""The harness keeps its promises: a strict script, a Codex that sees it, recordings that hold together."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import cast

import pytest
from codex_driver import AppServer, Missing, locate, make_home, run_exec
from scripted_responses import Json, ScriptedResponses, ScriptError, answer, reply, say

RECORDED = Path(__file__).parents[1] / "data" / "codex_recorded"
PROMPT: Json = {"input": [{"type": "message", "role": "user", "content": []}]}


def ask(server: ScriptedResponses, body: Json) -> str:
    """Send one request as a client would and return the event stream."""
    request = urllib.request.Request(f"{server.base_url}/responses", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        return cast("bytes", response.read()).decode()


def test_an_answer_is_streamed_and_its_request_is_kept() -> None:
    with ScriptedResponses([reply("hello")]) as server:
        stream = ask(server, PROMPT)

    names = [line.removeprefix("event: ") for line in stream.splitlines() if line.startswith("event: ")]
    assert names == [
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.output_item.done",
        "response.completed",
    ]
    assert server.inputs() == [PROMPT["input"]]


def test_a_request_beyond_the_script_is_refused_and_fails_the_harness() -> None:
    with (
        pytest.raises(ScriptError, match="request 1 is not in the script"),
        ScriptedResponses() as server,
        pytest.raises(urllib.error.HTTPError) as refused,
    ):
        ask(server, PROMPT)

    refused.value.close()


def test_an_answer_nobody_asked_for_fails_the_harness() -> None:
    with (
        pytest.raises(ScriptError, match="1 answers were never asked for"),
        ScriptedResponses([reply("hello")]),
    ):
        pass


def test_a_held_answer_waits_for_its_event() -> None:
    release = threading.Event()
    streams: list[str] = []
    with ScriptedResponses([answer(say("late"), hold=release)]) as server:
        client = threading.Thread(target=lambda: streams.append(ask(server, PROMPT)))
        client.start()
        server.wait_for_requests(1)
        before = list(streams)
        release.set()
        client.join(60)

    assert before == []
    assert "late" in streams[0]


def test_a_missing_binary_is_a_reason(tmp_path: Path) -> None:
    assert isinstance(locate(tmp_path), Missing)


@pytest.mark.anchor
def test_codex_exec_shows_the_prompt_to_the_scripted_model(codex: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("hello")]) as server:
        done = run_exec(make_home(codex, tmp_path, server.base_url), "say hello")

    assert done.code == 0
    assert server.inputs()[0][-1]["content"] == [{"type": "input_text", "text": "say hello"}]


@pytest.mark.anchor
def test_the_app_server_runs_two_turns_of_one_thread(codex: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("one"), reply("two")]) as server:
        home = make_home(codex, tmp_path, server.base_url)
        with AppServer(home) as app:
            thread = app.start_thread()
            app.turn(thread, "first")
            app.turn(thread, "second")

    assert [item["type"] for item in server.inputs()[1]][-3:] == ["message", "message", "message"]
    assert len(home.rollouts()) == 1


def test_a_recorded_fork_ends_at_a_line_of_its_parent() -> None:
    for folder in RECORDED.iterdir():
        files = {path.stem[-36:]: path.read_bytes() for path in folder.glob("rollout-*.jsonl")}
        for content in files.values():
            base = json.loads(content.splitlines()[0])["payload"].get("history_base")
            if base is not None:
                assert files[base["thread_id"]][: base["end_byte_offset"]].endswith(b"\n"), folder.name


def test_a_recording_tells_whose_each_model_input_is() -> None:
    for folder in RECORDED.iterdir():
        inputs = json.loads((folder / "model_inputs.json").read_text("utf-8"))
        requests = json.loads((folder / "requests.json").read_text("utf-8"))
        names = "".join(path.name for path in folder.glob("rollout-*.jsonl"))

        assert len(inputs) == len(requests), folder.name
        assert all(request["thread_id"] in names for request in requests), folder.name
