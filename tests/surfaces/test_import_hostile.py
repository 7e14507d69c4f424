"""Imports under attack: odd names and files, no database, no room, other processes, and death at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import agents
import pytest
from command import Command

from commonplace.state import home as homes

TWO = "0198c0de-0000-7000-8000-000000000002"


def imported(commonplace: Command, path: Path, *more: object) -> dict[str, int]:
    return agents.counts(commonplace.ok("sessions", "import", "--path", path, *more))


def listed(commonplace: Command) -> set[str]:
    return {row["thread_id"] for row in commonplace.ok("sessions", "list", "--limit", 10_000)["threads"]}


# --- Files and names.


@pytest.mark.parametrize(
    "name", ["two words", "naïve 日本語 🎉", "line\nbreak", "-rf", "a'b\"c", "%s{}", "\x1b[31mred", "a" * 200]
)
@pytest.mark.parametrize("source", agents.SOURCES)
def test_a_folder_of_any_name_is_imported(commonplace: Command, tmp_path: Path, source: str, name: str) -> None:
    place = agents.SOURCES[source](tmp_path / name)

    assert imported(commonplace, place) == {"found": 1, "imported": 1}
    assert imported(commonplace, place) == {"found": 1, "unchanged": 1}
    (thread_id,) = listed(commonplace)
    assert commonplace.ok("sessions", "show", thread_id)["user_texts"]
    ran = commonplace("sessions", "import", "--path", place)
    assert (ran.code, "\x1b" in ran.out) == (0, False)


def test_a_name_that_is_not_text_is_left_out_and_said(commonplace: Command, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "simple")
    folder = next((place / "projects").iterdir())
    for number, name in enumerate([b"\xff\xfe.jsonl", b"caf\xe9.jsonl"]):
        agents.transcript_file(folder / os.fsdecode(name), str(number))
    document = commonplace.ok("sessions", "import", "--path", place)

    assert agents.counts(document) == {"found": 3, "imported": 1, "skipped": 2}
    assert document["sources"][0]["reasons"] == {"bad_name": 2}
    assert [warning.endswith("has a name that is not text.") for warning in document["warnings"]] == [True, True]


@pytest.mark.parametrize("source", ["codex", "claude-code", "transcript"])
def test_a_place_whose_name_is_not_text_gives_one_sentence(commonplace: Command, tmp_path: Path, source: str) -> None:
    place = agents.SOURCES[source](tmp_path / os.fsdecode(b"\xff"))
    ran = commonplace("sessions", "import", "--from", source, "--path", place, "--json")

    assert ran.code == 1
    assert ran.json["error"]["code"] == "bad_name"
    assert ran.err.count("\n") == 1
    assert listed(commonplace) == set()


def odd_files(folder: Path) -> int:
    """Fill a folder with what is no session; return how many of them are files to be counted."""
    (folder / "empty.jsonl").touch()
    (folder / "blank.jsonl").write_bytes(b"\n \n\n")
    (folder / "garbage.jsonl").write_bytes(bytes(range(256)) * 1000)
    (folder / "zeros.jsonl").write_bytes(b"\0" * 100_000)
    (folder / "deep.jsonl").write_bytes(b"[" * 100_000 + b"]" * 100_000 + b"\n")
    (folder / "scalars.jsonl").write_bytes(b'1\nnull\n"x"\n[]\n{}\n')
    (folder / "latin.jsonl").write_bytes(b'{"sessionId":"\xe9"}\n')
    (folder / "folder.jsonl").mkdir()
    (folder / "folder.jsonl" / "inside.jsonl").write_bytes(b"no\n")
    (folder / "loop").symlink_to(folder)
    (folder / "up.jsonl").symlink_to("..", target_is_directory=True)
    (folder / "broken.jsonl").symlink_to("nowhere")
    (folder / "itself.jsonl").symlink_to("itself.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    return 10


@pytest.mark.parametrize("source", agents.SOURCES)
def test_odd_files_beside_a_session_cost_nothing_but_themselves(
    commonplace: Command, home: Path, tmp_path: Path, source: str
) -> None:
    place = agents.SOURCES[source](tmp_path / "source")
    (session,) = [path for path in place.rglob("*") if path.suffix in (".jsonl", ".traj")]
    odd_files(session.parent)
    if source == "codex":
        for path in list(session.parent.iterdir()):
            if path != session:
                path.rename(path.with_name(f"rollout-2026-11-15T09-00-00-{path.name}"))
    if source == "swe-agent":
        for path in list(session.parent.glob("*.jsonl")):
            path.rename(path.with_suffix(".traj"))
    document = commonplace.ok("sessions", "import", "--from", source, "--path", place)
    row = document["sources"][0]

    assert row["imported"] == 1
    assert set(row["reasons"]) <= {"empty", "not_a_session", "unreadable"}
    assert row["skipped"] >= 6
    assert len(listed(commonplace)) == 1
    assert agents.left_behind(home) == []
    again = commonplace.ok("sessions", "import", "--from", source, "--path", place)["sources"][0]
    assert (again["unchanged"], again["reasons"]) == (1, row["reasons"])


def test_a_line_of_17_megabytes_is_left_out_and_the_rest_comes_in(commonplace: Command, tmp_path: Path) -> None:
    path = agents.transcript_file(tmp_path / "talk.jsonl", "before", "yes")
    size = 17 * 2**20
    long = b'{"session":"talk","role":"user","text":"' + b"x" * size + b'"}'
    after = json.dumps({"session": "talk", "role": "user", "text": "after"}).encode()
    start = path.stat().st_size
    path.write_bytes(path.read_bytes() + long + b"\n" + after + b"\n")
    document = commonplace.ok("sessions", "import", "--path", path)
    (thread_id,) = listed(commonplace)
    shown = commonplace.ok("sessions", "show", thread_id)

    assert document["sources"][0]["lines_skipped"] == {"too_long": 1}
    assert shown["user_texts"] == ["before", "after"]
    assert shown["skipped"] == [{"offset": start, "bytes": len(long), "reason": "too_long"}]


def test_a_file_that_may_not_be_read_is_left_out_and_taken_in_later(commonplace: Command, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "simple", "tools")
    file = next(place.glob("projects/*simple/*.jsonl"))
    if os.geteuid() == 0:  # whom no mode keeps out
        whole = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        left_out = commonplace.ok("sessions", "import", "--path", place)
        file.unlink()
        file.write_bytes(whole)
    else:
        file.chmod(0)
        left_out = commonplace.ok("sessions", "import", "--path", place)
        file.chmod(0o600)

    assert left_out["sources"][0]["reasons"] in ({"ledger_error": 1}, {"unreadable": 1})
    assert str(file) in left_out["warnings"][0]
    assert imported(commonplace, place) == {"found": 2, "imported": 1, "unchanged": 1}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts a disk of its own where that is allowed."""
    mounted: list[Path] = []

    def mount(size: str = "64m") -> Path:
        disk = tmp_path / f"disk{len(mounted)}"
        disk.mkdir()
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True, check=False
        )
        if made.returncode:
            pytest.skip("mounting is not allowed here")
        mounted.append(disk)
        return disk

    yield mount
    for disk in mounted:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("source", agents.SOURCES)
def test_a_source_on_a_disk_that_cannot_be_written_is_imported(
    commonplace: Command, small_disk: Callable[..., Path], source: str
) -> None:
    disk = small_disk()
    place = agents.SOURCES[source](disk / "source")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

    assert imported(commonplace, place) == {"found": 1, "imported": 1}
    (thread_id,) = listed(commonplace)
    for command in ("show", "context", "verify", "fork"):
        commonplace.ok("sessions", command, thread_id)


@pytest.mark.parametrize("source", ["codex", "claude-code"])
def test_a_home_that_cannot_be_written_gives_one_sentence(
    commonplace: Command,
    tmp_path: Path,
    small_disk: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    disk = small_disk()
    monkeypatch.setenv("COMMONPLACE_HOME", str(disk / "home"))
    place = agents.SOURCES[source](tmp_path / "source")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    ran = commonplace("sessions", "import", "--path", place, "--json")

    assert ran.code == 1
    assert "Read-only file system" in ran.json["error"]["message"]
    assert ran.err.count("\n") == 1


def test_a_full_disk_gives_one_sentence_and_the_import_goes_on_when_there_is_room(
    commonplace: Command, tmp_path: Path, small_disk: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk("4m")
    home = disk / "home"
    monkeypatch.setenv("COMMONPLACE_HOME", str(home))
    place = agents.claude_home(tmp_path / "claude", "simple", "tools", "resume")
    commonplace.ok("sessions", "import", "--path", next(place.glob("projects/*tools/*.jsonl")))
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    ran = commonplace("sessions", "import", "--path", place, "--json")

    assert ran.code == 1
    assert "No space left on device" in ran.json["error"]["message"]
    assert "Traceback" not in ran.err
    assert agents.left_behind(home) == []
    filler.unlink()
    done = imported(commonplace, place)
    assert (done["found"], done["imported"] + done["unchanged"]) == (5, 5)
    assert len(listed(commonplace)) == 5
    for path in agents.ledgers(home):
        commonplace.ok("sessions", "verify", path)


# --- Without a database.


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@contextlib.contextmanager
def corrupt(path: Path) -> Generator[None]:
    before = path.read_bytes()
    path.write_bytes(b"this is not a database" * 1000)
    yield
    for each in path.parent.glob("state.sqlite*"):
        each.unlink()
    path.write_bytes(before)


@contextlib.contextmanager
def newer(path: Path) -> Generator[None]:
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute("PRAGMA user_version = 999")
    yield
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


@contextlib.contextmanager
def a_folder(path: Path) -> Generator[None]:
    for each in path.parent.glob("state.sqlite*"):
        each.unlink()
    path.mkdir()
    yield
    path.rmdir()


@pytest.mark.parametrize("source", ["codex", "claude-code"])
@pytest.mark.parametrize("trouble", [locked, corrupt, newer, a_folder], ids=lambda trouble: trouble.__name__)
def test_an_import_goes_on_without_its_database_and_the_next_one_finds_everything(
    commonplace: Command,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    trouble: Callable[[Path], contextlib.AbstractContextManager[None]],
) -> None:
    monkeypatch.setattr(homes, "FOREGROUND_SECONDS", 0.05)
    place = agents.SOURCES[source](tmp_path / "source")
    commonplace.ok("sessions", "list")
    with trouble(home / "state.sqlite"):
        ran = commonplace("sessions", "import", "--path", place, "--json")

    assert ran.code == 0, ran.err
    assert agents.counts(ran.json) == {"found": 1, "imported": 1}
    assert "reading the files instead" in ran.err
    assert len(listed(commonplace)) == 1
    again = "imported" if source == "codex" else "unchanged"  # what Codex wrote was not read, so it is new
    assert imported(commonplace, place) == {"found": 1, again: 1}
    assert imported(commonplace, place) == {"found": 1, "unchanged": 1}


@pytest.mark.parametrize("source", ["codex", "claude-code"])
def test_a_server_that_is_not_there_does_not_stop_an_import(
    commonplace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    place = agents.SOURCES[source](tmp_path / "source")
    monkeypatch.setenv("COMMONPLACE_DATABASE", "postgresql://nobody@127.0.0.1:1/nothing")
    ran = commonplace("sessions", "import", "--path", place, "--json")
    monkeypatch.delenv("COMMONPLACE_DATABASE")

    assert (ran.code, agents.counts(ran.json)) == (0, {"found": 1, "imported": 1})
    assert len(listed(commonplace)) == 1


# --- Several processes, and their deaths.


def many(folder: Path, count: int) -> Path:
    """Claude Code's folder with many sessions of two turns, one in five with a large output."""
    source = json.loads("[" + ",".join(agents.claude_file(folder / "model", "tools").read_text().splitlines()) + "]")
    place = folder / "projects" / "-repo"
    for number in range(count):
        session = f"0198c0de-0000-4000-8000-{number:012x}"
        text = "".join(json.dumps(record | {"sessionId": session}) + "\n" for record in source)
        text = text.replace("Reading the file.", f"Reading file {number}. " + "x" * (100_000 if number % 5 == 0 else 0))
        for record in source:
            if "uuid" in record:
                text = text.replace(record["uuid"], f"{number:08x}{record['uuid'][8:]}")
        (place / f"{session}.jsonl").parent.mkdir(parents=True, exist_ok=True)
        (place / f"{session}.jsonl").write_text(text)
    (next((folder / "model").rglob("*.jsonl"))).unlink()
    return folder / "projects"


def contents(home: Path) -> dict[str, tuple[int, str]]:
    """Each thread with the length of its ledger and what was said last; a thread must have one file only."""
    found: dict[str, tuple[int, str]] = {}
    for path in agents.ledgers(home):
        raw = path.read_bytes()
        assert path.stem[-36:] not in found
        found[path.stem[-36:]] = (raw.count(b"\n"), raw.splitlines()[-1].decode()[:40])
    return found


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what only a loss of power would need."""
    monkeypatch.setenv("COMMONPLACE_FSYNC", "never")


@pytest.mark.usefixtures("fast")
def test_imports_at_the_same_time_both_finish_and_nothing_is_there_twice(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    place = many(tmp_path / "claude", 40)
    codex = agents.codex_home(tmp_path / "codex")
    running = [agents.program("sessions", "import", "--path", place, "--path", codex, "--json") for _ in range(3)]
    ended = [(process.communicate(timeout=100), process.returncode) for process in running]

    assert [(code, errors) for (_, errors), code in ended] == [(0, "")] * 3
    rows = [row for (out, _), _ in ended for row in json.loads(out)["sources"]]
    assert sum(row["imported"] for row in rows if row["from"] == "claude-code") == 40
    assert sum(row["imported"] for row in rows if row["from"] == "codex") == 1
    assert sum(row["unchanged"] for row in rows) == 82
    assert len(contents(home)) == 40
    assert len(listed(commonplace)) == 41
    assert agents.left_behind(home) == []


def killed_while_importing(place: Path, home: Path, after: int, further: int) -> int:
    """Kill an import some steps after a number of ledgers is there; return how many there are."""
    process = agents.paused(home, after, further, "sessions", "import", "--path", place)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return len(agents.ledgers(home))


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    "tries", [pytest.param(3, id="3 times"), pytest.param(60, id="60 times", marks=pytest.mark.soak)]
)
def test_an_import_that_is_killed_loses_nothing_and_doubles_nothing(
    commonplace: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    count = 60
    place = many(tmp_path / "claude", count)
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "whole"))
    commonplace.ok("sessions", "import", "--path", place)
    whole = contents(tmp_path / "whole")
    monkeypatch.setenv("COMMONPLACE_HOME", str(home))
    chance = random.Random(20261115)
    killed = 0
    for _ in range(tries):
        done = killed_while_importing(place, home, chance.randint(0, count - 1), chance.randint(0, 40))
        killed += 0 < done < count
        if done == count:
            for path in agents.ledgers(home)[: chance.randint(1, count)]:
                path.unlink()
    done = imported(commonplace, place)

    assert killed > 0
    assert done["found"] == done.get("imported", 0) + done.get("unchanged", 0) + done.get("updated", 0) == count
    assert contents(home) == whole
    assert len(listed(commonplace)) == count
    assert agents.left_behind(home / "sessions") == []  # those of payloads go when payloads are collected
    assert commonplace.ok("doctor")["ok"]


@pytest.mark.usefixtures("fast")
def test_an_interrupted_import_ends_at_once_and_goes_on_later(commonplace: Command, home: Path, tmp_path: Path) -> None:
    place = many(tmp_path / "claude", 200)
    process = agents.paused(home, 5, 3, "sessions", "import", "--path", place)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate("go on\n", timeout=100)

    assert process.returncode == 130
    assert "Traceback" not in errors
    assert 5 <= len(agents.ledgers(home)) < 200
    assert agents.left_behind(home) == []
    done = imported(commonplace, place)
    assert done["found"] == done["imported"] + done["unchanged"] == 200


def test_a_session_that_another_process_writes_to_is_left_for_later(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    from commonplace.rollout.locks import WriterLock

    path = agents.transcript_file(tmp_path / "talk.jsonl", "one")
    imported(commonplace, path)
    (thread_id,) = listed(commonplace)
    agents.transcript_file(path, "one", "two", "three")
    with WriterLock(home, thread_id):
        document = commonplace.ok("sessions", "import", "--path", path)

    assert document["sources"][0]["reasons"] == {"thread_busy": 1}
    assert imported(commonplace, path) == {"found": 1, "updated": 1}


# --- Memory.

MEASURE = """
import sys
from commonplace.surfaces.cli.root import run
code = run(sys.argv[1:])
with open("/proc/self/status") as status:
    sys.stderr.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
sys.exit(code)
"""
"""Says how many KiB it needed at most; what `getrusage` says may be what the parent had before the program began."""


def large(path: Path, megabytes: int, source: str) -> Path:
    """A session of many megabytes: turns, long outputs, a line of 15 MB."""
    line: Callable[[int, str], dict[str, Any]]
    if source == "transcript":
        line = lambda number, text: {"session": "s", "role": ("user", "tool")[number % 2], "text": text}  # noqa: E731
    else:
        line = lambda number, text: {  # noqa: E731
            "type": "user",
            "uuid": f"{number:08x}-0000-4000-8000-000000000000",
            "sessionId": path.stem,
            "parentUuid": f"{number - 1:08x}-0000-4000-8000-000000000000" if number else None,
            "timestamp": "2026-11-15T06:00:00.000Z",
            "cwd": "/repo",
            "message": {"role": "user", "content": text},
        }
    sizes = [200, 3000, 70_000, 100, 20_000]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(json.dumps(line(0, "begin")).encode() + b"\n")
        file.write(json.dumps(line(1, "é" * (15 * 2**20 // 6))).encode() + b"\n")
        number = 2
        while file.tell() < megabytes * 2**20:
            file.write(json.dumps(line(number, "word \\n" * (sizes[number % 5] // 7))).encode() + b"\n")
            number += 1
    return path


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("source", ["claude-code", "transcript"])
@pytest.mark.parametrize("megabytes", [30, pytest.param(300, marks=pytest.mark.soak)])
def test_a_large_session_is_imported_in_little_memory(tmp_path: Path, source: str, megabytes: int) -> None:
    path = large(tmp_path / "source" / f"{agents.SIMPLE}.jsonl", megabytes, source)
    command = [sys.executable, "-c", MEASURE, "sessions", "import", "--path", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, check=True)

    assert agents.counts(json.loads(done.stdout)) == {"found": 1, "imported": 1}
    assert int(done.stderr) * 1024 < 200 * 2**20
