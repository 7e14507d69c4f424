"""`commonplace learn`: one command from session files to a memory, again and again, and a look before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import Command

import gold
from commonplace.learning.evaluate import files
from learning.learners import NOW

CASES = ("m1-006", "m1-017")


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock stand still."""
    monkeypatch.setenv("COMMONPLACE_NOW", NOW.isoformat())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A few sessions of one person, as their agents left them."""
    for case in gold.load("together"):
        if case.id in CASES:
            files.write(case, tmp_path / "source", NOW)
    return tmp_path / "source" / "codex"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def learn(commonplace: Command, *arguments: Any) -> dict[str, Any]:
    ran = commonplace("learn", "--json", *arguments)
    assert ran.code == 0, ran.err
    return ran.json


def test_learn_goes_from_files_to_a_memory(commonplace: Command, source: Path, home: Path) -> None:
    report = learn(commonplace, "--path", source)

    assert set(report) == {
        "sources", "extracted", "no_output", "failed", "skipped", "consolidation", "projects", "cost", "warnings",
    }  # fmt: skip
    assert [(each["from"], each["found"]) for each in report["sources"]] == [
        ("codex", each["imported"]) for each in report["sources"]
    ]
    assert report["consolidation"]["status"] == "succeeded"
    assert report["consolidation"]["added"] == sum(project["entries"] for project in report["projects"]) > 0
    assert report["cost"] == {"requests": 0, "tokens": 0}
    assert (home / "memories/MEMORY.md").read_text("utf-8").startswith("# Task Group: ")


def test_learning_again_changes_nothing(commonplace: Command, source: Path, home: Path) -> None:
    learn(commonplace, "--path", source)
    before = contents(home / "memories")

    report = learn(commonplace, "--path", source)

    assert report["consolidation"] == {"status": "unchanged", "added": 0, "changed": 0, "removed": 0}
    assert contents(home / "memories") == before


def test_a_dry_run_makes_nothing(commonplace: Command, source: Path, home: Path) -> None:
    report = learn(commonplace, "--path", source, "--dry-run")

    assert report["sources"][0]["found"] > 0
    assert report["consolidation"]["status"] == "dry_run"
    assert contents(home) == {}


def test_a_dry_run_after_learning_changes_nothing(commonplace: Command, source: Path, home: Path) -> None:
    learn(commonplace, "--path", source)
    before = {path: data for path, data in contents(home).items() if "state.sqlite" not in path}

    report = learn(commonplace, "--path", source, "--dry-run")

    assert {path: data for path, data in contents(home).items() if "state.sqlite" not in path} == before
    assert report["skipped"]["already_learned"] > 0


def test_a_limit_is_kept_and_the_rest_follows(commonplace: Command, source: Path) -> None:
    first = learn(commonplace, "--path", source, "--limit", 1)
    rest = learn(commonplace, "--path", source)

    assert first["extracted"] + first["no_output"] == 1
    assert rest["extracted"] + rest["no_output"] == first["sources"][0]["found"] - 1


@pytest.mark.parametrize("since", ["1h", "2026-11-15T11:00:00Z"])
def test_since_leaves_older_sessions_out(commonplace: Command, source: Path, since: str) -> None:
    report = learn(commonplace, "--path", source, "--since", since)

    assert report["extracted"] == 0
    assert report["skipped"]["too_old"] == report["sources"][0]["found"]


def test_who_asks_for_it_learns_from_sessions_of_any_age(
    commonplace: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_NOW", "2036-03-01T00:00:00Z")

    assert learn(commonplace, "--path", source)["extracted"] > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--since", "soon"], "is no time"),
        (["--path", "/no/such/place"], "There is no /no/such/place"),
        (["--model", "openai:gpt-9"], "OPENAI_API_KEY is not set"),
        (["--model", "nobody:gpt-9"], "not clear who serves"),
        ([], "no sessions to import"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    commonplace: Command,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("CODEX_HOME", raising=False)

    ran = commonplace("learn", *arguments)

    assert ran.code == 1
    assert sentence in ran.err
    assert "Traceback" not in ran.err
    assert not (home / "memories").exists()


def test_people_see_what_was_learned_and_what_to_do_next(commonplace: Command, source: Path) -> None:
    ran = commonplace("learn", "--path", source)

    assert ran.code == 0, ran.err
    for words in ("sessions read", "Cost: nothing", "memory why", "memory forget", "MEMORY.md"):
        assert words in ran.out
