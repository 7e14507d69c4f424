"""`projects list`, `merge` and `split`: what a person sees of projects, and decides about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import Command

from ledgers import Script, user

TEA, MILK = "github.com/ann/tea", "github.com/ann/milk"


@pytest.fixture(autouse=True)
def sessions(home: Path) -> None:
    """Five sessions in three repositories that are not on this disk."""
    given = [("/c/tea", TEA), ("/c/tea/lid", None), ("/d/milk", MILK), ("/d/milk", MILK), ("/d/2", None)]
    for number, (cwd, identity) in enumerate(given):
        git = {"repository_url": f"https://{identity}.git", "branch": "main"} if identity else None
        thread = f"0198c0de-0000-7000-8000-{number:012}"
        Script(thread, cwd=cwd, git=git).turn(user("hello")).write_home(home)


def shown(document: dict[str, Any]) -> dict[str, tuple[list[str], int]]:
    return {row["scope"]: (row["folders"], row["sessions"]) for row in document["projects"]}


def decisions(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "decisions.jsonl").read_text("utf-8").splitlines()]


def test_a_list_shows_folders_sessions_and_entries(commonplace: Command) -> None:
    document = commonplace.ok("projects", "list")

    assert {MILK: (["/d/milk"], 2), TEA: (["/c/tea", "/c/tea/lid"], 2), "/d/2": (["/d/2"], 1)} == shown(document)
    assert {"scope", "name", "folders", "sessions", "entries", "why"} == set(document["projects"][0])
    assert ["milk", "tea", "d"] == [row["name"] for row in document["projects"]]


def test_a_list_is_readable(commonplace: Command) -> None:
    commonplace.ok("projects", "merge", "tea", "milk")
    out = commonplace("projects", "list", "--why").out

    assert f"tea  4 sessions, 0 entries  ({TEA})\n  /c/tea\n  /c/tea/lid\n  /d/milk\n" in out
    assert f"› You merged {MILK} into {TEA}." in out


def test_a_list_of_nothing_says_what_to_do(commonplace: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_HOME", str(home.parent / "empty"))

    assert "commonplace learn" in commonplace("projects", "list").out
    assert {"projects": []} == commonplace.ok("projects", "list")


def test_merged_projects_are_one_from_then_on(commonplace: Command, home: Path) -> None:
    merged = commonplace.ok("projects", "merge", "tea", "/d/milk")
    threads = commonplace.ok("sessions", "list")["threads"]

    assert {TEA: (["/c/tea", "/c/tea/lid", "/d/milk"], 4), "/d/2": (["/d/2"], 1)} == shown(merged)
    assert merged == commonplace.ok("projects", "list")
    assert {TEA, "/d/2"} == {row["project"] for row in threads}
    assert [("merge", [TEA, MILK])] == [(line["kind"], line["projects"]) for line in decisions(home)]


def test_a_folder_that_is_split_off_is_a_project_of_its_own(commonplace: Command, home: Path) -> None:
    split = commonplace.ok("projects", "split", "/c/tea/lid")

    assert {MILK, TEA, "/c/tea/lid", "/d/2"} == set(shown(split))
    assert [("split", "/c/tea/lid")] == [(line["kind"], line["path"]) for line in decisions(home)]


def test_the_newest_decision_counts(commonplace: Command) -> None:
    commonplace.ok("projects", "merge", "tea", "milk")
    split = shown(commonplace.ok("projects", "split", "/d/milk"))
    again = shown(commonplace.ok("projects", "merge", "tea", "/d/milk"))

    assert {TEA, "/d/milk", "/d/2"} == set(split)
    assert {TEA, "/d/2"} == set(again)


def test_a_merged_project_is_found_by_its_old_name(commonplace: Command) -> None:
    commonplace.ok("projects", "merge", "tea", "milk")

    assert "one project already" in commonplace.refused("bad_input", "projects", "merge", "tea", MILK)
    assert [] == commonplace.ok("memory", "list", "--project", MILK)["entries"]


REFUSED = {
    "an unknown name": (("merge", "tea", "coffee"), "No project is called 'coffee'."),
    "an unknown folder": (("merge", "/nowhere", "tea"), "No project is called '/nowhere'."),
    "an unknown address": (("merge", "tea", "github.com/ann/coffee"), "No project is called 'github.com/ann/coffee'."),
    "twice the same": (("merge", "tea", "/c/tea"), "'tea' and '/c/tea' are one project already"),
    "a folder without sessions": (("split", "/nowhere"), "No session started in /nowhere."),
    "a folder that is a project": (("split", "/d/2"), "/d/2 is a project of its own already"),
}


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_and_decides_nothing(
    commonplace: Command, home: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    assert commonplace.refused("bad_input", "projects", *arguments).startswith(sentence)
    assert not (home / "decisions.jsonl").exists()
