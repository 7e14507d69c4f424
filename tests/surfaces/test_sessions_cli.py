"""`commonplace sessions …`: the JSON of interfaces §4, on our home, on a Codex home and on file paths."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from command import Command

from ledgers import Script, assistant, function_call, function_output, user

FIXTURES = Path(__file__).parents[1] / "data" / "codex_fixtures"
OTHER = "0198c0de-0000-7000-8000-0000000000ff"


def codex_home(root: Path) -> Path:
    """A Codex home with all recordings in it."""
    folder = root / "codex" / "sessions" / "2026" / "11" / "15"
    folder.mkdir(parents=True)
    for path in FIXTURES.glob("*/rollout-*.jsonl"):
        (folder / path.name).write_bytes(path.read_bytes())
    return root / "codex"


def tree(root: Path) -> dict[str, str]:
    """Every file under a folder and the hash of its content."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def thread(home: Path) -> Script:
    """A thread of ours: two turns, a call that failed, one that worked."""
    script = Script(git={"repository_url": "git@github.com:Acme/Shop.git", "branch": "main"})
    first = [user("fix the tests", "msg_1"), function_call("c1"), function_output("c1", "Exit code: 1\nOutput:\nno")]
    script.turn(*first, assistant("No.", "msg_2"))
    second = [user("try again", "msg_3"), function_call("c2"), function_output("c2", "Exit code: 0\nOutput:\nok")]
    script.turn(*second, assistant("Yes.", "msg_4"))
    script.event("token_count", info={"total_token_usage": {"total_tokens": 1234}})
    script.write_home(home)
    return script


def test_list_shows_threads_with_every_promised_field(commonplace: Command, thread: Script) -> None:
    document = commonplace.ok("sessions", "list")

    (row,) = document["threads"]
    assert document["next_cursor"] is None
    assert Path(row.pop("path")).name.endswith(f"{thread.thread_id}.jsonl")
    assert row == {
        "thread_id": thread.thread_id,
        "cwd": "/repo/demo",
        "project": "github.com/acme/shop",
        "title": "fix the tests",
        "preview": "fix the tests",
        "source": "cli",
        "created_at": "2026-11-15T09:00:00.000Z",
        "updated_at": "2026-11-15T09:00:00.000Z",
        "archived": False,
        "memory_mode": "enabled",
        "turns": 2,
        "tokens": 1234,
    }


def test_list_of_a_codex_home_pages_through_every_root_thread_once(commonplace: Command, tmp_path: Path) -> None:
    home = codex_home(tmp_path)
    before = tree(home)
    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = commonplace.ok("sessions", "list", "--home", home, "--limit", 3, *cursor)
        seen += [row["thread_id"] for row in page["threads"]]
        if page["next_cursor"] is None:
            break
        cursor = ["--cursor", page["next_cursor"]]

    assert len(seen) == len(set(seen)) == len(list(FIXTURES.glob("*/rollout-*.jsonl")))
    assert tree(home) == before


def test_list_filters_by_folder_and_source(commonplace: Command, tmp_path: Path) -> None:
    home = codex_home(tmp_path)
    by_cwd = commonplace.ok("sessions", "list", "--home", home, "--cwd", "/repo/demo/pkg")
    by_source = commonplace.ok("sessions", "list", "--home", home, "--source", "exec")

    assert [row["preview"] for row in by_cwd["threads"]] == ["hello"]
    assert {row["source"] for row in by_source["threads"]} == {"exec"}


def test_sub_agents_are_listed_only_by_their_source_and_shown_by_their_parent(commonplace: Command, home: Path) -> None:
    parent = Script().turn(user("go")).write_home(home)
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": Script().thread_id, "depth": 1}}}
    child = Script(OTHER, source=spawn, parent_thread_id=Script().thread_id).turn(user("sub")).write_home(home)

    listed = commonplace.ok("sessions", "list")["threads"]
    asked = commonplace.ok("sessions", "list", "--source", "subagent:thread_spawn")["threads"]
    shown = commonplace.ok("sessions", "show", parent)

    assert [row["thread_id"] for row in listed] == [Script().thread_id]
    assert [row["thread_id"] for row in asked] == [OTHER]
    assert shown["sidechains"] == [{"thread_id": OTHER, "path": str(child)}]


def test_a_file_that_grew_and_one_that_went_away_are_noticed(commonplace: Command, home: Path, thread: Script) -> None:
    commonplace.ok("sessions", "list")
    path = thread.turn(user("third")).write_home(home)
    grown = commonplace.ok("sessions", "list")["threads"]
    path.unlink()

    assert [row["turns"] for row in grown] == [3]
    assert commonplace.ok("sessions", "list")["threads"] == []


def test_show_tells_words_calls_and_compactions(commonplace: Command, home: Path, thread: Script) -> None:
    thread.compacted([user("fix the tests")], window_number=1)
    path = thread.write_home(home)

    shown = commonplace.ok("sessions", "show", path)

    assert shown == {
        "thread_id": thread.thread_id,
        "path": str(path),
        "source": "cli",
        "cwd": "/repo/demo",
        "project": "github.com/acme/shop",
        "user_texts": ["fix the tests", "try again"],
        "calls": [{"name": "exec_command", "ok": False}, {"name": "exec_command", "ok": True}],
        "compactions": [{"turn": 2, "time": "2026-11-15T09:00:00.000Z"}],
        "sidechains": [],
        "skipped": [],
    }


def test_show_adds_items_on_request(commonplace: Command, thread: Script) -> None:
    shown = commonplace.ok("sessions", "show", thread.thread_id, "--items")

    assert [entry["item"]["type"] for entry in shown["items"]][:2] == ["message", "function_call"]
    assert {entry["turn"] for entry in shown["items"]} == {1, 2}


def test_context_gives_the_items_and_a_receipt(commonplace: Command, home: Path) -> None:
    script = Script().turn(user("old"))
    offset = len(script.data())
    script.compacted([user("kept", "msg_k")], window_number=3, resume_metadata={}).turn(user("new", "msg_n"))
    path = script.raw(b"not json").write_home(home)

    found = commonplace.ok("sessions", "context", path)

    assert found["items"] == [user("kept", "msg_k"), user("new", "msg_n")]
    assert found["window_number"] == 3
    assert found["thread_id"] == script.thread_id
    receipt = found["receipt"]
    assert receipt.pop("bytes_read") > 0
    bad = {"offset": len(script.data()) - 9, "bytes": 8, "reason": "not_json"}
    assert receipt == {"turns": 1, "last_id": "msg_n", "checkpoint_offset": offset, "skipped": [bad]}


@pytest.mark.parametrize("folder", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_context_of_a_recording_is_what_the_model_really_got(commonplace: Command, folder: str) -> None:
    inputs = json.loads((FIXTURES / folder / "model_inputs.json").read_text("utf-8"))
    for path in sorted((FIXTURES / folder).glob("rollout-*.jsonl")):
        items = commonplace.ok("sessions", "context", path)["items"]
        answers = 0
        while answers < len(items) and items[-1 - answers].get("role") == "assistant":
            answers += 1

        assert answers > 0
        assert items[:-answers] in [request[1:] for request in inputs]


def test_a_thread_is_found_by_id_prefix_name_and_path(commonplace: Command, home: Path, thread: Script) -> None:
    path = thread.write_home(home)
    commonplace.ok("sessions", "rename", thread.thread_id, "the tests")

    names = [thread.thread_id, thread.thread_id.upper(), thread.thread_id[:13], "the tests", path]
    found = {commonplace.ok("sessions", "context", name)["thread_id"] for name in names}

    assert found == {thread.thread_id}


def test_rename_shows_in_listings_and_an_empty_name_takes_it_away(commonplace: Command, thread: Script) -> None:
    renamed = commonplace.ok("sessions", "rename", thread.thread_id, "  my   thread ")
    titled = commonplace.ok("sessions", "list")["threads"][0]["title"]
    commonplace.ok("sessions", "rename", "my thread", "")

    assert renamed == {"thread_id": thread.thread_id, "name": "my thread"}
    assert titled == "my thread"
    assert commonplace.ok("sessions", "list")["threads"][0]["title"] == "fix the tests"


def test_rollback_takes_back_turns_and_keeps_the_record(commonplace: Command, home: Path, thread: Script) -> None:
    path = thread.write_home(home)
    before = path.read_bytes()
    result = commonplace.ok("sessions", "rollback", thread.thread_id, "--turns", 1)

    items = commonplace.ok("sessions", "context", thread.thread_id)["items"]

    assert result["rolled_back"] == 1
    assert [item["content"][0]["text"] for item in items if item["type"] == "message"] == ["fix the tests", "No."]
    assert path.read_bytes().startswith(before)
    assert commonplace.ok("sessions", "list")["threads"][0]["turns"] == 1


def test_a_fork_refers_to_its_parent_and_goes_its_own_way(commonplace: Command, home: Path, thread: Script) -> None:
    parent = thread.write_home(home)
    before = parent.read_bytes()
    fork = commonplace.ok("sessions", "fork", thread.thread_id)
    commonplace.ok("sessions", "rollback", fork["thread_id"], "--turns", 1)

    forked = commonplace.ok("sessions", "context", fork["thread_id"])["items"]
    listed = {row["thread_id"]: row["turns"] for row in commonplace.ok("sessions", "list")["threads"]}

    assert fork["forked_from"] == thread.thread_id
    assert Path(fork["path"]).stat().st_size < 2000
    assert [item["content"][0]["text"] for item in forked if item["type"] == "message"] == ["fix the tests", "No."]
    assert listed == {thread.thread_id: 2, fork["thread_id"]: 1}
    assert parent.read_bytes() == before


@pytest.mark.parametrize(("at", "texts"), [("1", ["fix the tests"]), ("2", ["fix the tests", "try again"])])
@pytest.mark.parametrize("copy", [[], ["--copy"]], ids=["by reference", "copied"])
def test_a_fork_can_be_cut_after_a_turn(
    commonplace: Command, thread: Script, at: str, texts: list[str], copy: list[str]
) -> None:
    fork = commonplace.ok("sessions", "fork", thread.thread_id, "--at", at, *copy)

    assert commonplace.ok("sessions", "show", fork["path"])["user_texts"] == texts


def test_a_copied_fork_stands_without_its_parent(commonplace: Command, home: Path, thread: Script) -> None:
    expected = commonplace.ok("sessions", "context", thread.thread_id)["items"]
    fork = commonplace.ok("sessions", "fork", thread.thread_id, "--copy")
    thread.write_home(home).unlink()

    assert commonplace.ok("sessions", "context", fork["thread_id"])["items"] == expected
    assert commonplace.ok("sessions", "verify", fork["thread_id"])["ok"]


def test_archive_and_unarchive_move_the_file_and_forks_still_find_it(
    commonplace: Command, home: Path, thread: Script
) -> None:
    path = thread.write_home(home)
    fork = commonplace.ok("sessions", "fork", thread.thread_id)
    archived = commonplace.ok("sessions", "archive", thread.thread_id)

    assert archived == {
        "thread_id": thread.thread_id,
        "archived": True,
        "path": str(home / "archived_sessions" / path.name),
    }
    assert not path.exists()
    assert [row["thread_id"] for row in commonplace.ok("sessions", "list")["threads"]] == [fork["thread_id"]]
    assert [row["archived"] for row in commonplace.ok("sessions", "list", "--archived")["threads"]] == [True]
    assert len(commonplace.ok("sessions", "context", fork["thread_id"])["items"]) == 8
    assert commonplace.ok("sessions", "unarchive", thread.thread_id)["path"] == str(path)
    assert path.exists()


def test_delete_removes_file_name_row_and_payloads(commonplace: Command, home: Path, thread: Script) -> None:
    blob = home / "blobs" / ("a" * 64)
    thread.item(user("big"), blob=[{"pointer": "/x", "sha256": blob.name, "bytes": 1, "media_type": "text/plain"}])
    path = thread.write_home(home)
    blob.parent.mkdir()
    blob.write_bytes(b"x")
    commonplace.ok("sessions", "rename", thread.thread_id, "gone soon")

    result = commonplace.ok("sessions", "delete", "gone soon")

    assert result == {"thread_id": thread.thread_id, "deleted": [str(path)], "blobs_removed": 1}
    assert not path.exists()
    assert not blob.exists()
    assert thread.thread_id not in (home / "session_index.jsonl").read_text("utf-8")
    assert commonplace.ok("sessions", "list")["threads"] == []


def test_a_thread_that_forks_refer_to_is_not_deleted(commonplace: Command, thread: Script) -> None:
    fork = commonplace.ok("sessions", "fork", thread.thread_id)
    sentence = commonplace.refused("thread_in_use", "sessions", "delete", thread.thread_id)

    assert fork["thread_id"] in sentence
    commonplace.ok("sessions", "delete", fork["thread_id"])
    commonplace.ok("sessions", "delete", thread.thread_id)


def test_verify_reports_bad_lines_and_payloads_and_exits_1(commonplace: Command, home: Path, thread: Script) -> None:
    sound = commonplace.ok("sessions", "verify", thread.thread_id)
    missing = {"pointer": "/x", "sha256": "b" * 64, "bytes": 1, "media_type": "text/plain"}
    thread.item(user("big"), blob=[missing]).raw(b'{"torn').line("response_item", {"type": "message"})
    thread.write_home(home)

    ran = commonplace("sessions", "verify", thread.thread_id, "--json")

    assert sound["ok"] is True
    assert sound["blobs"] == {"referenced": 0, "missing": 0, "corrupt": 0}
    assert ran.code == 1
    assert ran.json["ok"] is False
    assert [entry["reason"] for entry in ran.json["skipped"]] == ["not_json", "bad_item"]
    assert ran.json["blobs"] == {"referenced": 1, "missing": 1, "corrupt": 0}


def test_reindex_counts_what_is_there(commonplace: Command, home: Path, thread: Script) -> None:
    size = thread.write_home(home).stat().st_size
    (home / "sessions" / "rollout-2026-11-15T09-00-00-nonsense.jsonl").write_bytes(b"nothing\n")

    assert commonplace.ok("sessions", "reindex") == {"files": 2, "threads": 1, "bytes": size, "skipped": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        ["rollback", "--turns", "1"],
        ["archive"],
        ["unarchive"],
        ["delete"],
        ["rename"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_foreign_file_is_never_changed(commonplace: Command, tmp_path: Path, arguments: list[str]) -> None:
    home = codex_home(tmp_path)
    path = next(home.rglob("rollout-*.jsonl"))
    before = tree(home)
    extra = ["name"] if arguments[0] == "rename" else []

    command, *options = arguments
    commonplace.refused("foreign_file", "sessions", command, path, *extra, *options)
    named = path.stem[-36:]
    commonplace.refused("foreign_file", "sessions", command, named, *extra, *options, "--home", home)

    assert tree(home) == before


def test_every_looking_command_leaves_a_foreign_home_alone(commonplace: Command, tmp_path: Path) -> None:
    home = codex_home(tmp_path)
    before = tree(home)
    for path in sorted(home.rglob("rollout-*.jsonl")):
        for command in ("show", "context", "verify", "fork"):
            commonplace.ok("sessions", command, path)
            commonplace.ok("sessions", command, path.stem[-36:], "--home", home)
    commonplace.ok("sessions", "reindex", "--home", home)

    assert tree(home) == before


def test_a_reference_fork_of_a_codex_session_finds_its_parent_from_our_home(
    commonplace: Command, tmp_path: Path
) -> None:
    home = codex_home(tmp_path)
    parent = next(home.rglob("rollout-*-01a1dddc-78fa-7010-8d50-6d71c7fcf145.jsonl"))
    expected = commonplace.ok("sessions", "context", parent)["items"]

    fork = commonplace.ok("sessions", "fork", parent)

    assert commonplace.ok("sessions", "context", fork["thread_id"])["items"] == expected
    assert commonplace.ok("sessions", "list")["threads"][0]["turns"] == 2


def test_everything_in_our_home_is_private(commonplace: Command, home: Path, tmp_path: Path) -> None:
    path = Script().turn(user("x")).write(tmp_path)
    commonplace.ok("sessions", "fork", path, "--copy")
    fork = commonplace.ok("sessions", "fork", path)
    commonplace.ok("sessions", "rename", fork["thread_id"], "mine")
    commonplace.ok("sessions", "archive", fork["thread_id"])

    modes = {str(place.relative_to(home)): place.stat().st_mode & 0o777 for place in [home, *home.rglob("*")]}

    assert {mode for name, mode in modes.items() if (home / name).is_dir()} == {0o700}
    assert {mode for name, mode in modes.items() if (home / name).is_file()} == {0o600}


@pytest.mark.parametrize("command", ["list", "show", "context", "verify"])
def test_every_view_works_without_json(commonplace: Command, home: Path, thread: Script, command: str) -> None:
    thread.compacted([user("kept")], window_number=1).raw(b"\x1b[31mgarbage")
    thread.write_home(home)
    arguments: list[Any] = [] if command == "list" else [thread.thread_id]

    ran = commonplace("sessions", command, *arguments)

    assert ran.err == ""
    assert thread.thread_id[:8] in ran.out or "items" in ran.out or "lines" in ran.out
    assert "\x1b" not in ran.out
