"""The real programs install our plugin with their own commands; Codex without trust is told by the server instead."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import processes
from anchors import claude_driver
from anchors.claude_driver import ClaudeHome
from anchors.codex_driver import AppServer, CodexHome, Missing, make_home, run_exec
from anchors.remembering import OTHERS, OURS, clone, commonplace, teach
from anchors.scripted_messages import ScriptedMessages, say
from anchors.scripted_responses import Answer, ScriptedResponses, looking, reply

pytestmark = pytest.mark.anchor

PLUGIN = "commonplace@commonplace"


def written(root: Path) -> Path:
    """The plugin, for a memory that knows two projects."""
    teach(root / "ours", root / "user")
    commonplace("plugin", str(root / "plugin"), environment={"COMMONPLACE_HOME": str(root / "ours")})
    return root / "plugin"


def codex_command(home: CodexHome, *words: str) -> str:
    done = subprocess.run(
        [str(home.binary), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=home.environment(),
        cwd=home.cwd,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_codex_installs_the_plugin_and_removes_it(codex: Path, tmp_path: Path) -> None:
    place = written(tmp_path)
    with ScriptedResponses([reply("Use pnpm.")]) as server:
        home = make_home(codex, tmp_path / "agent", server.base_url)
        clone(home.cwd, "shop")
        before = (home.codex_home / "config.toml").read_bytes()
        codex_command(home, "plugin", "marketplace", "add", str(place))
        codex_command(home, "plugin", "add", PLUGIN)
        with AppServer(home) as app:
            status = app.request("mcpServerStatus/list", {})["data"]
            hooks = app.request("hooks/list", {"cwds": [str(home.cwd)]})["data"][0]["hooks"]
        done = run_exec(home, "How do I run the tests?", options=["--dangerously-bypass-hook-trust"])
        shown = json.dumps(server.inputs()[0])
        codex_command(home, "plugin", "remove", PLUGIN)
        codex_command(home, "plugin", "marketplace", "remove", "commonplace")

    assert [set(each["tools"]) for each in status if each["name"] == "commonplace"] == [
        {"list", "read", "search", "find"}
    ]
    assert {hook["eventName"] for hook in hooks} == {"sessionStart", "sessionEnd"}
    assert {hook["trustStatus"] for hook in hooks} == {"untrusted"}
    assert done.code == 0, done.stderr
    assert OURS in shown
    assert OTHERS not in shown
    left = (home.codex_home / "config.toml").read_bytes()
    assert left.startswith(before.strip())
    assert b"[plugins." not in left
    assert b"[marketplaces." not in left


def test_claude_code_installs_the_plugin_and_removes_it(tmp_path: Path) -> None:
    found = claude_driver.locate()
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    place = written(tmp_path)
    with ScriptedMessages([[say("Use pnpm.")], [say("Bye.")]]) as server:
        home = ClaudeHome(found, tmp_path, server.base_url)
        clone(home.cwd, "shop")
        for words in (("validate", str(place)), ("marketplace", "add", str(place)), ("install", PLUGIN)):
            done = home.command("plugin", *words)
            assert done.returncode == 0, done.stdout + done.stderr
        listed = home.command("mcp", "list").stdout
        home.run("How do I run the tests?")
        for words in (("uninstall", PLUGIN), ("marketplace", "remove", "commonplace")):
            done = home.command("plugin", *words)
            assert done.returncode == 0, done.stdout + done.stderr
        home.run("How do I run the tests?")

    assert "plugin:commonplace:commonplace" in listed
    assert "Connected" in listed
    first, second = (json.dumps(request["messages"]) for request in server.requests)
    assert OURS in first
    assert OTHERS not in first
    assert OURS not in second


def greeted(environment: dict[str, str], folder: Path) -> None:
    """Have the lessons of a folder made ready: a server that needs too long for them greets without."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "codex-mcp-client", "version": "0"},
    }
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n"
    variables = {**environment, "PATH": os.environ["PATH"]}
    while OURS.encode() not in processes.run(["mcp"], given=line, env=variables, cwd=folder).stdout:
        pass


def test_codex_without_trust_is_told_by_the_instructions_of_the_server(codex: Path, tmp_path: Path) -> None:
    def patient(request: dict[str, Any]) -> Answer:
        is_told = OURS in json.dumps(request["tools"])
        return reply("Use pnpm.") if is_told else looking(f"look{len(request['input'])}")

    teach(tmp_path / "ours", tmp_path / "user")
    with ScriptedResponses([patient] * 1000) as server:
        home = make_home(codex, tmp_path / "agent", server.base_url)
        clone(home.cwd, "shop")
        environment = {
            "CODEX_HOME": str(home.codex_home),
            "COMMONPLACE_HOME": str(tmp_path / "ours"),
            "HOME": str(tmp_path / "user"),
        }
        commonplace("setup", "--yes", "--no-learn", environment=environment)
        greeted(environment, home.cwd)
        done = run_exec(home, "How do I run the tests?")
        request = server.requests[-1]
        server.drop()

    assert done.code == 0, done.stderr
    assert "<commonplace_memory" not in json.dumps(request["input"])
    assert OURS in json.dumps(request["tools"])
    assert OTHERS not in json.dumps(request)
