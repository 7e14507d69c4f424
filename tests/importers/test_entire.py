"""Entire checkpoints: the sessions of several agents, read from a branch of a repository without a checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import agents
import pygit2
import pytest
from command import Command
from opencode_files import SESSION, two_turns

from commonplace.importers.converter import thread_id_for

BRANCH = "refs/heads/entire/checkpoints/v1"
REMOTE = "git@github.com:acme/shop.git"


def repository(path: Path, *, bare: bool = False, remote: str | None = REMOTE) -> pygit2.Repository:
    made = pygit2.init_repository(path, bare=bare)
    if remote is not None:
        made.remotes.create("origin", remote)
    return made


def checkpoint(kept: pygit2.Repository, folder: str, files: dict[str, bytes], ref: str = BRANCH) -> None:
    """Add one checkpoint to the branch, as Entire does: a commit that no working tree knows."""
    parents = [kept.references[ref].target] if ref in kept.references else []
    index = pygit2.Index()
    if parents:
        index.read_tree(kept[parents[0]].tree)
    for name, data in files.items():
        index.add(pygit2.IndexEntry(f"{folder}/{name}", kept.create_blob(data), pygit2.enums.FileMode.BLOB))
    author = pygit2.Signature("Ann", "ann@acme.example", 1_790_000_000, 0)
    kept.create_commit(ref, author, author, "Checkpoint", index.write_tree(kept), parents)


def kept(session: str, data: bytes, **more: Any) -> dict[str, bytes]:
    noted = {"session_id": session, "created_at": "2026-09-22T10:00:00Z", "branch": "main", **more}
    return {"metadata.json": json.dumps(noted).encode(), "full.jsonl": data}


def exported(turns: int = 2, **info: Any) -> bytes:
    document = two_turns(**info)
    return json.dumps({**document, "messages": document["messages"][: 2 * turns]}, indent=2).encode()


def imported(commonplace: Command, place: Path) -> dict[str, int]:
    return agents.counts(commonplace.ok("sessions", "import", "--from", "entire", "--path", place))


def rows(commonplace: Command) -> dict[str, dict[str, Any]]:
    return {row["thread_id"]: row for row in commonplace.ok("sessions", "list")["threads"]}


@pytest.mark.parametrize("bare", [False, True])
def test_sessions_of_every_agent_belong_to_the_repository(commonplace: Command, tmp_path: Path, bare: bool) -> None:
    place = tmp_path / "shop"
    made = repository(place, bare=bare)
    claude = agents.claude_file(tmp_path / "claude", "simple").read_bytes()
    codex = next(agents.codex_home(tmp_path / "codex").rglob("rollout-*")).read_bytes()
    gemini = next(agents.gemini_home(tmp_path / "gemini").rglob("session-*")).read_bytes()
    lines = [json.loads(line) for line in gemini.splitlines()]
    document = json.dumps({**lines[0], "sessionId": "old-form", "messages": lines[1:]}, indent=2).encode()
    checkpoint(made, "0a/1111111111/0", kept(agents.SIMPLE, claude))
    checkpoint(made, "0a/1111111111/1", kept("codex-1", codex))
    checkpoint(made, "0b/2222222222/0", kept(agents.GEMINI, gemini))
    checkpoint(made, "0b/2222222222/1", kept("old-form", document))
    checkpoint(made, "0c/3333333333/0", kept(SESSION, exported()))
    before = agents.stamps(place)

    assert imported(commonplace, place) == {"found": 5, "imported": 5}
    assert imported(commonplace, place) == {"found": 5, "unchanged": 5}
    found = rows(commonplace)
    assert sorted(row["source"] for row in found.values()) == ["claude-code", "codex", "gemini", "gemini", "opencode"]
    assert {row["project"] for row in found.values()} == {"github.com/acme/shop"}
    assert {agents.SIMPLE, agents.GEMINI, thread_id_for("opencode", SESSION)} <= set(found)
    shown = commonplace.ok("sessions", "show", agents.codex_script().thread_id)
    assert shown["user_texts"] == ["fix the tests", "try again"]
    assert agents.stamps(place) == before


def test_the_longest_checkpoint_of_a_session_counts_and_a_later_one_continues_it(
    commonplace: Command, tmp_path: Path
) -> None:
    made = repository(tmp_path / "shop")
    checkpoint(made, "0a/1111111111/0", kept(SESSION, exported(1)))
    first = imported(commonplace, tmp_path / "shop")
    checkpoint(made, "0b/2222222222/0", kept(f"2026-09-22-{SESSION}", exported(2)))
    grown = imported(commonplace, tmp_path / "shop")
    (row,) = rows(commonplace).values()

    assert (first, grown, row["turns"]) == ({"found": 1, "imported": 1}, {"found": 1, "updated": 1}, 2)


def test_a_session_that_the_agent_has_too_is_one_session_and_the_agents_own_counts(
    commonplace: Command, tmp_path: Path
) -> None:
    made = repository(tmp_path / "shop")
    checkpoint(made, "0a/1111111111/0", kept(SESSION, exported(1)))
    imported(commonplace, tmp_path / "shop")
    own = tmp_path / "own" / "session.json"
    own.parent.mkdir()
    own.write_bytes(exported(2))
    commonplace.ok("sessions", "import", "--from", "opencode", "--path", own)
    checkpoint(made, "0b/2222222222/0", kept(SESSION, exported(1).replace(b"fix the tests", b"fix the REDACTED ones")))
    again = commonplace.ok("sessions", "import", "--from", "entire", "--path", tmp_path / "shop")["sources"][0]
    (row,) = rows(commonplace).values()

    assert (row["turns"], row["preview"]) == (2, "fix the tests")
    assert again["reasons"] == {"copy": 1}


def test_a_codex_session_that_is_listed_where_it_is_is_not_copied(commonplace: Command, tmp_path: Path) -> None:
    codex = agents.codex_home(tmp_path / "codex")
    commonplace.ok("sessions", "import", "--from", "codex", "--path", codex)
    file = next(codex.rglob("rollout-*"))
    checkpoint(repository(tmp_path / "shop"), "0a/1111111111/0", kept("codex-1", file.read_bytes()))

    row = commonplace.ok("sessions", "import", "--from", "entire", "--path", tmp_path / "shop")["sources"][0]

    assert (row["reasons"], len(rows(commonplace))) == ({"copy": 1}, 1)


def test_a_remote_branch_and_a_transcript_in_pieces_are_read(commonplace: Command, tmp_path: Path) -> None:
    made = repository(tmp_path / "shop")
    whole = exported()
    pieces = {"full.jsonl": whole[:100], "full.jsonl.001": whole[100:700], "full.jsonl.002": whole[700:]}
    ref = "refs/remotes/origin/entire/checkpoints/v1"
    checkpoint(made, "0a/1111111111/0", {**kept("REDACTED", b""), **pieces}, ref)

    assert imported(commonplace, tmp_path / "shop") == {"found": 1, "imported": 1}
    assert list(rows(commonplace)) == [thread_id_for("opencode", SESSION)]


def test_what_is_no_session_costs_nothing_but_itself(commonplace: Command, tmp_path: Path) -> None:
    made = repository(tmp_path / "shop", remote=None)
    checkpoint(made, "0a/1111111111/0", kept("one", b"no session at all\n"))
    checkpoint(made, "0a/1111111111/1", {"full.jsonl": exported(), "metadata.json": b"[torn"})
    checkpoint(made, "0a/1111111111/2", {"metadata.json": b"{}"})

    row = commonplace.ok("sessions", "import", "--from", "entire", "--path", tmp_path / "shop")["sources"][0]

    assert (row["found"], row["imported"], row["reasons"]) == (2, 1, {"not_a_session": 1})


def test_what_a_partial_copy_of_the_repository_lacks_is_reported(commonplace: Command, tmp_path: Path) -> None:
    place = tmp_path / "shop"
    made = repository(place)
    checkpoint(made, "0a/1111111111/0", kept(SESSION, exported(1)))
    later = kept(SESSION, exported(2), created_at="2026-09-23T10:00:00Z")
    checkpoint(made, "0b/2222222222/0", later)
    other = kept("other", exported(2) + b" ")
    checkpoint(made, "0b/2222222222/1", other)
    for lost in (later["full.jsonl"], other["full.jsonl"]):
        oid = str(pygit2.hash(lost))
        (place / ".git" / "objects" / oid[:2] / oid[2:]).unlink()

    report = commonplace.ok("sessions", "import", "--from", "entire", "--path", place)
    row = report["sources"][0]

    assert (row["found"], row["imported"], row["reasons"]) == (2, 1, {"unreadable": 1})
    assert row["lines_skipped"] == {"later_checkpoint_not_here": 1}
    assert "the session other, and this copy of it lacks its transcript" in report["warnings"][0]


def test_entire_can_be_excluded(commonplace: Command, home: Path, tmp_path: Path) -> None:
    checkpoint(repository(tmp_path / "shop"), "0a/1111111111/0", kept(SESSION, exported()))
    home.mkdir()
    (home / "config.toml").write_text('[memory]\nexclude = ["entire"]\n')

    row = commonplace.ok("sessions", "import", "--from", "entire", "--path", tmp_path / "shop")["sources"][0]

    assert row["reasons"] == {"excluded": 1}


@pytest.mark.parametrize(("is_repository", "words"), [(True, "has no branch"), (False, "is no git repository")])
def test_a_place_without_checkpoints_gets_one_sentence(
    commonplace: Command, tmp_path: Path, is_repository: bool, words: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    if is_repository:
        repository(place)

    assert words in commonplace.refused("bad_input", "sessions", "import", "--from", "entire", "--path", place)
