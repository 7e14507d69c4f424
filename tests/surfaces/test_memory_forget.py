"""`commonplace memory forget`: nothing is left but hashes, it does not come back by itself, a note brings it back."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
import taught_homes as taught
from agents import stamps
from command import Command

import processes
from commonplace.state import home as homes
from ledgers import Script, assistant, user


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    address = "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))
    monkeypatch.setenv("COMMONPLACE_DATABASE", address)
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    return address


@pytest.fixture
def learned(address: str, home: Path, commonplace: Command) -> Path:
    """A home that was learned from."""
    taught.write(home)
    commonplace.ok("memory", "run")
    return home


def entry(commonplace: Command, text: str) -> dict[str, Any]:
    (found,) = [each for each in commonplace.ok("memory", "list")["entries"] if text in each["text"]]
    return found


def texts(commonplace: Command) -> str:
    return "\n".join(each["text"] for each in commonplace.ok("memory", "list")["entries"])


def in_rows(address: str, home: Path, text: str) -> list[str]:
    """Return the tables that still say a text."""
    found: list[str] = []
    if address == "sqlite":
        connection = sqlite3.connect(home / "state.sqlite")
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = [name for name in names if text in str(connection.execute(f"SELECT * FROM {name}").fetchall())]
        connection.close()
        return found
    with psycopg.connect(address) as server:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'commonplace'"
        names = [str(name) for (name,) in server.execute(query)]
        for name in names:
            rows = server.execute(f"SELECT * FROM commonplace.{name}".encode()).fetchall()
            found += [name] if text in str(rows) else []
    return found


def test_what_is_forgotten_is_nowhere_under_the_home(commonplace: Command, learned: Path, address: str) -> None:
    before = entry(commonplace, taught.PNPM)
    assert taught.traces(learned, taught.PNPM)

    done = commonplace.ok("memory", "forget", before["id"])

    assert before["id"] in done["removed"]
    assert str(learned / "memories" / "MEMORY.md") in done["files"]
    assert [] == taught.traces(learned, taught.PNPM, "pnpm instead of npm")
    assert [] == in_rows(address, learned, "pnpm instead of npm")
    assert taught.PUSH in texts(commonplace)
    assert not (learned / "state.sqlite-wal").exists() or (learned / "state.sqlite-wal").stat().st_size == 0


def test_what_is_forgotten_is_not_learned_again(commonplace: Command, learned: Path, address: str) -> None:
    commonplace.ok("memory", "forget", taught.PNPM)

    again = commonplace.ok("memory", "run")
    grown = taught.shop().turn(
        user(f"as I said: {taught.PNPM} And always run the linter before a commit."), assistant("Ok.")
    )
    grown.event("thread_name_updated").write_home(learned)
    commonplace.ok("sessions", "reindex")
    commonplace.ok("doctor", "--repair")
    commonplace.ok("memory", "run")

    assert again["consolidation"]["status"] == "unchanged"
    assert [] == taught.traces(learned, "pnpm instead of npm")
    assert [] == in_rows(address, learned, "pnpm instead of npm")


def test_a_new_session_that_says_it_teaches_the_rest_only(commonplace: Command, learned: Path) -> None:
    commonplace.ok("memory", "forget", taught.PNPM)
    other = taught.session("0198c0de-0000-7000-8000-0000000000c1", "shop")
    other.turn(user(f"{taught.PNPM} Never edit the generated files in this project."), assistant("Ok.")).write_home(
        learned
    )
    commonplace.ok("memory", "run")

    assert "generated files" in texts(commonplace)
    assert [] == taught.traces(learned, "pnpm instead of npm")


def test_a_dry_run_says_what_would_go_and_changes_nothing(commonplace: Command, learned: Path) -> None:
    files = {name: stamp for name, stamp in stamps(learned).items() if not name.startswith(("state.sqlite", "."))}

    told = commonplace.ok("memory", "forget", taught.PNPM, "--dry-run")

    after = {name: stamp for name, stamp in stamps(learned).items() if not name.startswith(("state.sqlite", "."))}
    assert files == after
    assert taught.PNPM in texts(commonplace)
    assert told == commonplace.ok("memory", "forget", taught.PNPM)


def test_a_note_brings_it_back_and_forgetting_again_takes_the_note(
    commonplace: Command, learned: Path, address: str
) -> None:
    commonplace.ok("memory", "forget", taught.PNPM)
    note = Path(commonplace.ok("memory", "note", taught.PNPM, "--project", "shop")["path"])
    commonplace.ok("memory", "run")
    back = entry(commonplace, taught.PNPM)
    commonplace.ok("memory", "forget", back["id"])

    assert back["project"] == "github.com/acme/shop"
    assert not note.exists()
    assert [] == taught.traces(learned, "pnpm instead of npm", "always-use-pnpm")
    assert taught.PNPM not in texts(commonplace)


def test_a_session_whose_ledger_is_gone_is_cut_out_of_what_it_taught(commonplace: Command, learned: Path) -> None:
    for ledger in (learned / "sessions").rglob(f"*{taught.SHOP}.jsonl"):
        ledger.write_bytes(ledger.read_bytes()[:20])
    commonplace.ok("memory", "forget", taught.PNPM)

    assert [] == taught.traces(learned, "pnpm instead of npm")


def test_every_wording_of_a_thing_goes(commonplace: Command, learned: Path, address: str) -> None:
    other = taught.session("0198c0de-0000-7000-8000-0000000000c2", "shop")
    said = "From now on do not push to main without asking me."
    other.turn(user(said), assistant("Ok.")).write_home(learned)
    commonplace.ok("memory", "run")
    (both,) = [each for each in commonplace.ok("memory", "list")["entries"] if each["support"] == 2]
    commonplace.ok("memory", "forget", both["id"])
    commonplace.ok("memory", "run")

    assert set(both["sources"]) == {taught.SHOP, other.thread_id}
    assert [] == taught.traces(learned, "push to main without asking", "push to main before asking")
    assert [] == in_rows(address, learned, "push to main before")


def test_a_reader_of_the_database_does_not_stop_forgetting(
    commonplace: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes, "FOREGROUND_SECONDS", 0.05)
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    commonplace.ok("memory", "run")
    other = sqlite3.connect(home / "state.sqlite", isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT * FROM entries").fetchall()

    ran = commonplace("memory", "forget", taught.PNPM, "--json")
    other.close()
    again = commonplace("memory", "forget", taught.PUSH, "--json")

    assert ran.code == 0
    assert "free space" in ran.err
    assert again.code == 0
    assert [] == taught.traces(home, "pnpm instead of npm")


def test_words_that_no_entry_says_are_taken_out_wherever_they_stand(
    commonplace: Command, learned: Path, address: str
) -> None:
    assert taught.traces(learned, "zanzibar")

    done = commonplace.ok("memory", "forget", "zanzibar")

    assert done["removed"] == [] or done["files"]
    assert [] == taught.traces(learned, "zanzibar")
    assert [] == in_rows(address, learned, "zanzibar")
    assert taught.SHORT in texts(commonplace)


def test_a_name_that_the_person_gave_stays(commonplace: Command, learned: Path) -> None:
    commonplace.ok("sessions", "rename", taught.SHOP, taught.PNPM)
    commonplace.ok("memory", "forget", taught.PNPM)

    named = {thread["thread_id"]: thread for thread in commonplace.ok("sessions", "list")["threads"]}
    assert named[taught.SHOP]["title"] == taught.PNPM
    assert "pnpm instead" not in named[taught.SHOP]["preview"]


def test_what_an_entry_took_the_place_of_does_not_come_back(commonplace: Command, learned: Path) -> None:
    commonplace.ok("memory", "note", "use npm for everything in this repo", "--change", taught.PNPM)
    commonplace.ok("memory", "run")
    commonplace.ok("memory", "forget", "use npm for everything in this repo")

    assert "pnpm instead" not in texts(commonplace)
    assert "npm for everything" not in texts(commonplace)
    assert [] == taught.traces(learned, "npm for everything", "pnpm instead of npm")


def test_the_history_keeps_that_something_was_there_and_not_what(commonplace: Command, learned: Path) -> None:
    forgotten = entry(commonplace, taught.PNPM)["id"]
    commonplace.ok("memory", "forget", forgotten)

    changes = commonplace.ok("memory", "history", forgotten)["changes"]

    assert [(change["before"], change["after"]) for change in changes] == [(None, "[forgotten]"), ("[forgotten]", None)]


def test_nothing_to_forget_changes_nothing(commonplace: Command, home: Path, address: str) -> None:
    commonplace.refused("bad_input", "memory", "forget", "never heard of")
    commonplace.refused("bad_input", "memory", "forget", "  ")

    assert not home.exists()


def test_a_beginning_of_several_ids_is_refused(commonplace: Command, learned: Path) -> None:
    ids = [each["id"] for each in commonplace.ok("memory", "list")["entries"]]
    assert all(re.fullmatch("m[0-9a-f]{9}", each) for each in ids)

    message = commonplace.refused("bad_input", "memory", "why", "m") if len(ids) > 99 else ""

    assert "ids" in message or not message


def test_it_works_without_a_database_server(commonplace: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    commonplace.ok("memory", "run")
    monkeypatch.setenv("COMMONPLACE_DATABASE", "postgresql://nobody@127.0.0.1:1/nothing")

    done = commonplace("memory", "forget", taught.PNPM, "--json")
    listed = commonplace("memory", "list", "--json")
    monkeypatch.delenv("COMMONPLACE_DATABASE")
    commonplace.ok("memory", "run")

    assert done.code == 0, done.err
    assert "pnpm instead" not in listed.out
    assert taught.PUSH in listed.out
    assert [] == taught.traces(home / "memories", "pnpm instead of npm")
    assert [] == [table for table in in_rows("sqlite", home, "pnpm instead of npm") if table != "threads"]


def test_the_program_itself_forgets(home: Path, tmp_path: Path) -> None:
    variables = {**os.environ, "COMMONPLACE_NOW": taught.NOW}
    taught.write(home)

    def run(*arguments: str) -> processes.CompletedProcess[str]:
        return processes.run(arguments, env=variables, cwd=tmp_path, text=True)

    assert run("memory", "run").returncode == 0
    looked = run("memory", "forget", taught.PNPM, "--dry-run")
    done = run("memory", "forget", taught.PNPM)
    missed = run("memory", "forget", taught.PNPM)

    assert (looked.returncode, done.returncode, missed.returncode) == (0, 0, 1)
    assert "would go" in looked.stdout
    assert "forgotten" in done.stdout
    assert missed.stderr.startswith("commonplace: Nothing in memory")
    assert [] == taught.traces(home, "pnpm instead of npm")


def test_a_forgotten_first_message_does_not_hide_the_session(
    commonplace: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    script = taught.session(taught.SHOP, "shop").turn(user(taught.PNPM), assistant("Ok."))
    script.turn(user(taught.PUSH), assistant("Ok.")).write_home(home)
    commonplace.ok("memory", "run")
    commonplace.ok("memory", "forget", taught.PNPM)
    (home / "state.sqlite").unlink()
    commonplace.ok("memory", "run")

    assert commonplace.ok("sessions", "list")["threads"][0]["preview"] == "[forgotten]"
    assert taught.PUSH in texts(commonplace)
    assert [] == taught.traces(home, "pnpm instead of npm")
    assert isinstance(script, Script)
