"""`commonplace memory status`, `memory mode` and `doctor`: what is shown, what is put right, and going on without."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from command import Command

from commonplace.app import book
from commonplace.state import extraction_jobs, jobs, usage
from commonplace.state import home as homes
from commonplace.state.database import Transaction
from commonplace.state.jobs import Claim, Worker
from commonplace.state.outputs import Output
from commonplace.state.sqlite import SqliteDatabase
from commonplace.surfaces.cli.root import run
from ledgers import Script, user

T = TypeVar("T")
NOW = 1_794_733_200  # 2026-11-15T09:00:00Z
LATER = "2026-11-20T09:00:00Z"


@pytest.fixture
def thread(home: Path) -> Script:
    script = Script().turn(user("hello"))
    script.write_home(home)
    return script


def in_database(home: Path, body: Callable[[Transaction], T]) -> T:
    """Run a store's function on the home's own database."""

    async def inside() -> T:
        database = await SqliteDatabase.open(home / "state.sqlite")
        try:
            return await database.write(body)
        finally:
            await database.close()

    return anyio.run(inside)


def claimed(home: Path, worker: Worker, now: int = NOW) -> Claim:
    terms = extraction_jobs.ClaimTerms(str(home.resolve()), 1)
    thread = Script().thread_id
    found = in_database(home, lambda tx: extraction_jobs.claim_thread(tx, thread, now, worker, "token", terms, now))
    assert isinstance(found, Claim)
    return found


def test_status_of_nothing_is_all_zero(commonplace: Command) -> None:
    assert commonplace.ok("memory", "status") == {
        "threads": {},
        "jobs": {},
        "failed": [],
        "outputs": 0,
        "selected": 0,
        "budget": {},
        "locks": [],
        "refused": 0,
    }


def test_status_counts_modes_jobs_results_failures_and_cost(
    commonplace: Command, home: Path, thread: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", "2026-11-15T09:00:00Z")
    commonplace.ok("sessions", "list")
    claim = claimed(home, jobs.this_process())
    held = commonplace.ok("memory", "status")
    in_database(home, lambda tx: jobs.fail(tx, claim, "no such model", now=NOW, delay=60))
    in_database(home, lambda tx: usage.spend(tx, jobs.EXTRACTION, usage.SpentTotals(2, 300), now=NOW))
    failed = commonplace.ok("memory", "status")

    assert held["threads"] == {"enabled": 1}
    assert held["jobs"] == {"running": 1}
    assert held["locks"][0]["key"] == thread.thread_id
    assert held["locks"][0]["until"] == "2026-11-15T09:05:00.000Z"
    assert failed["jobs"] == {"error": 1}
    assert failed["locks"] == []
    assert failed["failed"] == [
        {"thread_id": thread.thread_id, "reason": "no such model", "retry_at": "2026-11-15T09:01:00.000Z"}
    ]
    spent = failed["budget"]["memory_stage1"]
    assert (spent["requests"], spent["tokens"], spent["seconds"]) == (2, 300, 0)
    assert spent["day"] == {"requests": 1000, "tokens": 10_000_000, "seconds": 14_400}
    assert spent["run"] == {"requests": 400, "tokens": 4_000_000, "seconds": 3_600}
    assert "no such model" in commonplace("memory", "status").out


def test_a_mode_that_a_person_set_outlives_the_database(commonplace: Command, home: Path, thread: Script) -> None:
    result = commonplace.ok("memory", "mode", thread.thread_id, "disabled")
    before = commonplace.ok("memory", "status")["threads"]
    (home / "state.sqlite").unlink()
    thread.turn(user("more")).write_home(home)

    assert result == {"thread_id": thread.thread_id, "memory_mode": "disabled"}
    assert before == {"disabled": 1}
    assert commonplace.ok("sessions", "list")["threads"][0]["memory_mode"] == "disabled"
    commonplace.ok("memory", "mode", thread.thread_id, "enabled")
    assert commonplace.ok("sessions", "list")["threads"][0]["memory_mode"] == "enabled"


def test_a_mode_for_no_thread_changes_nothing(commonplace: Command, home: Path) -> None:
    commonplace.refused("unknown_thread", "memory", "mode", "nothing", "disabled")

    assert not home.exists()
    assert commonplace("memory", "mode", "nothing", "sometimes").code == 2


def checks(document: dict[str, list[dict[str, object]]]) -> dict[str, object]:
    return {str(check["name"]): check["ok"] for check in document["checks"]}


def test_doctor_finds_nothing_wrong_in_a_healthy_home(commonplace: Command, home: Path, thread: Script) -> None:
    commonplace.ok("sessions", "fork", thread.thread_id)
    for place in [home, *home.rglob("*")]:
        place.chmod(0o700 if place.is_dir() else 0o600)
    commonplace.ok("sessions", "list")

    report = commonplace.ok("doctor")

    assert report["ok"] is True
    assert set(checks(report)) == {*("home", "settings", "sandbox", "database", "index", "learned", "leases", "blobs")}


def test_doctor_leaves_no_trace_where_there_is_nothing(commonplace: Command, home: Path) -> None:
    assert commonplace.ok("doctor")["ok"] is True
    assert not home.exists()


def test_doctor_sees_files_that_the_index_does_not_know(commonplace: Command, home: Path, thread: Script) -> None:
    commonplace.ok("sessions", "list")
    Script("0198c0de-0000-7000-8000-0000000000ee").turn(user("new")).write_home(home)

    before = commonplace("doctor", "--json")
    repaired = commonplace("doctor", "--repair", "--json")

    assert before.code == 1
    assert checks(before.json)["index"] is False
    assert repaired.code == 0
    assert commonplace.ok("doctor")["ok"] is True


def test_doctor_frees_the_lease_of_a_dead_process(
    commonplace: Command, home: Path, thread: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", "2026-11-15T09:00:00Z")
    commonplace("doctor", "--repair")
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    here = jobs.this_process()
    claimed(home, Worker("gone", here.host, int(gone.stdout), here.process_start))

    before = commonplace("doctor", "--json")
    commonplace("doctor", "--repair")

    assert checks(before.json)["leases"] is False
    assert commonplace.ok("doctor")["ok"] is True
    assert commonplace.ok("memory", "status")["locks"] == []


RAW = """# Raw Memories

Merged stage-1 raw memories (stable ascending thread-id order):

## Thread `{thread}`
updated_at: 2026-11-15T09:00:00+00:00
cwd: /repo/demo
rollout_path: /x.jsonl
rollout_summary_file: 2026-11-15T09-00-00-abcd-fix_the_tests.md

- always use pnpm

"""


def test_doctor_restores_what_was_learned_from_the_workspace(commonplace: Command, home: Path, thread: Script) -> None:
    root = home / "memories"
    (root / "rollout_summaries").mkdir(parents=True)
    (root / "raw_memories.md").write_text(RAW.format(thread=thread.thread_id), "utf-8")
    summary = f"thread_id: {thread.thread_id}\nupdated_at: x\nrollout_path: x\ncwd: x\n\nFixed the tests.\n\nTwice.\n"
    (root / "rollout_summaries" / "2026-11-15T09-00-00-abcd-fix_the_tests.md").write_text(summary, "utf-8")
    commonplace.ok("sessions", "list")

    before = commonplace("doctor", "--json")
    commonplace("doctor", "--repair")
    rows = in_database(home, lambda tx: tx.query("outputs.get", thread_id=thread.thread_id))

    assert checks(before.json)["learned"] is False
    assert rows[0]["raw_memory"] == "- always use pnpm"
    assert rows[0]["rollout_summary"] == "Fixed the tests.\n\nTwice."
    assert rows[0]["rollout_slug"] == "fix_the_tests"
    assert rows[0]["source_updated_at"] == NOW


def test_doctor_moves_a_damaged_database_away_and_says_what_is_lost(
    commonplace: Command, home: Path, thread: Script
) -> None:
    (home / "state.sqlite").write_bytes(b"nonsense" * 1000)

    before = commonplace("doctor", "--json")
    repaired = commonplace("doctor", "--repair")

    assert before.code == 1
    assert checks(before.json)["database"] is False
    assert repaired.code == 0
    assert "counters and budgets are lost" in repaired.out
    assert (home / "state.sqlite.damaged").exists()
    assert len(commonplace.ok("sessions", "list")["threads"]) == 1


def test_a_locked_database_does_not_stop_a_listing(
    commonplace: Command, home: Path, thread: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes, "FOREGROUND_SECONDS", 0.05)
    commonplace.ok("sessions", "list")
    thread.turn(user("more")).write_home(home)
    other = sqlite3.connect(home / "state.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    ran = commonplace("sessions", "list", "--json")
    forked = commonplace("sessions", "fork", thread.thread_id, "--json")

    other.close()
    assert [row["turns"] for row in ran.json["threads"]] == [2]
    assert "reading the files instead" in ran.err
    assert forked.code == 0
    assert len(commonplace.ok("sessions", "list")["threads"]) == 2


@pytest.fixture
def read_only_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a home in it on a disk that nothing can be written to: a real one where mounting is allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True, check=False)
    monkeypatch.setenv("COMMONPLACE_HOME", str(disk / "home"))
    Script().turn(user("hello")).write_home(disk / "home")
    assert run(["sessions", "list"]) == 0
    if mounted.returncode == 0:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        yield disk / "home"
        subprocess.run(["umount", str(disk)], check=True)
        return

    async def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(book.Book, "open_database", refused)
    yield disk / "home"


def test_a_disk_that_cannot_be_written_does_not_stop_a_command_that_looks(
    commonplace: Command, read_only_disk: Path
) -> None:
    for arguments in (["sessions", "list"], ["sessions", "context", Script().thread_id], ["memory", "status"]):
        ran = commonplace(*arguments, "--json")
        assert ran.code == 0, ran.err
        assert "Read-only file system" in ran.err
    report = commonplace("doctor", "--json")

    assert report.code == 1
    assert checks(report.json)["database"] is False


def test_a_server_that_is_not_there_does_not_stop_a_command(
    commonplace: Command, thread: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_DATABASE", "postgresql://nobody@127.0.0.1:1/nothing")

    listed = commonplace("sessions", "list", "--json")
    shown = commonplace("sessions", "show", thread.thread_id, "--json")

    assert listed.code == shown.code == 0
    assert len(listed.json["threads"]) == 1
    assert "reading the files instead" in listed.err


def test_an_output_with_only_blank_text_is_empty() -> None:
    assert Output(" \n", "").is_empty
    assert not Output("", "x").is_empty
