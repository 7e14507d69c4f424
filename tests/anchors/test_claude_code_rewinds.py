"""The real Claude Code rewinds to the middle of a turn: what we import is what it shows its model afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anchors.claude_driver import ClaudeHome, locate
from anchors.codex_driver import Missing
from anchors.remembering import commonplace
from anchors.scripted_messages import ScriptedMessages, say, use

pytestmark = pytest.mark.anchor


def shown(content: Any) -> list[str]:
    """The words of an item, of Claude Code or of ours; nothing for what the program put there."""
    parts = [content] if isinstance(content, str) else [part.get("text") or part.get("content", "") for part in content]
    return [text for text in map(str, parts) if 0 < len(text) < 30 and not text.startswith("<")]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_turn_that_is_rewound_to_its_middle_is_imported_as_claude_code_shows_it(tmp_path: Path, at: int) -> None:
    binary = locate()
    if isinstance(binary, Missing):
        pytest.skip(binary.reason)
    answers = [
        [say("I look."), use("Bash", {"command": "echo one"}, "t1")],
        [use("Bash", {"command": "echo two"}, "t2")],
        [say("All done.")],
        [say("So be it.")],
        [say("Fine.")],
    ]
    with ScriptedMessages(answers) as server:
        claude = ClaudeHome(binary, tmp_path, server.base_url)
        session = str(json.loads(claude.run("do it", ["--allowedTools", "Bash"]).stdout)["session_id"])
        (path,) = claude.user.glob(f".claude/projects/*/{session}.jsonl")
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        blocks = [record["uuid"] for record in records if record["type"] == "assistant"]
        claude.run("differently", ["--resume", session, "--resume-session-at", blocks[at]])
        claude.run("and on", ["--resume", session])

    theirs = [text for said in server.requests[-1]["messages"] for text in shown(said["content"])]
    environment = {"COMMONPLACE_HOME": str(tmp_path / "ours"), "HOME": str(claude.user)}
    found = commonplace("sessions", "context", str(path), "--json", environment=environment)
    items = json.loads(found)["items"]
    ours = [text for item in items for text in shown(item.get("content") or item.get("output") or [])]

    assert ours == [*theirs, "Fine."]
