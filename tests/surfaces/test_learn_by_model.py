"""`learn --model` and `memory eval --model`: what they cost is asked before, kept within limits and told after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command import Command

from commonplace.learning.evaluate import files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from model_server import Body, ModelServer, Refusal, extraction

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(answer) as serving:
        yield serving


def answer(body: Body) -> Any:
    """Read what is to be read; put nothing together."""
    return "Nothing to do." if body.get("tools") else extraction(body)


def broken(body: Body) -> Any:
    """Fail, whatever is asked."""
    del body
    return Refusal(500)


@pytest.fixture
def source(home: Path, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three sessions, and a home that knows a model."""
    monkeypatch.setenv("COMMONPLACE_NOW", NOW.isoformat())
    home.mkdir()
    (home / "config.toml").write_text(server.provider(), "utf-8")
    for number in range(3):
        events = [{"user": f"Always use uv, never pip, in part {number}."}, {"assistant": "Done."}]
        files.write(
            Case(f"said-{number}", "", [CaseSession("codex", "/repo", events)], ExpectedLessons()), tmp_path, NOW
        )
    return tmp_path / "codex"


READ = ("--model", "here:m-1")


def test_a_model_reads_and_its_cost_is_told(commonplace: Command, source: Path, server: ModelServer) -> None:
    ran = commonplace("learn", "--path", source, *READ)
    status = commonplace.ok("memory", "status")
    shown = commonplace("memory", "status").out

    assert ran.code == 0, ran.err
    assert "3 taught something" in ran.out
    read = [each for each in server.asked if not each.get("tools")]
    assert 3 == len(read)
    assert f"Cost: {len(server.asked)} requests, {1000 * len(server.asked):,} tokens." in ran.out
    assert status["budget"]["memory_stage1"]["requests"] == 3
    assert "memory_stage1: 3 of 1,000 requests, 3,000 of 10,000,000 tokens" in shown


def test_a_run_that_could_read_nothing_ends_with_1_and_says_why(
    commonplace: Command, source: Path, server: ModelServer
) -> None:
    server.answer = broken
    told = commonplace("learn", "--path", source, *READ, "--json")
    document = json.loads(told.out)
    shown = commonplace("memory", "status").out
    server.answer = answer
    after = commonplace("learn", "--path", source, *READ)

    assert (1, "nothing_read", 3) == (told.code, document["error"]["code"], len(document["failed"]))
    assert "No session could be read. 3 sessions were tried. here at 127.0.0.1" in told.err
    assert [] == [each["reason"] for each in document["failed"] if each["reason"] not in shown]
    assert (0, True) == (after.code, "3 taught something" in after.out)


def test_much_is_asked_about_and_nobody_can_be_asked(
    commonplace: Command, source: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_MEMORY_ASK_TOKENS", "100")
    told = commonplace.refused("bad_input", "learn", "--path", source, *READ)
    asked = len(server.asked)
    allowed = commonplace.ok("learn", "--path", source, *READ, "--yes")

    assert "it would read 3 session(s), about" in told
    assert asked == 0
    assert allowed["extracted"] == 3


def test_a_person_is_asked_and_answers(
    commonplace: Command, source: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_MEMORY_ASK_TOKENS", "100")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = [False, True]
    questions: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        questions.append(question)
        return answers.pop(0)

    monkeypatch.setattr("click.confirm", confirm)
    refused = commonplace("learn", "--path", source, *READ)
    asked = len(server.asked)
    allowed = commonplace("learn", "--path", source, *READ)

    assert (1, 0) == (refused.code, asked)
    assert "here:m-1 would read 3 session(s), about" in questions[0]
    assert allowed.code == 0


def test_little_is_not_asked_about_and_a_dry_run_tells(commonplace: Command, source: Path, server: ModelServer) -> None:
    commonplace.ok("sessions", "import", "--from", "codex", "--path", source)
    dry = commonplace.ok("learn", "--path", source, *READ, "--dry-run")
    asked = len(server.asked)
    done = commonplace.ok("learn", "--path", source, *READ)

    assert asked == 0
    assert "here:m-1 would be sent about" in dry["warnings"][-1]
    assert done["extracted"] == 3


def test_a_model_is_scored_on_the_gold_set_like_the_embedded_reader(
    commonplace: Command, source: Path, server: ModelServer
) -> None:
    model = commonplace.ok("memory", "eval", *READ, "--set", "near", "--limit", 12)
    embedded = commonplace.ok("memory", "eval", "--set", "near", "--limit", 12)

    assert set(embedded) <= set(model)
    assert ("here:m-1", "embedded") == (model["extractor"], embedded["extractor"])
    assert model["cases"] == embedded["cases"] == 12
    assert {"requests": len(server.asked), "tokens": 1000 * len(server.asked)} == model["cost"]
    assert 0 < model["recall"] < embedded["recall"] <= 1
    assert embedded["cost"] == {"requests": 0, "tokens": 0}
    assert commonplace.ok("memory", "list")["entries"] == []


def test_an_evaluation_is_for_people_too(commonplace: Command, source: Path) -> None:
    ran = commonplace("memory", "eval", "--set", "near", "--limit", 5)

    assert ran.code == 0
    assert "embedded on 5 cases (near)" in ran.out
    assert "recall" in ran.out


@pytest.mark.parametrize(
    ("settings", "arguments", "code", "told"),
    [
        ("[memory]\nextract_run_requests = 2", (), "budget_spent", "2 requests"),
        ("[memory]\nask_tokens = 10", (), "bad_input", "was not asked"),
        ("", ("--model", "nobody:m"), "bad_setting", "not clear who serves"),
    ],
    ids=["a limit", "much", "an unknown model"],
)
def test_an_evaluation_that_may_not_be_says_so(
    commonplace: Command,
    home: Path,
    source: Path,
    server: ModelServer,
    settings: str,
    arguments: tuple[str, ...],
    code: str,
    told: str,
) -> None:
    (home / "config.toml").write_text(f"{settings}\n{server.provider()}", "utf-8")

    assert told in commonplace.refused(code, "memory", "eval", *READ, "--set", "near", "--limit", 9, *arguments)


def test_an_evaluation_ends_where_a_key_is_refused(commonplace: Command, source: Path, server: ModelServer) -> None:
    def refuse(_: Body) -> Refusal:
        return Refusal(401, "invalid_api_key")

    server.answer = refuse

    commonplace.refused("not_authorised", "memory", "eval", *READ, "--set", "near", "--limit", 9)
    assert len(server.asked) <= 4
