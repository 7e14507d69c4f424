"""The real Codex finds our memory server once `mcp install` has told it, and gets answers from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anchors.codex_driver import AppServer, CodexHome, make_home, run_exec
from anchors.remembering import OTHERS, OURS, clone, commonplace, teach
from anchors.scripted_responses import Answer, ScriptedResponses, answer, call, looking, reply

pytestmark = pytest.mark.anchor

NAMESPACE = "mcp__commonplace"


def installed(codex: Path, root: Path, server: ScriptedResponses) -> CodexHome:
    """A Codex that our own command told about the memory server, in a clone of a project that we know."""
    home = make_home(codex, root / "agent", server.base_url)
    teach(root / "ours", root / "user")
    clone(home.cwd, "shop")
    environment = {
        "CODEX_HOME": str(home.codex_home),
        "COMMONPLACE_HOME": str(root / "ours"),
        "HOME": str(root / "user"),
    }
    commonplace("mcp", "install", "codex", "--yes", environment=environment)
    return home


def outputs_in(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What came of calls, by their ids."""
    return {item["call_id"]: item for item in items if item["type"].endswith("_output")}


def patient(request: dict[str, Any]) -> Answer:
    """Look for our tools until they are there, and call them: Codex answers before its servers have started."""
    known = outputs_in(request["input"])
    if not any('"find"' in json.dumps(output) for output in known.values()):
        return looking(f"look{len(known)}")
    if "c1" not in known:
        return answer(call("search", {"queries": ["pnpm"]}, "c1", namespace=NAMESPACE))
    if "c2" not in known:
        return answer(call("find", {"query": "pnpm or npm?"}, "c2", namespace=NAMESPACE))
    return reply("Use pnpm.")


def test_codex_calls_search_and_find_and_gets_the_answer(codex: Path, tmp_path: Path) -> None:
    with ScriptedResponses([patient] * 1000) as server:
        done = run_exec(installed(codex, tmp_path, server), "How do I run the tests?")
        shown = server.inputs()
        server.drop()

    assert done.code == 0, done.stderr
    outputs = outputs_in(shown[-1])
    found = json.dumps([output for name, output in outputs.items() if name.startswith("look")])
    assert all(f'"{name}"' in found for name in ("find", "search"))
    for name in ("c1", "c2"):
        assert OURS in outputs[name]["output"].replace('\\"', '"')
        assert "quokkas" not in outputs[name]["output"]
    assert [item for request in shown for item in request if OTHERS in json.dumps(item)] == []


def test_codex_lists_our_tools(codex: Path, tmp_path: Path) -> None:
    with ScriptedResponses() as server, AppServer(installed(codex, tmp_path, server)) as app:
        status = app.request("mcpServerStatus/list", {})

    (ours,) = [each for each in status["data"] if each["name"] == "commonplace"]
    assert set(ours["tools"]) == {"list", "read", "search", "find"}


def test_codex_forgets_us_when_it_is_told_to(codex: Path, tmp_path: Path) -> None:
    with ScriptedResponses() as server:
        home = installed(codex, tmp_path, server)
        commonplace("mcp", "uninstall", "codex", "--yes", environment={"CODEX_HOME": str(home.codex_home)})
        with AppServer(home) as app:
            status = app.request("mcpServerStatus/list", {})

    assert [each["name"] for each in status["data"] if each["name"] == "commonplace"] == []
