"""Which project an imported thread belongs to: by the disk, by what others noted, in whatever order they came."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import agents
import pygit2
import pytest
from command import Command

from ledgers import Script, user

TWO = "0198c0de-0000-7000-8000-000000000002"


def repository(folder: Path, url: str | None = None, *, commits: int = 2) -> str:
    """Make a repository; return the id of its first commit."""
    repo = pygit2.init_repository(str(folder))
    who = pygit2.Signature("a", "a@example.invalid", 1_794_733_200, 0)
    first = ""
    for number in range(commits):
        parents = [] if repo.head_is_unborn else [repo.head.target]
        made = repo.create_commit("HEAD", who, who, f"{folder.name} {number}", repo.index.write_tree(), parents)
        first = first or str(made)
    if url:
        repo.remotes.create("origin", url)
    return first


def talk(tmp_path: Path, name: str, cwd: Path | str) -> Path:
    return agents.transcript_file(tmp_path / "talks" / f"{name}.jsonl", session=name, cwd=str(cwd))


def codex(tmp_path: Path, cwd: Path | str, url: str | None, thread_id: str = TWO, name: str = "codex") -> Path:
    git = {"repository_url": url, "branch": "main"} if url else None
    return agents.codex_home(tmp_path / name, Script(thread_id, cwd=str(cwd), git=git).turn(user("hello")))


def projects(commonplace: Command) -> dict[str, str]:
    """The project of each thread, by where it ran; show must say the same as list."""
    rows: list[dict[str, Any]] = commonplace.ok("sessions", "list", "--limit", 1000)["threads"]
    for row in rows:
        assert commonplace.ok("sessions", "show", row["thread_id"])["project"] == row["project"]
    return {f"{row['source']}:{Path(row['cwd']).name}": row["project"] for row in rows}


@pytest.mark.parametrize(
    ("url", "project"),
    [
        ("git@github.com:Acme/Shop.git", "github.com/acme/shop"),
        ("https://user:secret@Git.Example.org:8443/acme/shop/", "git.example.org/acme/shop"),
        ("ssh://git@github.com/acme/shop", "github.com/acme/shop"),
    ],
)
def test_a_folder_on_disk_is_its_repository(commonplace: Command, tmp_path: Path, url: str, project: str) -> None:
    repository(tmp_path / "work", url)
    (tmp_path / "work" / "deep").mkdir()
    for name in ("work", "work/deep"):
        commonplace.ok("sessions", "import", "--path", talk(tmp_path, Path(name).name, tmp_path / name))

    assert projects(commonplace) == {"transcript:work": project, "transcript:deep": project}


def test_a_repository_without_a_remote_is_its_first_commit(commonplace: Command, tmp_path: Path) -> None:
    first = repository(tmp_path / "work", commits=5)
    (tmp_path / "plain").mkdir()
    for name in ("work", "plain", "gone"):
        commonplace.ok("sessions", "import", "--path", talk(tmp_path, name, tmp_path / name))

    assert projects(commonplace) == {
        "transcript:work": first,
        "transcript:plain": str(tmp_path / "plain"),
        "transcript:gone": str(tmp_path / "gone"),
    }


def test_a_project_that_was_there_when_it_was_imported_is_still_known_when_it_is_gone(
    commonplace: Command, tmp_path: Path
) -> None:
    repository(tmp_path / "work", "https://github.com/acme/shop")
    commonplace.ok("sessions", "import", "--path", talk(tmp_path, "one", tmp_path / "work"))
    shutil.rmtree(tmp_path / "work")
    commonplace.ok("sessions", "import", "--path", talk(tmp_path, "two", tmp_path / "work" / "deep"))
    commonplace.ok("sessions", "reindex")

    assert set(projects(commonplace).values()) == {"github.com/acme/shop"}


@pytest.mark.parametrize("order", list(permutations(["codex", "talk", "below"])), ids=" then ".join)
def test_a_folder_that_is_gone_belongs_to_what_a_codex_thread_noted_there_whatever_came_first(
    commonplace: Command, tmp_path: Path, order: tuple[str, ...]
) -> None:
    places = {
        "codex": codex(tmp_path, "/gone/shop", "git@github.com:acme/shop.git"),
        "talk": talk(tmp_path, "one", "/gone/shop"),
        "below": talk(tmp_path, "two", "/gone/shop/src"),
    }
    for name in order:
        commonplace.ok("sessions", "import", "--path", places[name])

    expected = dict.fromkeys(("cli:shop", "transcript:shop", "transcript:src"), "github.com/acme/shop")
    assert projects(commonplace) == expected
    for command in (["sessions", "reindex"], ["doctor", "--repair"]):
        commonplace.ok(*command)
        assert projects(commonplace) == expected


@pytest.mark.parametrize("swap", [False, True])
def test_two_homes_give_the_same_projects_in_either_order(commonplace: Command, tmp_path: Path, swap: bool) -> None:
    one = codex(tmp_path, "/gone/a", "https://github.com/acme/a")
    two = codex(tmp_path, "/gone/b", "https://github.com/acme/b", Script().thread_id, "codex2")
    claude = agents.claude_home(tmp_path / "claude", "simple", "tools")
    places = [one, two, claude, talk(tmp_path, "x", "/gone/a"), talk(tmp_path, "y", "/gone/b")]
    for place in reversed(places) if swap else places:
        commonplace.ok("sessions", "import", "--path", place)

    assert projects(commonplace) == {
        "cli:a": "github.com/acme/a",
        "cli:b": "github.com/acme/b",
        "transcript:a": "github.com/acme/a",
        "transcript:b": "github.com/acme/b",
        "claude-code:simple": "/repo/simple",
        "claude-code:tools": "/repo/tools",
    }


def test_a_fork_of_an_imported_thread_stays_in_its_project(commonplace: Command, tmp_path: Path) -> None:
    repository(tmp_path / "work", "https://github.com/acme/shop")
    path = talk(tmp_path, "one", tmp_path / "work")
    commonplace.ok("sessions", "fork", path)
    commonplace.ok("sessions", "import", "--path", path)
    (thread_id,) = [
        row["thread_id"] for row in commonplace.ok("sessions", "list")["threads"] if row["title"] == "fix the tests"
    ][:1]
    commonplace.ok("sessions", "fork", thread_id)
    rows = commonplace.ok("sessions", "list")["threads"]

    assert [row["project"] for row in rows] == ["github.com/acme/shop"] * 3


@pytest.mark.parametrize("command", [["archive"], ["rollback", "--turns", "1"], ["rename", "name"]])
def test_what_is_done_to_a_thread_leaves_it_in_its_project(
    commonplace: Command, tmp_path: Path, command: list[str]
) -> None:
    commonplace.ok("sessions", "import", "--path", codex(tmp_path, "/gone/shop", "git@github.com:acme/shop.git"))
    commonplace.ok("sessions", "import", "--path", talk(tmp_path, "one", "/gone/shop"))
    rows = commonplace.ok("sessions", "list")["threads"]
    (thread_id,) = [row["thread_id"] for row in rows if row["source"] == "transcript"]
    action, *options = command
    commonplace.ok("sessions", action, thread_id, *options)
    options = ["--archived"] if action == "archive" else []
    after = {row["thread_id"]: row for row in commonplace.ok("sessions", "list", *options)["threads"]}

    assert after[thread_id]["project"] == "github.com/acme/shop"
