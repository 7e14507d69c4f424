"""Files of other agents by their path: looked at, forked, never changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import copilot_files
import opencode_files
import pytest
from command import Command

from ledgers import Script

FILES: dict[str, Callable[[Path], Path]] = {
    "codex": lambda root: next(agents.codex_home(root).rglob("rollout-*")),
    "claude-code": lambda root: agents.claude_file(root, "compact"),
    "gemini": lambda root: next(agents.gemini_home(root).rglob("session-*")),
    "opencode": lambda root: opencode_files.export(root / "one.json", opencode_files.two_turns()),
    "copilot": copilot_files.session,
    "swe-agent": agents.swe_agent_file,
    "transcript": lambda root: agents.transcript_file(root / "talk.jsonl"),
}
TEXTS = {
    "codex": ["fix the tests", "try again"],
    "claude-code": ["Plan the migration.", "Do step A.", "Do step B."],
    "gemini": ["fix the tests", "try again"],
    "opencode": ["fix the tests", "try again"],
    "copilot": ["fix the tests", "try again"],
    "swe-agent": ["fix the tests"],
    "transcript": ["fix the tests", "try again"],
}


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A session of another agent: whose it is, and where."""
    return request.param, FILES[request.param](tmp_path / "source")


def test_looking_works_by_path_and_leaves_no_trace(
    commonplace: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: tuple[str, Path]
) -> None:
    source, path = file
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    before = agents.stamps(tmp_path / "source")
    shown = commonplace.ok("sessions", "show", path, "--items")
    context = commonplace.ok("sessions", "context", path)
    verified = commonplace.ok("sessions", "verify", path)
    monkeypatch.chdir(path.parent)

    assert (shown["path"], shown["user_texts"]) == (str(path), TEXTS[source])
    assert shown["source"] == ("cli" if source == "codex" else source)
    assert commonplace.ok("sessions", "show", path.name)["thread_id"] == shown["thread_id"] == context["thread_id"]
    assert context["items"]
    assert verified["ok"]
    assert verified["lines"] > 0
    assert agents.stamps(tmp_path / "source") == before
    assert not home.exists()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_context_before_and_after_an_import_is_the_same(commonplace: Command, file: tuple[str, Path]) -> None:
    _, path = file
    before = commonplace.ok("sessions", "context", path)
    commonplace.ok("sessions", "import", "--path", path)
    after = commonplace.ok("sessions", "context", before["thread_id"])

    assert (after["items"], after["window_number"]) == (before["items"], before["window_number"])


def messages(document: dict[str, Any]) -> list[Any]:
    return [item.get("content") or item.get("output") or item.get("arguments") for item in document["items"]]


def test_a_fork_is_a_thread_of_our_own_that_needs_its_origin_no_more(
    commonplace: Command, home: Path, tmp_path: Path, file: tuple[str, Path]
) -> None:
    source, path = file
    before = commonplace.ok("sessions", "context", path)
    shown = commonplace.ok("sessions", "show", path, "--items")
    stamps = agents.stamps(tmp_path / "source")
    fork = commonplace.ok("sessions", "fork", path, *(["--copy"] if source == "codex" else []))
    assert agents.stamps(tmp_path / "source") == stamps
    path.unlink()

    assert fork["forked_from"] == before["thread_id"] != fork["thread_id"]
    assert [row["thread_id"] for row in commonplace.ok("sessions", "list")["threads"]] == [fork["thread_id"]]
    told = commonplace.ok("sessions", "show", fork["thread_id"], "--items")
    for key in ("user_texts", "calls", "compactions", "cwd"):
        assert told[key] == shown[key]
    for key in ("from_memory", "source_id", "kinds"):
        assert [item.get(key) for item in told["items"]] == [item.get(key) for item in shown["items"]]
    assert messages(commonplace.ok("sessions", "context", fork["thread_id"])) == messages(before)
    assert commonplace.ok("sessions", "verify", fork["thread_id"])["ok"]
    assert agents.ledgers(home) == [Path(fork["path"])]
    commonplace.ok("sessions", "rollback", fork["thread_id"], "--turns", 1)
    commonplace.ok("sessions", "delete", fork["thread_id"])


@pytest.mark.parametrize(("at", "texts"), [("1", 1), ("2", 2), ("3", 3)])
def test_a_fork_can_be_cut_after_a_turn_of_a_foreign_file(
    commonplace: Command, tmp_path: Path, at: str, texts: int
) -> None:
    path = FILES["claude-code"](tmp_path / "source")
    fork = commonplace.ok("sessions", "fork", path, "--at", at)

    assert commonplace.ok("sessions", "show", fork["thread_id"])["user_texts"] == TEXTS["claude-code"][:texts]
    commonplace.refused("bad_input", "sessions", "fork", path, "--at", "4")


def test_forks_keep_that_calls_failed_and_that_words_came_from_a_memory(commonplace: Command, tmp_path: Path) -> None:
    for scenario in ("tools", "mcp"):
        path = agents.claude_file(tmp_path / scenario, scenario)
        shown = commonplace.ok("sessions", "show", path, "--items")
        fork = commonplace.ok("sessions", "fork", path)
        told = commonplace.ok("sessions", "show", fork["thread_id"], "--items")

        assert told["calls"] == shown["calls"]
        recalled = [item.get("from_memory", False) for item in shown["items"]]
        assert [item.get("from_memory", False) for item in told["items"]] == recalled
        assert any(recalled) == (scenario == "mcp")


@pytest.mark.parametrize(
    "arguments",
    [["rollback", "--turns", "1"], ["archive"], ["unarchive"], ["delete"], ["rename", "name"]],
    ids=lambda arguments: str(arguments[0]),
)
def test_what_would_change_a_foreign_file_is_refused_and_a_fork_suggested(
    commonplace: Command, tmp_path: Path, file: tuple[str, Path], arguments: list[str]
) -> None:
    _, path = file
    before = agents.stamps(tmp_path / "source")
    command, *options = arguments
    ran = commonplace("sessions", command, path, *options, "--json")

    assert ran.code == 1
    assert ran.json["error"]["code"] == "foreign_file"
    assert f"commonplace sessions fork {path}" in ran.json["error"]["hint"]
    assert agents.stamps(tmp_path / "source") == before


@pytest.mark.parametrize("arguments", [["rollback", "--turns", "1"], ["archive"], ["rename", "name"]])
def test_what_is_referred_to_in_place_is_not_changed_either(
    commonplace: Command, tmp_path: Path, arguments: list[str]
) -> None:
    place = agents.codex_home(tmp_path / "codex")
    commonplace.ok("sessions", "import", "--path", place)
    before = agents.stamps(place)
    command, *options = arguments

    commonplace.refused("foreign_file", "sessions", command, Script().thread_id, *options)
    assert agents.stamps(place) == before
    commonplace.ok("memory", "mode", Script().thread_id, "disabled")
    assert [row["memory_mode"] for row in commonplace.ok("sessions", "list")["threads"]] == ["disabled"]
    assert agents.stamps(place) == before


@pytest.mark.parametrize("command", ["show", "context", "verify", "fork"])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.json", b'{"dear": "diary"}'),
        ("notes.jsonl", b"dear diary\n"),
        ("x.jsonl", b'{"sessionId":"x"}\n\xff\xff\n'),
        ("x.traj", b'{"trajectory": 7}'),
        ("x.traj.json", b"[]"),
        ("x.jsonl", b'{"session":"s","role":"user","text":7}\n'),
    ],
)
def test_a_file_that_is_nobodys_session_gives_one_sentence(
    commonplace: Command, home: Path, tmp_path: Path, command: str, name: str, data: bytes
) -> None:
    path = tmp_path / "source" / name
    path.parent.mkdir()
    path.write_bytes(data)
    ran = commonplace("sessions", command, path, "--json")

    assert ran.code == 1, ran.out
    assert ran.json["error"]["code"] in ("not_a_session", "ledger_error")
    assert ran.err.count("\n") == 1
    assert not home.exists()


@pytest.mark.parametrize("raw", [b"", b"\n", b'{"type":"summary","summary":"x","leafUuid":"y"}\n'])
def test_a_file_of_claude_code_in_which_nothing_was_said_is_an_empty_session(
    commonplace: Command, tmp_path: Path, raw: bytes
) -> None:
    path = tmp_path / "projects" / "-x" / f"{agents.SIMPLE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(raw)
    ran = commonplace("sessions", "show", path, "--json")
    document = commonplace.ok("sessions", "import", "--from", "claude-code", "--path", path)

    assert document["sources"][0]["reasons"] == {"empty": 1}
    if raw.startswith(b"{"):
        assert (ran.code, ran.json["user_texts"]) == (0, [])
    else:
        assert (ran.code, ran.err.count("\n")) == (1, 1)


def test_a_large_output_of_a_foreign_file_is_shown_and_forked_whole(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    said = [
        {"session": "s", "role": "user", "text": "go"},
        {"session": "s", "role": "tool", "name": "cat", "text": "é" * 100_000},
    ]
    path = agents.write_lines(tmp_path / "talk.jsonl", said)
    assert commonplace.ok("sessions", "verify", path)["blobs"] == {"referenced": 1, "missing": 0, "corrupt": 0}
    fork = commonplace.ok("sessions", "fork", path)

    lines = Path(fork["path"]).read_text("utf-8").splitlines()
    assert [json.loads(line)["payload"]["output"] for line in lines if "function_call_output" in line] == [
        "é" * 100_000
    ]
    assert not (home / "blobs").exists()
