"""A thread told in order: what was said, what was called and how it went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from commonplace.protocol import items
from commonplace.rollout import transcript
from commonplace.rollout.chain import SkipLog, open_ledger
from commonplace.rollout.transcript import Transcript, output_ok, read_transcript
from ledgers import Json, Script, assistant, function_call, function_output, message, user

DATA = Path(__file__).parent.parent / "data"


def told(path: Path, **more: Any) -> Transcript:
    return read_transcript(open_ledger(path), SkipLog(), **more)


def outputs(folder: str) -> list[str]:
    """Return the texts of every tool output in a recording."""
    found: list[str] = []
    for path in sorted((DATA / folder).glob("rollout-*.jsonl")):
        for line in path.read_bytes().splitlines():
            payload: Json = msgspec.json.decode(line)["payload"]
            if payload.get("type") in ("function_call_output", "custom_tool_call_output"):
                parts: Any = payload["output"]
                found.append(parts if isinstance(parts, str) else "\n".join(part.get("text", "") for part in parts))
    return found


RECORDED: dict[str, tuple[str, str, bool]] = {
    "a command that worked": ("codex_fixtures/b_tools", "Process exited with code 0", True),
    "a command that failed": ("codex_fixtures/b_tools", "Process exited with code 1", False),
    "a command whose output was cut": ("codex_fixtures/b_tools", "Warning: truncated output", True),
    "a patch": ("codex_fixtures/b_tools", "Success. Updated the following files", True),
    "a tool that does not exist": ("codex_fixtures/b_tools", "unsupported call: no_such_tool", False),
    "a command that was interrupted": ("codex_recorded/interrupted_call", "aborted by user", False),
    "a tool of a server": ("codex_recorded/long_mcp_output", "filler", True),
    "an image": ("codex_recorded/image_from_tool", "", True),
    "a new agent": ("codex_recorded/sub_agent_v1", "agent_id", True),
    "a wait for an agent": ("codex_recorded/sub_agent_v2", "Wait completed.", True),
}


@pytest.mark.parametrize("kind", RECORDED)
def test_the_outcome_of_a_recorded_call_is_read_from_its_output(kind: str) -> None:
    folder, fragment, ok = RECORDED[kind]
    (text, *_) = [text for text in outputs(folder) if fragment in text]

    assert ok == output_ok(text)


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("", True),
        ("done", True),
        ('{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}', True),
        ('{"output":"x","metadata":{"exit_code":2,"duration_seconds":0.1}}', False),
        ('{"success":false}', False),
        ('{"success":true}', True),
        ('{"metadata":7}', True),
        ("{ not json", True),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nExit code: 1\n", True),
        ("Exit code: 127\nWall time: 1 seconds\nOutput:\nsh: not found\n", False),
        ("Exit code: -1\n", False),
        ("Wall time: 3 seconds\nProcess running with session ID 5\nOutput:\n", True),
        ("unsupported custom tool call: x", False),
        ("Error: no such file", False),
        ("MCP tool call error: refused", False),
        ("failed to parse function arguments: missing field", False),
        ("tool call failed for x", True),
        ("err: broken", False),
        ("aborted", False),
    ],
)
def test_the_outcome_of_a_call_is_read_from_how_its_output_begins(text: str, ok: bool) -> None:
    assert ok == output_ok(text)
    assert ok == output_ok([items.Content("input_text", text), items.Content("input_image", image_url="data:,")])


def test_calls_and_their_outcomes_stand_in_the_order_of_the_calls(home: Path) -> None:
    script = Script().turn(
        user("go"),
        function_call("a", "first"),
        function_call("b", "second"),
        {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "x"},
        {"type": "local_shell_call", "call_id": "d", "status": "completed", "action": {}},
        function_call("e", "unanswered"),
        {"type": "web_search_call", "status": "completed"},
        {"type": "web_search_call", "status": "failed"},
        {"type": "tool_search_call", "call_id": "f", "execution": "client"},
        {"type": "tool_search_output", "call_id": "f", "execution": "client", "status": "completed"},
        {"type": "image_generation_call", "status": "completed", "result": ""},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "Exit code: 1\n"},
        function_output("b", "Error: no"),
        function_output("a", "fine"),
        function_output("d", "fine"),
    )

    assert [
        ("first", True),
        ("second", False),
        ("apply_patch", False),
        ("local_shell", True),
        ("unanswered", False),
        ("web_search", True),
        ("web_search", False),
        ("tool_search", True),
        ("image_generation", True),
    ] == [(call.name, call.ok) for call in told(script.write_home(home)).calls]


def test_what_the_client_was_shown_of_a_call_counts_more_than_its_text(home: Path) -> None:
    script = Script().item(
        function_call("a"), function_output("a", "fine"), function_call("b"), function_output("b", "Error: x")
    )
    script.event("item_completed", item={"type": "CommandExecution", "id": "a", "exit_code": 3})
    script.event("item_completed", item={"type": "McpToolCall", "id": "b", "status": "completed"})
    script.item(function_call("c"), function_output("c", "fine"))
    script.event("item_completed", item={"type": "FileChange", "id": "c", "status": "declined"})

    assert [False, True, False] == [call.ok for call in told(script.write_home(home)).calls]


def test_only_a_persons_own_words_are_told(home: Path) -> None:
    script = Script().item(
        user("<environment_context>x</environment_context>"),
        message("developer", "rules"),
        user("mine"),
        assistant("yours"),
    )

    assert ["mine"] == told(script.write_home(home)).user_texts


def test_compactions_are_told_with_their_turn_and_our_own_score(home: Path) -> None:
    script = Script().turn(user("a")).compacted([user("s")]).turn(user("b")).compacted(None)
    script.line("commonplace", {"kind": "retention", "score": 0.5}).line("commonplace", {"kind": "snapshot"})
    found = told(script.write_home(home)).compactions

    assert [(1, None), (2, 0.5)] == [(mark.turn, mark.score) for mark in found]


@pytest.mark.parametrize(
    "line",
    [
        ("commonplace", []),
        ("commonplace", "retention"),
        ("compacted", 7),
        ("event_msg", []),
        ("response_item", {"type": "message"}),
        ("response_item", None),
    ],
    ids=str,
)
def test_a_line_that_is_not_what_its_type_says_is_reported(home: Path, line: tuple[str, Any]) -> None:
    path = Script().item(user("a")).line(*line).item(user("b")).write_home(home)
    log = SkipLog()
    found = read_transcript(open_ledger(path), log)

    assert ["a", "b"] == found.user_texts
    assert ["bad_item"] == [entry.reason for entry in log.entries]


def test_items_are_told_as_a_model_would_get_them(home: Path) -> None:
    path = Script().turn(user("a", internal_chat_message_metadata_passthrough={"turn_id": "t"})).write_home(home)
    (item,) = told(path, with_items=True).items

    assert (user("a"), 1) == (msgspec.json.decode(item.item), item.turn)
    assert [] == told(path).items


def test_what_is_told_of_an_endless_thread_is_bounded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "MAX_TEXT_BYTES", 10_000)
    script = Script()
    for number in range(200):
        script.turn(user("x" * 100), function_call(str(number)), function_output(str(number))).compacted([])
    found = told(script.write_home(home), with_items=True)

    assert (200, len(script.lines)) == (found.turns, found.lines)
    assert sum(map(len, found.user_texts)) + 400 * (len(found.calls) + len(found.compactions)) <= 10_000
    assert len(found.calls) > 0
