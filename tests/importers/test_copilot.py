"""Copilot CLI: whose words, what failed, what was compacted or taken back, and which repository it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import conversion
import pytest
from command import Command
from copilot_files import SESSION, event, result, session, start, two_turns

from commonplace.importers import copilot, sources
from commonplace.importers.converter import thread_id_for


def convert(tmp_path: Path, *events: dict[str, Any], begin: dict[str, Any] | None = None) -> conversion.Thread:
    path = agents.write_lines(tmp_path / "events.jsonl", [begin or start(), *events])
    return conversion.read(path, copilot.convert).main


def test_a_session_has_its_turns_calls_and_place(tmp_path: Path) -> None:
    thread = conversion.read(session(tmp_path), copilot.convert).main

    assert (thread.head.thread_id, thread.head.cwd, thread.head.branch) == (SESSION, "/srv/shop/api", "main")
    assert (thread.head.repository, thread.head.made_from) == ("https://github.com/acme/shop", "/srv/shop")
    assert (thread.head.started, thread.head.version) == ("2026-09-28T10:00:00.000Z", "0.0.407")
    assert thread.user_texts == ["fix the tests", "try again"]
    assert thread.answers == ["I run them.", "Done."]
    assert (thread.calls, thread.outputs) == (["bash"], [("1 failed\n<exited with exit code 2>", False)])
    assert [item["content"][0]["text"] for item in thread.items if item["type"] == "reasoning"] == ["Tests first."]


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        ({"content": "use tabs"}, ["user.text"]),
        ({"content": "use tabs", "transformedContent": "<date>use tabs"}, ["user.text"]),
        ({"content": "go on by yourself", "source": "autopilot"}, ["imported.injected"]),
        ({"content": "<commonplace_memory>\nold"}, ["memory.injected"]),
        ({"content": "look", "attachments": [{"type": "file", "path": "/a.py"}]}, ["user.text", "imported.file"]),
        ({"attachments": [{"type": "blob", "mimeType": "image/png", "data": "QUJD"}]}, ["user.image"]),
    ],
)
def test_each_part_of_a_user_message_says_whose_it_is(tmp_path: Path, data: dict[str, Any], kinds: list[str]) -> None:
    assert kinds == [kind for kind, _ in convert(tmp_path, event("user.message", data)).said]


@pytest.mark.parametrize(
    ("tool", "data", "ok", "refused"),
    [
        ("bash", {"success": True, "result": {"content": "x\n<exited with exit code 0>"}}, True, False),
        ("bash", {"success": True, "result": {"content": "x\n<exited with exit code 1>"}}, False, False),
        ("view", {"success": True, "result": {"content": "about <exited with exit code 1>"}}, True, False),
        ("view", {"success": False, "error": {"message": "no such file", "code": "failure"}}, False, False),
        ("bash", {"success": False, "error": {"message": "no", "code": "rejected"}}, False, True),
    ],
)
def test_a_result_says_whether_the_call_worked(
    tmp_path: Path, tool: str, data: dict[str, Any], ok: bool, refused: bool
) -> None:
    thread = convert(tmp_path, *result(tool, {}, **data))
    (origin,) = [origin for _, value, origin in thread.lines if value.get("type") == "function_call_output"]

    assert (origin.ok, origin.refused) == (ok, refused)


def test_an_answer_to_a_question_is_the_persons_reply(tmp_path: Path) -> None:
    given = {"success": True, "result": {"content": "User responded: 8080"}}

    assert convert(tmp_path, *result("ask_user", {"question": "Which port?"}, **given)).said == [
        ("imported.reply", "Which port? 8080")
    ]


def test_compactions_interruptions_and_turns_that_were_taken_back(tmp_path: Path) -> None:
    thread = convert(
        tmp_path,
        event("user.message", {"content": "one"}, id="u1"),
        event("abort", {"reason": "user initiated"}),
        event("session.compaction_complete", {"success": True, "summaryContent": "One is half done."}),
        event("session.compaction_complete", {"success": False, "summaryContent": "not this"}),
        event("user.message", {"content": "two"}, id="u2"),
        event("session.snapshot_rewind", {"upToEventId": "u2", "eventsRemoved": 1}),
        event("session.snapshot_rewind", {"upToEventId": "gone", "eventsRemoved": 1}),
        event("user.message", {"content": "three"}, id="u3"),
    )

    assert [each["message"] for each in thread.compactions] == ["One is half done."]
    assert (thread.user_kinds, thread.active_texts) == (
        ["user", "interrupt", "compact_summary", "user", "user"],
        ["one", "three"],
    )


def test_a_sub_agent_is_a_thread_of_its_own(tmp_path: Path) -> None:
    call = {"toolCallId": "t1", "name": "task", "arguments": {"prompt": "Look for the port."}}
    path = agents.write_lines(
        tmp_path / "events.jsonl",
        [
            start(),
            event("user.message", {"content": "go"}),
            event("assistant.message", {"content": "", "toolRequests": [call]}),
            event("assistant.message", {"content": "It is 8080.", "parentToolCallId": "t1"}),
            event("tool.execution_complete", {"toolCallId": "t1", "success": True, "result": {"content": "8080"}}),
        ],
    )
    main, child = conversion.read(path, copilot.convert).threads

    assert (main.answers, main.calls, main.outputs) == ([], ["task"], [("8080", True)])
    assert (child.head.parent, child.head.thread_id) == (SESSION, thread_id_for("copilot", f"{SESSION}/t1"))
    assert (child.user_kinds, child.answers) == (["subagent_prompt"], ["It is 8080."])


@pytest.mark.parametrize(
    ("line", "reason"), [("{torn", "torn"), ("7\n", "not_a_record"), ("{]\n", "not_json"), ("{}\n", "not_a_record")]
)
def test_a_bad_line_gives_its_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = session(tmp_path)
    path.write_text(path.read_text() + line)

    found = conversion.read(path, copilot.convert)

    assert ([reason], 2) == ([each.reason for each in found.skipped], len(found.main.user_texts))


def test_an_import_finds_both_layouts_goes_on_and_leaves_everything_as_it_was(
    commonplace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "user" / ".copilot"
    lines = two_turns()
    new = agents.write_lines(place / "session-state" / SESSION / "events.jsonl", lines[:4])
    agents.write_lines(place / "session-state" / SESSION / "files" / "data.jsonl", [{"a": 1}])
    old = [start(sessionId="7a22dab8-b57b-472a-b1ce-21f691cb0cf5"), event("user.message", {"content": "old one"})]
    agents.write_lines(place / "session-state" / "7a22dab8-b57b-472a-b1ce-21f691cb0cf5.jsonl", old)
    first = commonplace.ok("sessions", "import")
    agents.write_lines(new, lines)
    before = agents.stamps(place)
    grown = commonplace.ok("sessions", "import", "--from", "copilot")
    found = {row["thread_id"]: row for row in commonplace.ok("sessions", "list")["threads"]}

    assert first["sources"][0]["from"] == "copilot"
    counted = [agents.counts(each) for each in (first, grown)]
    assert counted == [
        {"found": 2, "imported": 2},
        {"found": 2, "updated": 1, "unchanged": 1},
    ]
    assert (found[SESSION]["turns"], found[SESSION]["project"]) == (2, "github.com/acme/shop")
    assert agents.stamps(place) == before
    assert sources.detect(place) == sources.detect(new) == "copilot"
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "none"))
    assert "looked at" in commonplace.refused("bad_input", "sessions", "import", "--from", "copilot")
