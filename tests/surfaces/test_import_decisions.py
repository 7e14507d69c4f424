"""What a person decided about imported sessions holds: deleted ones stay away, excluded ones out, forks whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import agents
import pytest
from command import Command

from commonplace.state import outputs
from commonplace.state.outputs import Output
from ledgers import Script, user

TWO = "0198c0de-0000-7000-8000-000000000002"
TURNS = {agents.ORIGIN: 3, agents.FORK: 4}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the program keep its rows in either database."""
    if request.param == "postgres":
        monkeypatch.setenv("COMMONPLACE_DATABASE", request.getfixturevalue("postgres"))
    return str(request.param)


def reasons(commonplace: Command, path: Path, *more: object) -> dict[str, int]:
    """Why files were left out, and how many were not."""
    document = commonplace.ok("sessions", "import", "--path", path, *more)
    done = agents.counts(document)
    kept = {name: done[name] for name in ("imported", "updated", "unchanged") if name in done}
    return document["sources"][0]["reasons"] | kept


def threads(commonplace: Command, *options: object) -> dict[str, Any]:
    return {row["thread_id"]: row for row in commonplace.ok("sessions", "list", *options)["threads"]}


def base_of(path: str) -> str | None:
    """The thread whose file a ledger continues."""
    meta: dict[str, Any] = json.loads(Path(path).read_bytes().partition(b"\n")[0])["payload"]
    return meta["history_base"]["thread_id"] if "history_base" in meta else None


# --- Copies and forks.


@pytest.mark.usefixtures("database")
def test_a_forked_session_refers_to_its_origin_and_says_nothing_twice(commonplace: Command, tmp_path: Path) -> None:
    place = agents.claude_home(tmp_path / "claude", "resume")
    assert reasons(commonplace, place) == {"imported": 3}
    rows = threads(commonplace)

    assert {key: rows[key]["turns"] for key in TURNS} == TURNS
    assert len(rows) == 3
    assert {key: base_of(row["path"]) for key, row in rows.items() if base_of(row["path"])} == {
        agents.FORK: agents.ORIGIN
    }
    words = [json.dumps(text) for text in commonplace.ok("sessions", "show", agents.FORK)["user_texts"]]
    written = "".join(Path(row["path"]).read_text("utf-8") for row in rows.values())
    assert [written.count(f'"text":{word}') for word in words] == [1, 1, 1, 1]

    assert agents.FORK in commonplace.refused("thread_in_use", "sessions", "delete", agents.ORIGIN)
    commonplace.ok("sessions", "delete", agents.FORK)
    commonplace.ok("sessions", "delete", agents.ORIGIN)
    assert reasons(commonplace, place) == {"deleted": 2, "unchanged": 1}


@pytest.mark.parametrize("lost", ["nothing", "database", "archived"])
def test_a_fork_that_comes_in_later_still_finds_its_origin(
    commonplace: Command, home: Path, tmp_path: Path, lost: str
) -> None:
    place = agents.claude_home(tmp_path / "claude", "resume")
    fork = next(place.rglob(f"{agents.FORK}.jsonl"))
    aside = fork.rename(tmp_path / "aside.jsonl")
    assert reasons(commonplace, place) == {"imported": 2}
    if lost == "database":
        for path in home.glob("state.sqlite*"):
            path.unlink()
    elif lost == "archived":
        commonplace.ok("sessions", "archive", agents.ORIGIN)
    aside.rename(fork)

    assert reasons(commonplace, place) == {"imported": 1, "unchanged": 2}
    assert base_of(threads(commonplace)[agents.FORK]["path"]) == agents.ORIGIN
    expected = agents.EXPECTED[f"resume/projects/-repo-resume/{agents.FORK}.jsonl"]["true_user_texts"]
    assert commonplace.ok("sessions", "show", agents.FORK)["user_texts"] == expected


def test_the_same_session_in_two_places_is_one_thread(commonplace: Command, home: Path, tmp_path: Path) -> None:
    one = agents.claude_home(tmp_path / "one", "tools")
    two = agents.claude_home(tmp_path / "two", "tools")
    assert reasons(commonplace, one) == {"imported": 1}
    (ledger,) = agents.ledgers(home)
    before = ledger.read_bytes()

    assert reasons(commonplace, two) == {"unchanged": 1}
    (file,) = two.glob("projects/*/*.jsonl")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:9]))
    assert reasons(commonplace, two) == {"unchanged": 1}
    assert (agents.ledgers(home), ledger.read_bytes()) == ([ledger], before)


def lines(*texts: str, session: str = "1") -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"session": session, "role": roles[place % 2], "text": text} for place, text in enumerate(texts)]


def test_sessions_of_one_name_in_two_files_are_not_mixed_up(commonplace: Command, home: Path, tmp_path: Path) -> None:
    one = agents.write_lines(tmp_path / "a" / "t.jsonl", lines("one", "yes"))
    two = agents.write_lines(tmp_path / "b" / "t.jsonl", lines("two", "no", "three"))
    assert reasons(commonplace, one) == {"imported": 1}
    (ledger,) = agents.ledgers(home)
    before = ledger.read_bytes()

    assert reasons(commonplace, two) == {"copy": 1}
    assert ledger.read_bytes() == before
    agents.write_lines(one, lines("one", "yes", "more"))
    assert reasons(commonplace, one) == {"updated": 1}
    (thread_id,) = threads(commonplace)
    assert commonplace.ok("sessions", "show", thread_id)["user_texts"] == ["one", "more"]


def test_runs_of_one_name_in_two_folders_are_not_mixed_up(commonplace: Command, tmp_path: Path) -> None:
    one = agents.swe_agent_file(tmp_path / "run1")
    two = agents.swe_agent_file(tmp_path / "run2")
    document = json.loads(two.read_text())
    step = document["trajectory"][0]
    document["trajectory"] = [step | {"thought": "Another way.", "response": "Another way."}, step, step]
    two.write_text(json.dumps(document))

    assert reasons(commonplace, one) == {"imported": 1}
    assert reasons(commonplace, two) == {"copy": 1}
    (thread_id,) = threads(commonplace)
    assert len(commonplace.ok("sessions", "show", thread_id)["calls"]) == 1


def test_sessions_that_only_begin_with_the_same_words_are_no_forks(commonplace: Command, tmp_path: Path) -> None:
    for number in range(3):
        texts = ("hi", "hello", f"task {number}")
        agents.write_lines(tmp_path / "talks" / f"{number}.jsonl", lines(*texts, session=f"s{number}"))

    assert reasons(commonplace, tmp_path / "talks") == {"imported": 3}
    assert [base_of(row["path"]) for row in threads(commonplace).values()] == [None] * 3


def test_a_session_that_calls_itself_by_the_id_of_a_thread_of_ours_is_left_out(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    own = Script().turn(user("mine")).write_home(home)
    claude = agents.claude_file(tmp_path / "claude", "simple")
    commonplace.ok("sessions", "import", "--path", claude)
    before = {path: path.read_bytes() for path in agents.ledgers(home)}
    said = [*lines("hostile", session=Script().thread_id), *lines("hostile", session=agents.SIMPLE)]
    path = agents.write_lines(tmp_path / "talk.jsonl", said)

    assert reasons(commonplace, path) == {"taken": 1}
    agents.write_lines(path, [*said, *lines("good", session="other")])
    assert reasons(commonplace, path) == {"imported": 1}
    assert {key: key.read_bytes() for key in before} == before
    assert own in before
    assert len(agents.ledgers(home)) == 3


# --- Deleting.


@pytest.mark.usefixtures("database")
def test_an_imported_thread_that_was_deleted_does_not_come_back(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    path = agents.claude_file(tmp_path / "claude", "simple")
    before = agents.stamps(tmp_path / "claude")
    commonplace.ok("sessions", "import", "--path", path)
    gone = commonplace.ok("sessions", "delete", agents.SIMPLE)

    assert gone["thread_id"] == agents.SIMPLE
    assert (agents.ledgers(home), threads(commonplace)) == ([], {})
    assert reasons(commonplace, path) == {"deleted": 1}
    assert reasons(commonplace, path) == {"deleted": 1}
    assert agents.stamps(tmp_path / "claude") == before
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])
    assert reasons(commonplace, path) == {"deleted": 1}
    assert agents.ledgers(home) == []
    assert commonplace.ok("sessions", "show", path)["thread_id"] == agents.SIMPLE  # looking is not importing


def test_the_sub_agents_of_a_deleted_thread_do_not_come_back_either(commonplace: Command, tmp_path: Path) -> None:
    path = agents.claude_file(tmp_path / "claude", "subagent")
    commonplace.ok("sessions", "import", "--path", path)
    commonplace.ok("sessions", "delete", path.stem)

    assert reasons(commonplace, tmp_path / "claude") == {"deleted": 2}


@pytest.mark.usefixtures("database")
def test_with_an_imported_thread_go_the_ledgers_of_its_sub_agents(commonplace: Command, home: Path) -> None:
    commonplace.ok("sessions", "import", "--path", agents.CLAUDE / "subagent")
    assert 2 == len(list((home / "sessions").rglob("*.jsonl")))
    gone = commonplace.ok("sessions", "delete", "71319f14")["deleted"]

    assert 2 == len(gone)
    assert [] == list((home / "sessions").rglob("*.jsonl"))


@pytest.mark.usefixtures("database")
def test_deleting_a_codex_thread_forgets_what_it_taught_and_leaves_its_file(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    place = agents.codex_home(tmp_path / "codex", agents.codex_script(), agents.codex_script(TWO))
    before = agents.stamps(place)
    commonplace.ok("sessions", "import", "--path", place)
    for key in (Script().thread_id, TWO):
        agents.in_database(lambda tx, key=key: outputs.put(tx, key, agents.NOW, Output("a", "b"), now=agents.NOW))
    path = threads(commonplace)[TWO]["path"]

    assert commonplace.ok("sessions", "delete", TWO) == {"thread_id": TWO, "deleted": [], "kept": path}

    assert agents.stamps(place) == before
    taught = agents.in_database(lambda tx: [row["thread_id"] for row in tx.query("outputs.ids")])
    assert taught == [Script().thread_id]
    for _ in range(2):
        assert list(threads(commonplace)) == [Script().thread_id]
        commonplace.refused("unknown_thread", "sessions", "show", TWO)
        assert reasons(commonplace, place) == {"deleted": 1, "unchanged": 1}
    commonplace.ok("sessions", "reindex")
    assert list(threads(commonplace)) == [Script().thread_id]
    commonplace.ok("doctor", "--repair")
    assert list(threads(commonplace)) == [Script().thread_id]
    agents.codex_script(TWO).turn(user("it goes on")).write_home(place)
    assert list(threads(commonplace)) == [Script().thread_id]
    assert reasons(commonplace, place) == {"deleted": 1, "unchanged": 1}
    assert commonplace.ok("doctor")["ok"]
    if (home / "state.sqlite").exists():
        (home / "state.sqlite").write_bytes(b"nonsense" * 1000)
        commonplace("doctor", "--repair")
        assert list(threads(commonplace)) == [Script().thread_id]


def test_a_deleted_codex_thread_can_be_forked_by_its_path(commonplace: Command, tmp_path: Path) -> None:
    place = agents.codex_home(tmp_path / "codex")
    commonplace.ok("sessions", "import", "--path", place)
    path = threads(commonplace)[Script().thread_id]["path"]
    commonplace.ok("sessions", "delete", path)
    fork = commonplace.ok("sessions", "fork", path)

    assert list(threads(commonplace)) == [fork["thread_id"]]
    assert commonplace.ok("sessions", "show", fork["thread_id"])["user_texts"] == ["fix the tests", "try again"]


# --- Excluding.

PLACES = {"claude-code": "/repo/simple", "codex": "/repo/demo", "gemini": "~/told"}


@pytest.mark.parametrize(
    ("source", "pattern"),
    [
        ("claude-code", "claude-code"),
        ("claude-code", "/repo/simple"),
        ("claude-code", "/repo"),
        ("claude-code", "/repo/sim*"),
        ("claude-code", "{}/source"),
        ("codex", "codex"),
        ("codex", "cli"),
        ("codex", "/repo/demo/"),
        ("codex", "github.com/acme/*"),
        ("codex", "git@github.com:Acme/Shop.git"),
        ("codex", "{}/source"),
        ("gemini", "gemini"),
        ("gemini", "~/told"),
        ("gemini", "~"),
        ("swe-agent", "/testbed"),
        ("transcript", "transcript"),
    ],
)
def test_what_is_excluded_stays_out_until_that_is_lifted(
    commonplace: Command, home: Path, tmp_path: Path, source: str, pattern: str
) -> None:
    root = tmp_path / "source"
    if source == "gemini":
        place = agents.gemini_home(root, f"{tmp_path}/user/told")
    elif source == "codex":
        place = agents.codex_home(root, agents.codex_script(git={"repository_url": "git@github.com:acme/shop.git"}))
    else:
        place = agents.SOURCES[source](root)
    home.mkdir()
    setting = home / "config.toml"
    setting.write_text(f"[memory]\nexclude = [{json.dumps(pattern.format(tmp_path))}]\n")

    assert reasons(commonplace, place) == {"excluded": 1}
    assert reasons(commonplace, place) == {"excluded": 1}
    assert (threads(commonplace), list(home.rglob("rollout-*"))) == ({}, [])
    setting.write_text('[memory]\nexclude = ["/repo/sim", "github.com/acme", "/rep", "~/tol", "cl", "*.org/*"]\n')
    assert reasons(commonplace, place) == {"imported": 1}
    assert len(threads(commonplace)) == 1


@pytest.mark.parametrize("source", ["codex", "transcript"])
def test_a_project_on_disk_is_excluded_by_its_remote(
    commonplace: Command, home: Path, tmp_path: Path, source: str
) -> None:
    import pygit2

    repo = tmp_path / "work"
    pygit2.init_repository(str(repo)).remotes.create("origin", "https://github.com/Acme/Shop")
    path = agents.transcript_file(tmp_path / "talk.jsonl", cwd=str(repo))
    if source == "codex":
        path = agents.codex_home(tmp_path / "codex", agents.codex_script(cwd=str(repo)))
    home.mkdir()
    (home / "config.toml").write_text('memory.exclude = ["github.com/acme/*"]\n')

    assert reasons(commonplace, path) == {"excluded": 1}


def test_excluding_later_leaves_out_what_is_new_and_keeps_what_is_there(
    commonplace: Command, home: Path, tmp_path: Path
) -> None:
    path = agents.transcript_file(tmp_path / "talk.jsonl", "one", "two", "three")
    assert reasons(commonplace, path) == {"imported": 1}
    (home / "config.toml").write_text('memory.exclude = ["transcript"]\n')
    agents.transcript_file(path, "one", "two", "three", "four", "five")
    assert reasons(commonplace, path) == {"excluded": 1}
    ((thread_id, row),) = threads(commonplace).items()
    (home / "config.toml").unlink()

    assert row["turns"] == 2
    assert reasons(commonplace, path) == {"updated": 1}
    assert commonplace.ok("sessions", "show", thread_id)["user_texts"] == ["one", "three", "five"]
