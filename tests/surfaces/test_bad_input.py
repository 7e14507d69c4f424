"""Bad input: one clear sentence, exit 1, nothing changed on disk, and no way to exhaust memory."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from ledgers import Script, user

LOOKING = ("show", "context", "verify", "fork")


def sparse(path: Path) -> None:
    """One line that begins like JSON and is longer than any that is loaded."""
    with path.open("wb") as file:
        file.write(b'{"type":"session_meta","payload":{"id":"')
        file.truncate(130 * 2**20)


BAD: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "blank lines": lambda path: path.write_bytes(b"\n \n\t\n"),
    "no session_meta": lambda path: path.write_bytes(b'{"timestamp":"x","type":"event_msg","payload":{}}\n'),
    "binary garbage": lambda path: path.write_bytes(bytes(range(256)) * 4000),
    "zeros": lambda path: path.write_bytes(b"\0" * 100_000),
    "a line of 130 MB": sparse,
    "deep nesting": lambda path: path.write_bytes(b"[" * 500_000 + b"]" * 500_000 + b"\n"),
    "deeply nested meta": lambda path: path.write_bytes(
        b'{"type":"session_meta","payload":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}\n"
    ),
    "invalid UTF-8": lambda path: path.write_bytes(b'{"type":"session_meta","payload":{"id":"\xff\xfe"}}\n'),
    "not objects": lambda path: path.write_bytes(b'[]\n"x"\n1\nnull\ntrue\n'),
    "a meta without an id": lambda path: path.write_bytes(b'{"type":"session_meta","payload":{"cwd":"/"}}\n'),
    "a meta that is no object": lambda path: path.write_bytes(b'{"type":"session_meta","payload":7}\n'),
    "a directory": lambda path: path.mkdir(),
    "a FIFO": os.mkfifo,
    "not compressed": lambda path: path.write_bytes(b"plain text\n"),
}


def snapshot(*roots: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for root in roots:
        for path in sorted(root.rglob("*")):
            regular = path.is_file() and path.stat().st_size < 2**26
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if regular else "other"
    return found


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_holds_no_session_gives_one_sentence(
    commonplace: Command, home: Path, tmp_path: Path, kind: str, command: str
) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    suffix = ".jsonl.zst" if kind == "not compressed" else ".jsonl"
    path = folder / f"rollout-2026-11-15T09-00-00-{Script().thread_id}{suffix}"
    BAD[kind](path)
    before = snapshot(folder)

    ran = commonplace("sessions", command, path, "--json")

    assert ran.code == 1
    assert ran.json["error"]["code"] in ("not_a_session", "ledger_error")
    assert ran.err.count("\n") == 1
    assert str(path) in ran.err
    assert snapshot(folder) == before
    assert not home.exists()


@pytest.mark.parametrize("command", [*LOOKING, "archive", "unarchive", "delete"])
@pytest.mark.parametrize("name", ["nothing", "0198c0de", "0198c0de-0000-7000-8000-000000000001", "", "../..", "-"])
def test_a_name_that_names_nothing_leaves_no_trace(commonplace: Command, home: Path, name: str, command: str) -> None:
    ran = commonplace("sessions", command, "--json", "--", name)

    assert ran.code == 1
    assert ran.json["error"]["code"] in ("unknown_thread", "not_a_session")
    assert ran.err.count("\n") == 1
    assert not home.exists()


@pytest.mark.parametrize("with_index", [True, False])
def test_a_prefix_of_several_ids_names_them(commonplace: Command, home: Path, *, with_index: bool) -> None:
    ids = [f"0198c0de-0000-7000-8000-00000000000{number}" for number in (1, 2)]
    for thread_id in ids:
        Script(thread_id).turn(user("x")).write_home(home)
    if with_index:
        commonplace.ok("sessions", "list")
    before = snapshot(home)

    for command in ("context", "delete"):
        sentence = commonplace.refused("ambiguous_thread", "sessions", command, "0198c0de")
        assert all(thread_id in sentence for thread_id in ids)

    assert snapshot(home) == before


def test_two_threads_of_one_name_are_told_apart_by_id(commonplace: Command, home: Path) -> None:
    for number in (1, 2):
        path = Script(f"0198c0de-0000-7000-8000-00000000000{number}").turn(user("x")).write_home(home)
        commonplace.ok("sessions", "rename", path, "twin")

    assert "000000000001" in commonplace.refused("ambiguous_thread", "sessions", "show", "twin")


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--cursor", "nonsense"],
        ["list", "--cursor", "2026|"],
        ["list", "--home", "/no/such/folder"],
        ["reindex", "--home", "/no/such/folder"],
    ],
)
def test_bad_options_give_one_sentence(commonplace: Command, arguments: list[str]) -> None:
    commonplace.refused("bad_input", "sessions", *arguments)


@pytest.mark.parametrize("turn", ["0", "3", "-1", "no-such-turn", "99999999999999999999"])
def test_forking_at_a_turn_that_is_not_there_makes_nothing(commonplace: Command, home: Path, turn: str) -> None:
    path = Script().turn(user("a")).turn(user("b")).write_home(home)

    commonplace.refused("bad_input", "sessions", "fork", path, f"--at={turn}")

    assert list(home.rglob("rollout-*")) == [path]


@pytest.mark.parametrize(
    "arguments",
    [["rollback", "x", "--turns", "0"], ["rollback", "x"], ["list", "--limit", "0"], ["nonsense"], ["show"]],
)
def test_wrong_usage_exits_2(commonplace: Command, arguments: list[str]) -> None:
    ran = commonplace("sessions", *arguments)

    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_a_fork_without_its_parent_says_which_file_is_missing(commonplace: Command, home: Path) -> None:
    base = {"thread_id": "0198c0de-0000-7000-8000-00000000beef", "end_byte_offset": 10, "end_ordinal_exclusive": 1}
    path = Script(paginated=True, history_base=base).write_home(home)

    sentence = commonplace.refused("parent_missing", "sessions", "context", path)

    assert "0198c0de-0000-7000-8000-00000000beef" in sentence


def test_a_fork_of_itself_is_refused(commonplace: Command, home: Path) -> None:
    base = {"thread_id": Script().thread_id, "end_byte_offset": 10, "end_ordinal_exclusive": 1}
    path = Script(paginated=True, history_base=base).write_home(home)

    commonplace.refused("ledger_error", "sessions", "context", path)


def test_one_bad_line_costs_nothing_but_itself(commonplace: Command, home: Path) -> None:
    deep = b'{"type":"x","payload":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    script = Script().item(user("before")).raw(deep).raw(b"\xff\xfe").raw(b"\0" * 1000).item(user("after"))
    path = script.write_home(home)

    found = commonplace.ok("sessions", "context", path)

    assert [item["content"][0]["text"] for item in found["items"]] == ["before", "after"]
    assert {entry["reason"] for entry in found["receipt"]["skipped"]} == {"too_deep", "invalid_utf8", "not_json"}


def test_a_line_larger_than_memory_is_passed_over(home: Path) -> None:
    path = Script().item(user("before")).write_home(home)
    after = json.dumps({"timestamp": "t", "type": "response_item", "payload": user("after")}).encode()
    with path.open("r+b") as file:
        file.seek(2**30)
        file.write(b"\n" + after + b"\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 * 2**28, 3 * 2**28))

    command = [sys.executable, "-m", "commonplace", "sessions", "context", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, preexec_fn=limit, check=True)
    found = json.loads(done.stdout)

    assert [item["content"][0]["text"] for item in found["items"]] == ["before", "after"]
    assert [entry["reason"] for entry in found["receipt"]["skipped"]] == ["too_long"]


def test_a_broken_config_is_one_sentence(commonplace: Command, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("fsync = [", "utf-8")

    assert "config.toml" in commonplace.refused("bad_setting", "sessions", "list")


def test_a_database_that_is_none_degrades_to_reading_the_files(commonplace: Command, home: Path) -> None:
    Script().turn(user("x")).write_home(home)
    (home / "state.sqlite").write_bytes(b"this is not a database" * 100)

    ran = commonplace("sessions", "list", "--json")

    assert ran.code == 0
    assert len(ran.json["threads"]) == 1
    assert "reading the files instead" in ran.err


def test_a_newer_database_is_not_touched(commonplace: Command, home: Path) -> None:
    import sqlite3

    Script().turn(user("x")).write_home(home)
    with sqlite3.connect(home / "state.sqlite") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = (home / "state.sqlite").read_bytes()

    ran = commonplace("sessions", "list", "--json")

    assert len(ran.json["threads"]) == 1
    assert "newer version" in ran.err
    assert (home / "state.sqlite").read_bytes() == before


def test_names_that_are_not_text_do_no_harm(commonplace: Command, home: Path) -> None:
    Script().turn(user("x")).write_home(home)
    folder = home / "sessions" / "2026" / os.fsdecode(b"\xff\xfe")
    path = Script("0198c0de-0000-7000-8000-0000000000aa").turn(user("y")).write(folder)

    listed = commonplace.ok("sessions", "list")
    shown = commonplace("sessions", "show", path, "--json")

    assert [row["thread_id"] for row in listed["threads"]] == [Script().thread_id]
    assert shown.code == 1
    assert "Traceback" not in shown.err
