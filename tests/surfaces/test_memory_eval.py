"""`memory eval --corpus` and `--consolidation`: whole memories, scored against labels, in a home of their own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command import Command

from commonplace.learning.evaluate import files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from model_server import ModelServer, Refusal, extraction

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
LASTING = "Always run the tests with `make check` before you commit, never with pytest alone."
MOMENT = "From now on never use tabs in this repository, always four spaces."
MISSED = "The staging host restarts at noon."


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


class Corpus:
    """Two sessions as their agents keep them, what was typed, and labels of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sessions = [
            CaseSession("claude", "/repo", [{"user": text}, {"assistant": "Done."}]) for text in (LASTING, MOMENT)
        ]
        written = files.write(Case("c", "", sessions, ExpectedLessons()), folder / "homes", NOW)
        first, second = (thread for _, thread, _ in written)
        typed = [
            {"session": first, "uuid": "a", "text": LASTING, "time": "2026-11-14T12:00:00Z"},
            {"session": second, "uuid": "b", "text": MOMENT, "time": "2026-11-14T13:00:00Z"},
        ]
        lines(folder / "messages.jsonl", *typed)
        lasting = {"label": "lasting", "strength": "must", "gist": "how to test", "topic": "checks"}
        missed = {"label": "lasting", "strength": "must", "gist": "noon", "topic": "staging"}
        self.labels = lines(
            folder / "labels.jsonl",
            {"session": first, "uuid": "a", **lasting},
            {"session": second, "uuid": "b", "label": "moment"},
            {"session": "elsewhere", "uuid": "c", **missed},
        )
        self.arguments = ("--corpus", folder, "--labels", self.labels)


@pytest.fixture
def corpus(tmp_path: Path, home: Path) -> Corpus:
    home.mkdir()
    return Corpus(tmp_path / "corpus")


def test_a_memory_of_real_sessions_is_scored_by_their_labels(commonplace: Command, corpus: Corpus) -> None:
    scores = commonplace.ok("memory", "eval", *corpus.arguments)

    assert scores["sessions"] == scores["entries"] == 2
    assert (scores["good"], scores["precision"]) == (1, 0.5)
    assert (scores["musts"], scores["found"], scores["recall"]) == (2, 1, 0.5)
    assert scores["noise"] == {"moment": 1}
    assert scores["missed"] == ["staging"]
    assert scores["told"]["entries"] == 2
    assert scores["cost"] == {"requests": 0, "tokens": 0}
    assert commonplace.ok("memory", "list")["entries"] == []
    assert commonplace.ok("sessions", "list")["threads"] == []


def test_a_wanted_command_counts_once(commonplace: Command, corpus: Corpus) -> None:
    wanted = {"kind": "verify", "regex": "make check", "strength": "must", "gist": "the check"}
    commands = lines(corpus.folder / "commands.jsonl", wanted)
    scores = commonplace.ok("memory", "eval", *corpus.arguments, "--commands", commands)

    assert scores["musts"] == 3
    assert scores["missed"] == ["checks", "staging"]


def test_a_model_reads_real_sessions_and_its_cost_is_told(commonplace: Command, corpus: Corpus, home: Path) -> None:
    with ModelServer(extraction) as server:
        (home / "config.toml").write_text(server.provider(), "utf-8")
        scores = commonplace.ok("memory", "eval", "--model", "here:m-1", *corpus.arguments)
        spent = commonplace.ok("memory", "status")["budget"]

    assert scores["extractor"] == "here:m-1"
    assert scores["cost"] == {"requests": 2, "tokens": 2000}
    assert "2000" in json.dumps(spent)


def test_sessions_that_a_model_could_not_read_are_told(commonplace: Command, corpus: Corpus, home: Path) -> None:
    with ModelServer(lambda _: Refusal(400)) as server:
        (home / "config.toml").write_text(server.provider(), "utf-8")
        scores = commonplace.ok("memory", "eval", "--model", "here:m-1", *corpus.arguments)

    assert len(scores["failed"]) == 2
    assert scores["entries"] == 0


def test_a_corpus_is_for_people_too(commonplace: Command, corpus: Corpus) -> None:
    ran = commonplace("memory", "eval", *corpus.arguments)

    assert "50.0% of 2 entries" in ran.out
    assert "1 of 2 that must be there" in ran.out


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("labels.jsonl", "{", "cannot be used"),
        ("labels.jsonl", "", "holds no labels"),
        ("commands.jsonl", '{"regex": "(", "gist": "x"}', "no regular expression"),
        ("messages.jsonl", '{"session": 1}', "cannot be used"),
    ],
)
def test_files_that_are_no_labels_are_refused(
    commonplace: Command, corpus: Corpus, name: str, text: str, told: str
) -> None:
    (corpus.folder / "commands.jsonl").touch()
    (corpus.folder / name).write_text(text, "utf-8")
    commands = ("--commands", corpus.folder / "commands.jsonl")

    assert told in commonplace.refused("bad_input", "memory", "eval", *corpus.arguments, *commands)


def test_a_folder_without_sessions_is_refused(commonplace: Command, corpus: Corpus, tmp_path: Path) -> None:
    empty = ("--corpus", tmp_path, "--labels", corpus.labels)

    assert "no folder `homes`" in commonplace.refused("bad_input", "memory", "eval", *empty)


@pytest.mark.parametrize("arguments", [("--corpus", "."), ("--commands", "{labels}"), ("--consolidation",)])
def test_options_that_do_not_belong_together_are_wrong_usage(
    commonplace: Command, corpus: Corpus, arguments: tuple[str, ...]
) -> None:
    given = [each.format(labels=corpus.labels) for each in arguments]
    more = corpus.arguments if "--consolidation" in arguments else ()

    assert commonplace("memory", "eval", *given, *more).code == 2


def test_the_merge_alone_is_scored(commonplace: Command, home: Path) -> None:
    home.mkdir()
    scores = commonplace.ok("memory", "eval", "--consolidation", "--limit", 3)

    assert scores["cases"] == 3
    assert 0 < scores["merge"]["score"] <= 100
    assert "curator" not in scores
