"""`commonplace sessions import`: every source, found by itself or by name, taken in whole, once, and only read."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import agents
import pytest
import zstandard
from command import Command

from ledgers import Script, assistant, user

TWO = "0198c0de-0000-7000-8000-000000000002"
ROW = {"from", "path", "found", "imported", "updated", "unchanged", "skipped", "reasons", "lines_skipped"}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the program keep its rows in either database."""
    if request.param == "postgres":
        monkeypatch.setenv("COMMONPLACE_DATABASE", request.getfixturevalue("postgres"))
    return str(request.param)


def imported(commonplace: Command, path: Path, *more: object) -> dict[str, int]:
    return agents.counts(commonplace.ok("sessions", "import", "--path", path, *more))


def listed(commonplace: Command, *options: object) -> dict[str, dict[str, Any]]:
    rows = commonplace.ok("sessions", "list", "--limit", 10_000, *options)["threads"]
    found = {row["thread_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("said", [True, False], ids=["named", "found out"])
@pytest.mark.parametrize("source", agents.SOURCES)
def test_a_session_of_every_agent_comes_in_once_and_its_files_are_only_read(
    commonplace: Command, home: Path, tmp_path: Path, source: str, said: bool
) -> None:
    place = agents.SOURCES[source](tmp_path / "source")
    before = agents.stamps(tmp_path / "source")
    options = ["--from", source] if said else []

    first = commonplace.ok("sessions", "import", "--path", place, *options)
    rows = listed(commonplace)
    again = imported(commonplace, place, *options)

    (row,) = first["sources"]
    assert (set(first), set(row)) == ({"sources", "warnings"}, ROW)
    done = {"found": 1, "imported": 1, "updated": 0, "unchanged": 0, "skipped": 0}
    assert row == {"from": source, "path": str(place), **done, "reasons": {}, "lines_skipped": {}}
    assert first["warnings"] == []
    assert again == {"found": 1, "unchanged": 1}
    assert listed(commonplace) == rows
    ((thread_id, listing),) = rows.items()
    assert listing["preview"] == ("What is the capital of France?" if source == "claude-code" else "fix the tests")
    for command in ("show", "context", "verify"):
        commonplace.ok("sessions", command, thread_id)
    assert agents.stamps(tmp_path / "source") == before
    assert is_private(home)


def is_private(home: Path) -> bool:
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in [home, *home.rglob("*")]}
    return modes <= {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("name", agents.EXPECTED, ids=lambda name: str(name).partition("/")[0])
def test_a_recording_of_claude_code_is_told_as_its_oracle_says_before_and_after_it_is_imported(
    commonplace: Command, tmp_path: Path, name: str
) -> None:
    expected = agents.EXPECTED[name]
    path = agents.CLAUDE / name
    shown = commonplace.ok("sessions", "show", path)

    assert shown["path"] == str(path)
    assert shown["user_texts"] == expected["true_user_texts"]
    assert Counter(call["name"] for call in shown["calls"]) == Counter(expected["function_calls"])
    failed = expected["errors"] + len(expected["function_calls"]) - expected["outputs"]
    assert sum(not call["ok"] for call in shown["calls"]) == failed
    assert len(shown["compactions"]) == len(expected["compactions"])
    raw = path.read_bytes()
    end = raw.rindex(b"\n") + 1
    torn = [{"offset": end, "bytes": len(raw) - end, "reason": "torn"}] if end < len(raw) else []
    assert (shown["skipped"], bool(torn)) == (torn, "truncated" in name)

    assert imported(commonplace, path) == {"found": 1, "imported": 1}
    after = commonplace.ok("sessions", "show", shown["thread_id"])
    told = ("thread_id", "source", "cwd", "project", "user_texts", "calls", "compactions", "skipped")
    assert {key: after[key] for key in told} == {key: shown[key] for key in told}
    assert Path(after["path"]).is_relative_to(tmp_path / "home" / "sessions")
    verified = commonplace.ok("sessions", "verify", shown["thread_id"])
    assert verified["ok"]


def test_a_sub_agent_is_listed_by_its_source_and_shown_with_its_parent(commonplace: Command, tmp_path: Path) -> None:
    path = agents.claude_file(tmp_path / "claude", "subagent")
    before = commonplace.ok("sessions", "show", path)["sidechains"]
    assert imported(commonplace, tmp_path / "claude") == {"found": 2, "imported": 2}

    (parent,) = listed(commonplace)
    (child,) = listed(commonplace, "--source", "subagent:thread_spawn").values()
    shown = commonplace.ok("sessions", "show", parent)

    assert parent == path.stem
    assert [each["thread_id"] for each in before] == [child["thread_id"]]
    assert shown["sidechains"] == [{"thread_id": child["thread_id"], "path": child["path"]}]


def test_everything_that_38_versions_of_claude_code_wrote_comes_in(commonplace: Command, home: Path) -> None:
    folder = agents.DATA / "claude_recorded"
    files = [path for path in folder.rglob("*.jsonl") if path.name not in ("history.jsonl", "journal.jsonl")]
    files = [path for path in files if not {"tool-results", "memory"} & set(path.parts)]

    document = commonplace.ok("sessions", "import", "--path", folder)
    again = imported(commonplace, folder)
    rows = listed(commonplace) | listed(commonplace, "--source", "subagent:thread_spawn")

    first = agents.counts(document)
    fixed = [path for path in files if path.stem == "11111111-2222-4333-8444-555555555555"]
    reasons = document["sources"][0]["reasons"]
    assert first["found"] == len(files)
    assert set(reasons) == {"empty", "copy"}
    assert reasons["copy"] == len(fixed) - 1  # every version was told to use this id
    assert again == {"found": first["found"], "unchanged": first["imported"], "skipped": first["skipped"]}
    assert len(rows) == len(agents.ledgers(home)) > first["imported"]  # old files hold their sub-agents too
    assert agents.left_behind(home) == []

    async def look(book: Any) -> list[str]:
        bad: list[str] = []
        for thread_id in rows:
            context = await book.sessions.context(thread_id)
            verified = await book.sessions.verify(thread_id)
            if not verified.ok or context.receipt.skipped or context.thread_id != thread_id:
                bad.append(thread_id)
        return bad

    assert agents.with_book(look) == []


def test_codex_sessions_are_referred_to_where_they_are(commonplace: Command, home: Path, tmp_path: Path) -> None:
    place = tmp_path / "codex"
    folders = [agents.DATA / "codex_fixtures", agents.DATA / "codex_recorded"]
    files = [path for folder in folders for path in folder.rglob("rollout-*.jsonl")]
    for path in files:
        target = place / "sessions" / path.relative_to(agents.DATA)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    before = agents.stamps(place)

    first = imported(commonplace, place)
    direct = commonplace.ok("sessions", "list", "--home", place, "--limit", 10_000)["threads"]
    rows = listed(commonplace)

    assert first == {"found": len(files), "imported": len(files)}
    assert imported(commonplace, place) == {"found": len(files), "unchanged": len(files)}
    assert all(Path(row["path"]).is_relative_to(place) for row in rows.values())
    assert {row["thread_id"]: row["turns"] for row in direct} == {key: row["turns"] for key, row in rows.items()}
    for thread_id in list(rows)[:5]:
        commonplace.ok("sessions", "context", thread_id)
    assert agents.stamps(place) == before
    assert not (home / "sessions").exists()
    assert is_private(home)


def bare(thread_id: str) -> bytes:
    """A session file as Codex wrote it in 2025: no envelopes."""
    head: dict[str, Any] = {"id": thread_id, "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None, "git": {}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "an old question"}]}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (head, {"record_type": "state"}, said))


def test_codex_sessions_are_found_in_every_form_that_they_have_had(commonplace: Command, tmp_path: Path) -> None:
    place = tmp_path / "codex"
    ids = [f"0198c0de-0000-7000-8000-00000000000{number}" for number in range(4)]
    plain = agents.codex_script(ids[0]).write_home(place)
    packed = place / "sessions" / f"rollout-2026-11-15T09-00-00-{ids[1]}.jsonl.zst"
    packed.write_bytes(zstandard.compress(agents.codex_script(ids[1]).data()))
    archived = agents.codex_script(ids[2]).write(place / "archived_sessions")
    old = place / "sessions" / "2025" / "06" / "01" / f"rollout-2025-06-01T10-00-00-{ids[3]}.jsonl"
    old.parent.mkdir(parents=True)
    old.write_bytes(bare(ids[3]))

    assert imported(commonplace, place) == {"found": 4, "imported": 4}

    rows = listed(commonplace) | listed(commonplace, "--archived")
    assert {Path(rows[key]["path"]) for key in ids} == {plain, packed, archived, old}
    assert [rows[key]["archived"] for key in ids] == [False, False, True, False]
    assert [rows[key]["preview"] for key in ids] == ["fix the tests"] * 3 + ["an old question"]
    for path in (plain, packed, archived, old):
        assert imported(commonplace, path) == {"found": 1, "unchanged": 1}
        assert commonplace.ok("sessions", "show", path)["user_texts"][0] in ("fix the tests", "an old question")


@pytest.mark.parametrize("part", ["", "sessions", "sessions/2026/11", "sessions/2026/11/15/{}"])
def test_a_part_of_a_codex_home_can_be_imported_and_the_rest_later(
    commonplace: Command, tmp_path: Path, part: str
) -> None:
    place = agents.codex_home(tmp_path / "codex", agents.codex_script(), agents.codex_script(TWO))
    name = f"rollout-2026-11-15T09-00-00-{TWO}.jsonl"
    alone = part.endswith("{}")

    assert imported(commonplace, place / part.format(name))["imported"] == (1 if alone else 2)
    assert imported(commonplace, place) == {
        "found": 2,
        **({"imported": 1, "unchanged": 1} if alone else {"unchanged": 2}),
    }
    assert len(listed(commonplace)) == 2


def test_a_part_of_claude_codes_folder_can_be_imported(commonplace: Command, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "simple", "resume", "tools")
    projects = place / "projects"

    assert imported(commonplace, next(projects.glob("*tools/*.jsonl"))) == {"found": 1, "imported": 1}
    assert imported(commonplace, projects / "-repo-simple") == {"found": 1, "imported": 1}
    assert imported(commonplace, projects) == {"found": 5, "imported": 3, "unchanged": 2}
    assert imported(commonplace, place) == {"found": 5, "unchanged": 5}


@pytest.mark.parametrize("part", ["", ".gemini", ".gemini/tmp/short-id", ".gemini/tmp/short-id/chats"])
def test_a_part_of_geminis_home_can_be_imported(commonplace: Command, tmp_path: Path, part: str) -> None:
    agents.gemini_home(tmp_path / "gemini")

    assert imported(commonplace, tmp_path / "gemini" / part) == {"found": 1, "imported": 1}
    (row,) = listed(commonplace).values()
    assert (row["thread_id"], row["source"], row["cwd"]) == (agents.GEMINI, "gemini", "/srv/told")


def test_the_usual_places_are_looked_at_when_none_is_named(
    commonplace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_home = tmp_path / "user"
    agents.codex_home(user_home / ".codex")
    agents.claude_home(user_home / ".claude", "simple")
    agents.gemini_home(user_home)
    here = commonplace.ok("sessions", "import")
    monkeypatch.setenv("CODEX_HOME", str(agents.codex_home(tmp_path / "a", agents.codex_script(TWO))))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(agents.claude_home(tmp_path / "b", "tools")))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "c"))
    agents.gemini_home(tmp_path / "c")
    elsewhere = commonplace.ok("sessions", "import")
    one = commonplace.ok("sessions", "import", "--from", "claude-code")

    places = {row["from"]: (row["path"], row["imported"]) for row in here["sources"]}
    assert places == {
        "codex": (str(user_home / ".codex"), 1),
        "claude-code": (str(user_home / ".claude"), 1),
        "gemini": (str(user_home / ".gemini"), 1),
    }
    assert {row["from"]: (row["path"], row["found"]) for row in elsewhere["sources"]} == {
        "codex": (str(tmp_path / "a"), 1),
        "claude-code": (str(tmp_path / "b"), 1),
        "gemini": (str(tmp_path / "c" / ".gemini"), 1),
    }
    assert agents.counts(one) == {"found": 1, "unchanged": 1}
    assert len(listed(commonplace)) == 5  # Gemini's is the same session


def test_a_folder_of_claude_code_is_its_own_whatever_else_is_in_it(commonplace: Command, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "simple")
    (place / "sessions").mkdir()
    (place / "sessions" / "4711.json").write_text('{"pid":4711,"sessionId":"x","cwd":"/"}')
    (place / "tmp").mkdir()

    document = commonplace.ok("sessions", "import", "--path", place)

    assert (document["sources"][0]["from"], agents.counts(document)) == ("claude-code", {"found": 1, "imported": 1})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no sessions to import"),
        (["--from", "claude-code"], "no sessions to import"),
        (["--from", "transcript"], "no sessions to import"),
        (["--path", "{}/nowhere"], "There is no"),
        (["--path", "{}/empty"], "no sessions that are known"),
        (["--path", "{}/notes.txt"], "no sessions that are known"),
        (["--path", "{}/pipe.jsonl"], "no sessions that are known"),
        (["--path", "{}/talk.jsonl", "--path", "{}/nowhere"], "There is no"),
    ],
)
def test_where_there_is_nothing_to_import_one_sentence_says_so_and_nothing_is_made(
    commonplace: Command, home: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    place = tmp_path / "place"
    (place / "empty").mkdir(parents=True)
    (place / "notes.txt").write_text("dear diary")
    agents.transcript_file(place / "talk.jsonl")
    os.mkfifo(place / "pipe.jsonl")

    sentence = commonplace.refused("bad_input", "sessions", "import", *(each.format(place) for each in arguments))

    assert words in sentence
    assert not home.exists()


def test_an_unknown_source_is_wrong_usage(commonplace: Command) -> None:
    assert commonplace("sessions", "import", "--from", "emacs").code == 2


def test_a_wrong_source_takes_nothing_in_and_says_so(commonplace: Command, home: Path, tmp_path: Path) -> None:
    path = agents.transcript_file(tmp_path / "talk.jsonl")
    document = commonplace.ok("sessions", "import", "--from", "claude-code", "--path", path)

    assert document["sources"][0]["reasons"] == {"not_a_session": 1}
    assert agents.ledgers(home) == []
    assert imported(commonplace, path) == {"found": 1, "imported": 1}  # what was noted does not stand in the way


def test_several_places_are_imported_at_once(commonplace: Command, tmp_path: Path) -> None:
    talk = agents.transcript_file(tmp_path / "a" / "talk.jsonl")
    codex = agents.codex_home(tmp_path / "codex")
    document = commonplace.ok("sessions", "import", "--path", talk, "--path", codex, "--path", talk)

    assert [(row["from"], row["imported"]) for row in document["sources"]] == [
        ("transcript", 1),
        ("codex", 1),
        ("transcript", 0),
    ]


def test_the_words_for_a_person_say_what_was_left_out_and_why(commonplace: Command, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "simple")
    (place / "projects" / "-repo-simple" / "empty.jsonl").touch()
    (place / "projects" / "-repo-simple" / "bad.jsonl").write_text("\x1b[31mnothing\n")
    ran = commonplace("sessions", "import", "--path", place)

    assert (ran.code, ran.err) == (0, "")
    assert "claude-code: 3 session file(s)" in ran.out
    assert "1 new, 0 continued, 0 unchanged, 2 left out" in ran.out
    assert "1 × nothing was said in it" in ran.out
    assert "1 × not a session" in ran.out


def test_our_own_home_is_nothing_to_import(commonplace: Command, home: Path, tmp_path: Path) -> None:
    imported(commonplace, agents.claude_home(tmp_path / "claude", "simple"))
    before = listed(commonplace)

    assert imported(commonplace, home) == {}
    assert imported(commonplace, agents.ledgers(home)[0]) == {}
    assert listed(commonplace) == before


# --- Sessions that go on.


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("source", ["codex", "claude-code", "transcript"])
def test_a_session_that_went_on_is_the_same_thread_with_more_turns(
    commonplace: Command, tmp_path: Path, source: str
) -> None:
    place = agents.SOURCES[source](tmp_path / "source")
    (file,) = [path for path in place.rglob("*.jsonl") if path.is_file()]
    whole = file.read_bytes()
    if source == "claude-code":
        longer = agents.claude_file(tmp_path / "other", "compact").read_text("utf-8")
        whole = longer.replace("d1ce8e17-5e8c-40b5-829f-d43589bc48b6", file.stem).encode()
    lines = whole.splitlines(keepends=True)
    seen: list[tuple[str, int]] = []
    for count in range(len(lines) // 2, len(lines) + 1):
        file.write_bytes(b"".join(lines[:count]))
        commonplace.ok("sessions", "import", "--path", place)
        ((thread_id, row),) = listed(commonplace).items()
        seen.append((thread_id, row["turns"]))

    assert len({thread_id for thread_id, _ in seen}) == 1
    assert [turns for _, turns in seen] == sorted(turns for _, turns in seen)
    assert seen[-1][1] > seen[0][1]
    assert imported(commonplace, place) == {"found": 1, "unchanged": 1}


def test_what_became_of_a_source_that_vanished_stays(commonplace: Command, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "simple", "tools")
    assert imported(commonplace, place) == {"found": 2, "imported": 2}
    next(place.glob("projects/*/6ac42589*.jsonl")).unlink()

    assert imported(commonplace, place) == {"found": 1, "unchanged": 1}
    assert len(listed(commonplace)) == 2
    assert commonplace.ok("sessions", "show", agents.SIMPLE)["user_texts"] == ["What is the capital of France?"]


def test_a_codex_session_whose_file_vanished_is_no_longer_listed(commonplace: Command, tmp_path: Path) -> None:
    place = agents.codex_home(tmp_path / "codex", agents.codex_script(), agents.codex_script(TWO))
    imported(commonplace, place)
    next(place.rglob(f"*{TWO}.jsonl")).unlink()

    assert imported(commonplace, place) == {"found": 1, "unchanged": 1}
    assert list(listed(commonplace)) == [Script().thread_id]


def test_new_codex_sessions_are_listed_without_another_import_and_still_counted_by_it(
    commonplace: Command, tmp_path: Path
) -> None:
    place = agents.codex_home(tmp_path / "codex")
    imported(commonplace, place)
    agents.codex_script(TWO).write_home(place)
    agents.codex_script().turn(user("more"), assistant("Yes.")).write_home(place)

    assert {row["turns"] for row in listed(commonplace).values()} == {2, 3}
    assert imported(commonplace, place) == {"found": 2, "imported": 1, "updated": 1}


def test_a_ledger_that_was_lost_or_cut_is_made_again(commonplace: Command, home: Path, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "simple", "tools")
    imported(commonplace, place)
    lost, cut = agents.ledgers(home)
    whole = [lost.read_bytes(), cut.read_bytes()]
    lost.unlink()
    cut.write_bytes(whole[1][: len(whole[1]) // 2].rpartition(b"\n")[0] + b"\n")

    commonplace.ok("sessions", "import", "--path", place)

    assert [lost.read_bytes(), cut.read_bytes()] == whole


def test_the_home_of_a_person_who_imported_everything_can_be_rebuilt_from_its_files(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    place = agents.claude_home(tmp_path / "claude")
    codex = agents.codex_home(tmp_path / "codex")
    commonplace.ok("sessions", "import", "--path", place, "--path", codex)
    before = listed(commonplace)
    for path in home.glob("state.sqlite*"):
        path.unlink()

    assert listed(commonplace) == before
    again = commonplace.ok("sessions", "import", "--path", place, "--path", codex)
    assert [row["imported"] for row in again["sources"]] == [0, 1]  # Codex's were forgotten with the database
    assert listed(commonplace) == before
