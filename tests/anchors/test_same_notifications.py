"""The real Codex and our app server get the same script; both tell a client of the same things in the same order."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from app_server.app_client import AppClient

from anchors import codex_driver, progress_server
from anchors.codex_driver import Missing
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, custom_call, reply, say
from exec_driver import make_place

pytestmark = pytest.mark.anchor

Json = dict[str, Any]
PLAN = "Before.\n<proposed_plan>\n# It\n- one\n</proposed_plan>\nAfter."
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"
SERVERS = f"""
[mcp_servers.works]
command = "{sys.executable}"
args = ["{progress_server.__file__}"]
[mcp_servers.broken]
command = "/does/not/exist"
"""
HOOKS = {
    "SessionStart": ["echo from the start"],
    "UserPromptSubmit": ["exit 1", "true"],
    "PreToolUse": ["echo no >&2; exit 2"],
    "Stop": ["""echo '{"continue": false, "stopReason": "enough"}'"""],
}


def session_of(body: Json) -> int:
    """The number by which the model knows the process that it started last."""
    outputs = [json.dumps(item.get("output")) for item in body["input"] if "output" in item["type"]]
    return int(re.findall(r"(?:session ID|as process) (\d+)", " ".join(outputs))[-1])


def steer_process(chars: str, call_id: str) -> Callable[[Json], Answer]:
    def step(body: Json) -> Answer:
        given = {"session_id": session_of(body), "chars": chars, "yield_time_ms": 5_000}
        return answer(call("write_stdin", given, call_id))

    return step


def told_by_codex(
    root: Path, script: list[Any], turns: list[Json], tables: str, hooks: Json, start: Json
) -> list[Json]:
    binary = codex_driver.locate()
    if isinstance(binary, Missing):
        pytest.skip(binary.reason)
    with ScriptedResponses(script) as model:
        home = codex_driver.make_home(binary, root / "codex", model.base_url, tables=tables)
        if hooks:
            groups = {name: [{"hooks": [_command(each)]} for each in commands] for name, commands in hooks.items()}
            (home.codex_home / "hooks.json").write_text(json.dumps({"hooks": groups}))
            with codex_driver.AppServer(home) as app:
                found = app.request("hooks/list", {"cwds": [str(home.cwd)]})["data"][0]["hooks"]
            trusted = [f'[hooks.state."{each["key"]}"]\ntrusted_hash = "{each["currentHash"]}"' for each in found]
            with (home.codex_home / "config.toml").open("a") as file:
                file.write("\n".join(trusted))
        with codex_driver.AppServer(home) as app:
            thread = app.start_thread(**start)
            if "mcp_servers" in tables:
                app.wait("mcpServer/startupStatus/updated", lambda params: params["status"] == "ready")
            for more in turns:
                app.turn(thread, "go", **more)
        return [message for message in app.log if message["dir"] == "in" and "method" in message]


def told_by_us(root: Path, script: list[Any], turns: list[Json], tables: str, hooks: Json, start: Json) -> list[Json]:
    with ScriptedResponses(script) as model:
        place = make_place(root / "ours", model.base_url)
        names = {name: re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in hooks}
        own = [f"[[hooks.{names[name]}]]\ncommand = {json.dumps(each)}" for name in hooks for each in hooks[name]]
        with (place.home / "config.toml").open("a") as file:
            file.write("\n".join([tables, *own]))
        with AppClient(place) as client:
            thread = client.start(**start)
            for more in turns:
                client.run(thread, "go", **more)
            client.end()
        return [message for message in client.told if "method" in message]


def _command(text: str) -> Json:
    return {"type": "command", "command": text}


def both(
    root: Path,
    script: list[Any],
    turns: list[Json] | None = None,
    *,
    tables: str = "",
    hooks: Json | None = None,
    start: Json | None = None,
) -> tuple[list[Json], list[Json]]:
    wanted = turns or [{}]
    return (
        told_by_codex(root, [*script], wanted, tables, hooks or {}, start or {}),
        told_by_us(root, [*script], wanted, tables, hooks or {}, start or {}),
    )


def of(told: list[Json], *names: str) -> list[Json]:
    return [message["params"] for message in told if any(message["method"].startswith(name) for name in names)]


def test_hooks_are_told_alike(tmp_path: Path) -> None:
    script = [answer(call("exec_command", {"cmd": "echo hi"}, "c1")), reply("Done.")]

    def runs(told: list[Json]) -> list[Any]:
        found: list[Any] = []
        for message in told:
            params = message["params"]
            if message["method"].startswith("hook/"):
                run = params["run"]
                kept = ("eventName", "scope", "status", "handlerType", "executionMode")
                entries = [(each["kind"], each["text"]) for each in run["entries"] if each["kind"] != "error"]
                timed = run["completedAt"] is not None and run["durationMs"] is not None
                found.append((message["method"], *(run[name] for name in kept), entries, timed))
            elif message["method"].startswith("item/started"):
                found.append(params["item"]["type"])
        return found

    codex, ours = both(tmp_path, script, hooks=HOOKS)
    together = [entry for entry in runs(codex) if entry != "commandExecution"]
    assert sorted(map(str, together)) == sorted(map(str, [each for each in runs(ours) if each != "dynamicToolCall"]))
    assert [set(run["run"]) for run in of(codex, "hook/")] == [set(run["run"]) for run in of(ours, "hook/")]
    assert {"blocked", "failed", "stopped", "completed"} <= {run["run"]["status"] for run in of(ours, "hook/completed")}


def test_servers_are_told_alike(tmp_path: Path) -> None:
    script = [answer(call("work", {}, "c1", namespace="mcp__works")), reply("Done.")]

    def statuses(told: list[Json]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for params in of(told, "mcpServer/startupStatus/updated"):
            found.setdefault(params["name"], []).append((params["status"], params["error"] is not None, set(params)))
        return found

    codex, ours = both(tmp_path, script, tables=SERVERS)
    assert statuses(codex) == statuses(ours)
    assert [status for status, _, _ in statuses(ours)["broken"]] == ["starting", "failed"]
    for told in (codex, ours):  # neither tells of the progress that a server's tool makes
        assert [
            item["item"]["status"] for item in of(told, "item/completed") if item["item"]["type"] == "mcpToolCall"
        ] == ["completed"]
        assert of(told, "item/mcpToolCall/progress") == []


def test_a_command_that_goes_on_is_told_alike(tmp_path: Path) -> None:
    command = {"cmd": "read line; echo got $line; exit 3", "yield_time_ms": 250, "tty": True}
    ours_command = {"cmd": "read line; echo got $line; exit 3", "background": True}
    last = {"cmd": "exec sleep 300", "yield_time_ms": 250}

    def script(first: Json) -> list[Any]:
        return [
            answer(call("exec_command", first, "c1")),
            reply("It runs."),
            steer_process("hello\n", "c2"),
            answer(call("exec_command", last, "c3")),
            reply("Done."),
        ]

    def course(told: list[Json]) -> list[Any]:
        turns = [params["turn"]["id"] for params in of(told, "turn/started")]
        found: list[Any] = []
        for message in told:
            params = message["params"]
            if message["method"].endswith("terminalInteraction"):
                found.append(("input", params["itemId"], params["stdin"], turns.index(params["turnId"])))
            elif params.get("item", {}).get("type") == "commandExecution" and message["method"] == "item/completed":
                item = params["item"]
                found.append((item["id"], item["status"], item["exitCode"], turns.index(params["turnId"])))
            elif message["method"] == "turn/completed":
                found.append("end")
        return found

    codex = told_by_codex(tmp_path, script(command), [{}, {}], "", {}, {})
    ours = told_by_us(tmp_path, script(ours_command), [{}, {}], "", {}, {})
    assert (
        course(ours)[:4] == course(codex)[:4] == ["end", ("input", "c1", "hello\n", 1), ("c1", "failed", 3, 0), "end"]
    )


def test_a_proposed_plan_is_told_alike(tmp_path: Path) -> None:
    settings = {"model": "gpt-5.5", "reasoning_effort": None, "developer_instructions": None}
    plan, default = ({"collaborationMode": {"mode": mode, "settings": settings}} for mode in ("plan", "default"))
    only = "<proposed_plan>\n- only\n</proposed_plan>"
    script = [reply(PLAN), reply(only), reply("a <proposed_plan> b"), reply("<proposed_plan>\nopen"), reply(PLAN)]

    def course(told: list[Json]) -> list[Any]:
        found: list[Any] = []
        for message in told:
            item = message["params"].get("item", {})
            if message["method"] in ("item/started", "item/completed") and item["type"] in ("plan", "agentMessage"):
                found.append((message["method"], item["type"], item["text"]))
        return found

    codex, ours = both(tmp_path, script, [plan] * 4 + [default])
    assert course(codex) == course(ours)
    deltas = ["".join(params["delta"] for params in of(told, "item/plan/delta")) for told in (codex, ours)]
    assert deltas[0] == deltas[1] == "# It\n- one\n- only\nopen"


def test_items_of_the_models_view_are_told_to_who_asks(tmp_path: Path) -> None:
    script = [answer(call("exec_command", {"cmd": "echo hi"}, "c1")), reply("Done.")]

    def kinds(told: list[Json]) -> list[Any]:
        items = [params["item"] for params in of(told, "rawResponseItem/completed")]
        shown = [(item["type"], item.get("role")) for item in items]
        return shown[shown.index(("function_call", None)) :]

    codex, ours = both(tmp_path, script, start={"experimentalRawEvents": True})
    assert kinds(codex) == kinds(ours)
    assert of(told_by_us(tmp_path / "again", [reply("Hm.")], [{}], "", {}, {}), "rawResponseItem") == []


def test_a_setting_that_means_nothing_is_told_after_the_handshake(tmp_path: Path) -> None:
    codex, ours = both(tmp_path, [reply("Hm.")], tables="[nonsense]\nx = 1\n")
    for told in (codex, ours):
        assert told[0]["method"] == "configWarning"
        assert "nonsense" in told[0]["params"]["summary"]


def test_neither_tells_of_a_patch_that_streams_or_of_a_compaction(tmp_path: Path) -> None:
    """`item/fileChange/patchUpdated` needs a feature under development, `thread/compacted` is no longer sent."""
    codex, ours = both(tmp_path, [answer(custom_call("apply_patch", PATCH, "c1")), reply("Done.")])
    for told in (codex, ours):
        assert of(told, "item/fileChange/patchUpdated", "thread/compacted") == []
        assert len(of(told, "turn/diff/updated")) >= 1


def test_another_model_that_answers_is_told_once_in_a_turn(tmp_path: Path) -> None:
    work = call("exec_command", {"cmd": "true"}, "c1")
    script = [
        Answer((work,), named="gpt-5.4"),
        Answer((say("Done."),), named="gpt-5.4"),
        Answer((say("So."),), named="GPT-5.5"),
    ]

    def shown(told: list[Json]) -> list[Any]:
        return [(params["fromModel"], params["toModel"], params["reason"]) for params in of(told, "model/rerouted")]

    codex, ours = both(tmp_path, script, [{}, {}])
    assert shown(codex) == shown(ours) == [("gpt-5.5", "gpt-5.4", "highRiskCyberActivity")]
    dated = told_by_us(tmp_path / "dated", [Answer((say("Hm."),), named="gpt-5.5-2026-03-01")], [{}], "", {}, {})
    assert shown(dated) == []  # Codex takes a dated release for another model
