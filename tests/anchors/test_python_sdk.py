"""The published Python SDK of Codex, unchanged and in its own environment, drives `commonplace app-server`."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from anchors import fetch
from anchors.scripted_responses import ScriptedResponses, answer, call, custom_call, refusal, reply, say
from exec_driver import PROGRAM, make_place
from pictures import png

pytestmark = pytest.mark.anchor

Json = dict[str, Any]
PROGRAM_FILE = Path(__file__).with_name("python_sdk_program.py")
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"


@pytest.fixture
def sdk() -> Path:
    """The interpreter that has the SDK, where it was fetched."""
    if not fetch.has_python_sdk():
        pytest.skip(f"no {fetch.PYTHON_SDK} under {fetch.cache()} (run `make anchors`)")
    return fetch.python_sdk()


class SdkProgram:
    """Somebody's program that uses the SDK, pointed at us."""

    def __init__(self, sdk: Path, root: Path, server: ScriptedResponses, **settings: Any) -> None:
        self.place = make_place(root, server.base_url, settings=settings)
        self._sdk = sdk
        self._server = server

    def play(self, scene: str, hold: threading.Event | None = None, **more: Any) -> Any:
        """Play a scene to its end and return what it found."""
        given = {
            "scene": scene,
            "cwd": str(self.place.cwd),
            "env": self.place.environment(),
            "launch": {"launch_args_override": [*PROGRAM, "app-server", "--listen", "stdio://"]},
            **more,
        }
        with subprocess.Popen(
            [str(self._sdk), str(PROGRAM_FILE), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            assert program.stderr is not None
            watch = threading.Timer(60, program.kill)
            watch.start()
            try:
                for line in program.stdout:
                    told: Json = json.loads(line)
                    if "found" in told:
                        return told["found"]
                    if "wait" in told:
                        self._server.wait_for_requests(told["wait"])
                        program.stdin.write("\n")
                        program.stdin.flush()
                    elif hold is not None:
                        hold.set()
                raise AssertionError(program.stderr.read())
            finally:
                watch.cancel()


def shell(command: str, call_id: str = "c1", **more: Any) -> Json:
    return call("exec_command", {"cmd": command, **more}, call_id)


def texts(shown: list[Json], role: str) -> list[str]:
    return [part["text"] for item in shown if item.get("role") == role for part in item["content"] if "text" in part]


def test_a_thread_runs_and_goes_on(sdk: Path, tmp_path: Path) -> None:
    script = [answer(say("I look.", phase="commentary"), shell("echo hi")), reply("One."), reply("Two.")]
    with ScriptedResponses(script) as server:
        found = SdkProgram(sdk, tmp_path, server).play("talk")

    assert [turn["answer"] for turn in found["turns"]] == ["One.", "Two."]
    assert found["turns"][0]["items"] == ["userMessage", "agentMessage", "commandExecution", "agentMessage"]
    assert [turn["tokens"] for turn in found["turns"]] == [220, 330]
    assert found["metadata"]["serverInfo"]["name"] == "codex_python_sdk"
    assert texts(server.inputs()[-1], "user")[-2:] == ["turn 0", "turn 1"]


def test_the_program_is_found_as_the_sdk_finds_codex(sdk: Path, tmp_path: Path) -> None:
    """`codex_bin` starts it with the settings before the command."""
    launcher = tmp_path / "codex"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    launcher.chmod(0o755)
    with ScriptedResponses([reply("One."), reply("Two.")]) as server:
        program = SdkProgram(sdk, tmp_path, server, model=None)
        launch = {"codex_bin": str(launcher), "config_overrides": ['model="gpt-5.5"', 'model_provider="mock"']}
        found = program.play("talk", launch=launch)

    assert [turn["answer"] for turn in found["turns"]] == ["One.", "Two."]
    assert {request["model"] for request in server.requests} == {"gpt-5.5"}


def test_a_turn_is_streamed(sdk: Path, tmp_path: Path) -> None:
    plan = call("update_plan", {"plan": [{"step": "look", "status": "in_progress"}]}, "c0")
    script = [answer(plan, shell("echo hi")), answer(custom_call("apply_patch", PATCH, "c2")), reply("Done.")]
    with ScriptedResponses(script) as server:
        found = SdkProgram(sdk, tmp_path, server).play("stream")

    events = found["events"]
    assert "UnknownNotification" not in found["kinds"], list(zip(events, found["kinds"], strict=True))
    assert (events[0], events[-1]) == ("turn/started", "turn/completed")
    assert events.count("item/started") == events.count("item/completed") == 4
    assert (found["text"], found["output"]) == ("Done.", "hi\n")
    assert found["plan"][0]["plan"] == [{"step": "look", "status": "inProgress"}]
    assert "+++ b/a.txt\n@@ -0,0 +1 @@\n+hello\n" in found["diff"][-1]


def test_what_another_program_says_is_a_turn(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("Read.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("external")

    assert (found["status"], found["answer"]) == ("completed", "Read.")
    assert texts(server.inputs()[0], "user")[-1] == "<external_mail>You have mail.</external_mail>"


def test_a_running_turn_is_steered(sdk: Path, tmp_path: Path) -> None:
    hold = threading.Event()
    with ScriptedResponses([answer(say("First."), hold=hold), reply("Both.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("steer", hold)

    assert found["same"]
    assert (found["status"], found["answer"]) == ("completed", "Both.")
    assert texts(server.inputs()[1], "user")[-2:] == ["begin", "and also this"]


def test_a_turn_that_is_started_while_one_runs_joins_it(sdk: Path, tmp_path: Path) -> None:
    hold = threading.Event()
    with ScriptedResponses([answer(say("First."), hold=hold), reply("Both.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("join", hold)

    assert found["same"]
    assert (found["first"]["answer"], found["second"]["answer"]) == ("Both.", "Both.")


def test_a_turn_is_interrupted_and_the_thread_goes_on(sdk: Path, tmp_path: Path) -> None:
    hold = threading.Event()
    with ScriptedResponses([answer(say("Never."), hold=hold), reply("Again.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("interrupt", hold)

    assert (found["status"], found["after"]["answer"]) == ("interrupted", "Again.")
    assert found["late"]["kind"] == "InvalidRequestError"


def test_a_thread_is_resumed_here_and_in_another_process(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two."), reply("Three.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("resume")

    assert found["id"]
    assert (found["again"]["answer"], found["third"]["answer"]) == ("Two.", "Three.")
    assert found["turns"] == [["userMessage", "agentMessage"]] * 2
    assert texts(server.inputs()[-1], "assistant") == ["One.", "Two."]


def test_a_thread_is_forked_whole_and_at_a_turn(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two."), reply("Three.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("fork")

    assert found["from"]
    assert (found["answer"]["answer"], found["turns"], found["old"], found["earlier"]) == ("Three.", 3, 2, 1)
    assert texts(server.inputs()[-1], "assistant") == ["One.", "Two."]


def test_threads_are_listed_named_archived_and_read(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("Two.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("threads")

    assert found["listed"] == [["the second thing", None], ["the first thing", "called so"]]
    assert found["pages"] == [True, True, None]
    assert found["after"]
    assert found["archived"]
    assert found["failed"]["kind"] == "InvalidRequestError"
    assert (found["read"], found["texts"]) == (["completed"], ["the first thing"])
    assert found["found"] == ["the second thing"]


def test_a_thread_is_compacted(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("One."), reply("The summary."), reply("Two.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("compact")

    assert found["after"]["answer"] == "Two."
    assert "item" in found["seen"]
    assert "The summary." in json.dumps(server.inputs()[2])


@pytest.mark.parametrize(
    ("decision", "status", "exists"), [("accept", "completed", True), ("decline", "declined", False)]
)
@pytest.mark.parametrize("sandbox", ["danger-full-access", "workspace-write"])
def test_a_command_is_asked_about(
    sdk: Path, tmp_path: Path, decision: str, status: str, exists: bool, sandbox: str
) -> None:
    with ScriptedResponses([answer(shell("touch made")), reply("Done.")]) as server:
        program = SdkProgram(sdk, tmp_path, server)
        found = program.play("approvals", policy="untrusted", sandbox=sandbox, decisions=[decision])

    ((method, command, _),) = found["asked"]
    assert method == "item/commandExecution/requestApproval"
    assert "touch made" in command
    assert ["commandExecution", status] in found["items"]
    assert found["status"] == "completed"
    assert (program.place.cwd / "made").exists() is exists


def test_an_escalated_command_is_asked_about_once_for_the_session(sdk: Path, tmp_path: Path) -> None:
    more = {"sandbox_permissions": "require_escalated", "justification": "It must."}
    script = [answer(shell("touch made", "c1", **more)), answer(shell("touch made", "c2", **more)), reply("Done.")]
    with ScriptedResponses(script) as server:
        program = SdkProgram(sdk, tmp_path, server)
        once = ["acceptForSession"]
        found = program.play("approvals", policy="on-request", sandbox="read-only", decisions=once)

    assert len(found["asked"]) == 1
    assert (program.place.cwd / "made").exists()


@pytest.mark.parametrize(
    ("decision", "status", "exists"), [("accept", "completed", True), ("decline", "declined", False)]
)
def test_a_change_of_files_is_asked_about(sdk: Path, tmp_path: Path, decision: str, status: str, exists: bool) -> None:
    with ScriptedResponses([answer(custom_call("apply_patch", PATCH, "c1")), reply("Done.")]) as server:
        program = SdkProgram(sdk, tmp_path, server)
        found = program.play("approvals", policy="untrusted", sandbox="workspace-write", decisions=[decision])

    assert [each[0] for each in found["asked"]] == ["item/fileChange/requestApproval"]
    assert ["fileChange", status] in found["items"]
    assert (program.place.cwd / "a.txt").exists() is exists


def test_a_cancelled_approval_interrupts_the_turn(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([answer(shell("touch made"))]) as server:
        program = SdkProgram(sdk, tmp_path, server)
        found = program.play("approvals", policy="untrusted", sandbox="danger-full-access", decisions=["cancel"])

    assert found["status"] == "interrupted"
    assert not (program.place.cwd / "made").exists()


def test_settings_reach_the_model(sdk: Path, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(png(8, 8))
    with ScriptedResponses([reply('{"n": 3}'), reply("A picture.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("settings", picture=str(picture))

    first, second = server.requests
    assert first["model"] == "gpt-5.4"
    assert "You are a parrot." in json.dumps(first)
    assert first["reasoning"]["effort"] == "high"
    assert first["text"]["format"]["schema"]["required"] == ["n"]
    assert "Speak like a pirate." in texts(first["input"], "developer")
    parts: list[Json] = [part for item in cast("list[Json]", second["input"]) for part in item.get("content") or ()]
    assert [part["type"] for part in parts].count("input_image") == 1
    assert found["input"] == ["text", "localImage"]
    assert ["gpt-5.5", True] in found["models"]
    assert len(found["models"]) > 3
    assert found["account"]["account"] is None


def test_errors_have_their_kinds(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([refusal(400, "bad"), reply("Yes.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("errors")

    kinds = {name: each["kind"] for name, each in found.items() if name != "after"}
    assert kinds == {
        "failed": "RuntimeError",
        "unknown": "InvalidRequestError",
        "no uuid": "InvalidRequestError",
        "steer": "InvalidRequestError",
        "method": "MethodNotFoundError",
        "params": "InvalidParamsError",
        "large": "InvalidParamsError",
        "again": "InvalidRequestError",
    }
    assert found["after"]["answer"] == "Yes."


def test_what_is_experimental_needs_the_capability(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("plain")

    assert "turn/start.additionalContext requires experimentalApi capability" in found["field"]["text"]
    assert "memory/reset requires experimentalApi capability" in found["method"]["text"]


def test_threads_run_beside_each_other(sdk: Path, tmp_path: Path) -> None:
    with ScriptedResponses([reply("Hello."), reply("Hello.")]) as server:
        found = SdkProgram(sdk, tmp_path, server).play("beside")

    assert [each["answer"] for each in found] == ["Hello.", "Hello."]
