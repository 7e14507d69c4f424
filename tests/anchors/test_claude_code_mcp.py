"""The real Claude Code finds our memory server once `mcp install` has told it; its sessions begin and end with us."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anchors.claude_driver import ClaudeHome, locate
from anchors.codex_driver import Missing
from anchors.remembering import OTHERS, OURS, clone, commonplace, teach
from anchors.scripted_messages import ScriptedMessages, say, use

pytestmark = pytest.mark.anchor

SEARCH, FIND = "mcp__commonplace__search", "mcp__commonplace__find"


@pytest.fixture
def claude() -> Path:
    found = locate()
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    return found


def installed(claude: Path, root: Path, server: ScriptedMessages) -> ClaudeHome:
    """A Claude Code that our own command told about the memory server, in a clone of a project that we know."""
    home = ClaudeHome(claude, root, server.base_url)
    teach(root / "ours", home.user)
    clone(home.cwd, "shop")
    commonplace("mcp", "install", "claude-code", "--yes", environment=ours(home))
    return home


def ours(home: ClaudeHome) -> dict[str, str]:
    return {"COMMONPLACE_HOME": str(home.root / "ours"), "HOME": str(home.user)}


def test_claude_code_begins_with_memory_calls_our_tools_and_is_imported(claude: Path, tmp_path: Path) -> None:
    script = [
        [use(SEARCH, {"queries": ["pnpm"]}, "toolu_1")],
        [use(FIND, {"query": "pnpm or npm?"}, "toolu_2")],
        [say("Use pnpm.")],
    ]
    with ScriptedMessages(script) as server:
        home = installed(claude, tmp_path, server)
        done = home.run("How do I run the tests?", ["--allowedTools", f"{SEARCH},{FIND}"])

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["result"] == "Use pnpm."
    assert (server.steps, server.unexpected) == ([], [])

    first, second, third = server.requests
    names = {tool["name"] for tool in first["tools"] if tool["name"].startswith("mcp__commonplace__")}
    assert names == {f"mcp__commonplace__{name}" for name in ("list", "read", "search", "find")}
    said = json.dumps(first["messages"])
    assert r"<commonplace_memory project=\"github.com/acme/shop\">" in said
    assert OURS in said
    for request, call_id in ((second, "toolu_1"), (third, "toolu_2")):
        (given,) = [
            block
            for message in request["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block.get("tool_use_id") == call_id
        ]
        assert not given.get("is_error")
        assert OURS in json.dumps(given)
        assert "quokkas" not in json.dumps(given)
    assert OTHERS not in json.dumps(server.requests)

    listed = json.loads(commonplace("sessions", "list", "--json", environment=ours(home)))["threads"]
    imported = {thread["thread_id"]: thread for thread in listed}[result["session_id"]]
    assert imported["source"] == "claude-code"
    assert imported["project"] == "github.com/acme/shop"


def test_what_came_out_of_memory_is_not_learned_again(claude: Path, tmp_path: Path) -> None:
    script = [[use(SEARCH, {"queries": ["pnpm"]}, "toolu_1")], [say("Use pnpm.")]]
    with ScriptedMessages(script) as server:
        home = installed(claude, tmp_path, server)
        before = json.loads(commonplace("memory", "list", "--json", environment=ours(home)))["entries"]
        done = home.run("How do I run the tests?", ["--allowedTools", SEARCH])
    assert done.returncode == 0, done.stderr
    commonplace("memory", "run", environment={**ours(home), "COMMONPLACE_NOW": "2026-12-01T00:00:00Z"})
    after = json.loads(commonplace("memory", "list", "--json", environment=ours(home)))["entries"]

    def support(entries: list[dict[str, object]]) -> dict[object, object]:
        return {each["text"]: each["support"] for each in entries if "pnpm" in str(each["text"])}

    assert support(after) == support(before)


def test_claude_code_connects_and_forgets_us_when_it_is_told_to(claude: Path, tmp_path: Path) -> None:
    with ScriptedMessages() as server:
        home = installed(claude, tmp_path, server)
        listed = home.command("mcp", "list")
        commonplace("mcp", "uninstall", "claude-code", "--yes", environment=ours(home))
        gone = home.command("mcp", "list")
        home.run("hello")

    assert "commonplace" in listed.stdout
    assert "Connected" in listed.stdout
    assert "commonplace" not in gone.stdout
    assert "<commonplace_memory" not in json.dumps(server.requests)
