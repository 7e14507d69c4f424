"""The frame of learning: which sessions are read, what becomes of them, and that one that breaks stops no other."""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import pytest
from learners import NOW, environment

from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.learning import run, select, worker
from commonplace.learning.evaluate import cases, files
from commonplace.learning.evaluate.cases import Case, CaseSession
from commonplace.learning.extract import phase1
from commonplace.learning.extract.phase1 import ExtractionPhase
from commonplace.learning.reading.session_view import SessionView
from commonplace.memory.files import output_shape
from commonplace.state import jobs
from commonplace.state.extraction_jobs import ClaimTerms
from commonplace.state.outputs import Output

RAW = """---
description: d
task: t
task_group: g
task_outcome: success
cwd: /repo
keywords: a, b
---

### Task 1: t

task: t
task_group: g
task_outcome: success

Preference signals:
- tabs [1]
"""
SUMMARY = "# One\n\nRollout context: x\n\n## Task 1: t\nOutcome: success\n"
TERMS = ClaimTerms("/home", 1, wanted=lambda row: "secret" not in row["project"])
NOW_S = int(NOW.timestamp())


class Scripted:
    """An extractor that says what a test wants."""

    name = "scripted"

    def __init__(self, says: Output | Exception | None = None) -> None:
        self.says = says or Output(RAW, SUMMARY, "a-slug")
        self.read: list[str] = []

    async def extract(self, view: SessionView) -> Output:
        self.read.append(view.thread_id)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def session(days_ago: float = 1, **changes: Any) -> CaseSession:
    events = [{"user": "please use tabs"}, {"assistant": "ok"}]
    return CaseSession(agent="codex", cwd="/repo", events=events, days_ago=days_ago, **changes)


async def learn(
    book: Book, sessions: list[CaseSession], folder: Path, extractor: Scripted, **changes: Any
) -> phase1.ExtractionResult:
    """Import sessions and run phase 1 over them."""
    for number, each in enumerate(sessions):
        files.write(Case(f"case-{number}", "", [each], cases.ExpectedLessons()), folder, NOW)
    await book.importer.run([("codex", folder / "codex")])
    phase = ExtractionPhase(book.settings, await book.state.database(), extractor, jobs.this_process(), **changes)
    return await phase1.run(phase)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("made", "read"),
    [
        (session(), 1),
        (session(days_ago=29.9), 1),
        (session(days_ago=31), 1),  # a person asked, and wants all of them
        (session(days_ago=0.1), 1),
        (session(days_ago=0.005), 0),  # still going on
        (session(source="subagent"), 0),
        (session(source="ephemeral"), 0),
        (session(source="exec"), 1),
        (session(source="vscode"), 1),
    ],
)
async def test_which_sessions_are_read(tmp_path: Path, database_address: str, made: CaseSession, read: int) -> None:
    extractor = Scripted()
    async with books.open(environment=environment(tmp_path / "home", database_address)) as book:
        done = await learn(book, [made], tmp_path, extractor)

    assert (read, read) == (len(extractor.read), done.extracted)


@pytest.mark.anyio
async def test_a_session_is_read_once_and_again_when_it_went_on(tmp_path: Path, database_address: str) -> None:
    extractor = Scripted()
    async with books.open(environment=environment(tmp_path / "home", database_address)) as book:
        await learn(book, [session(days_ago=3)], tmp_path, extractor)
        again = await learn(book, [], tmp_path, extractor)
        (path,) = (tmp_path / "codex").rglob("*.jsonl")
        line = path.read_text().splitlines()[-1].replace("2026-11-12", "2026-11-13")
        path.write_text(path.read_text() + line + "\n")
        later = await learn(book, [], tmp_path, extractor)

    assert (0, 1, 2) == (again.extracted, later.extracted, len(extractor.read))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (ValueError("boom"), "The extractor failed: ValueError: boom."),
        (Output("no front matter", SUMMARY), "raw_memory has no front matter."),
        (Output(RAW, "no heading"), "rollout_summary does not begin with a sentence and its context."),
        (Output(RAW, SUMMARY, "Not A Slug"), "rollout_slug 'Not A Slug' is no name for a file."),
    ],
)
async def test_what_breaks_is_noted_and_stops_nothing(
    tmp_path: Path, database_address: str, says: Output | Exception, reason: str
) -> None:
    extractor = Scripted(says)
    async with books.open(environment=environment(tmp_path / "home", database_address)) as book:
        done = await learn(book, [session(1), session(2)], tmp_path, extractor)
        status = await book.memory.status()

    assert [reason, reason] == [each.reason for each in done.failed]
    assert {reason} == {each.reason for each in status.failed}
    assert 2 == len(extractor.read)  # each once in one run, though both could be tried again


@pytest.mark.anyio
@pytest.mark.parametrize("says", [Output("", SUMMARY), Output(RAW, ""), Output("", "")])
async def test_a_session_that_taught_nothing_leaves_no_output(
    tmp_path: Path, database_address: str, says: Output
) -> None:
    variables = environment(tmp_path / "home", database_address)
    async with books.open(environment=variables) as book:
        done = await learn(book, [session()], tmp_path, Scripted(says))
        database = await book.state.database()
        left = await database.read(lambda tx: tx.query("outputs.ids"))

    assert (1, 0, []) == (done.no_output, done.extracted, list(left))


@pytest.mark.anyio
async def test_secrets_are_taken_out_of_whatever_an_extractor_says(tmp_path: Path) -> None:
    secret = "ghp_" + "".join(random.Random(5).choices(string.ascii_letters + string.digits, k=36))
    variables = environment(tmp_path / "home", "sqlite")
    async with books.open(environment=variables) as book:
        said = Output(RAW.replace("tabs", secret), SUMMARY.replace("One", secret), "slug")
        await learn(book, [session()], tmp_path, Scripted(said))
        database = await book.state.database()
        (row,) = await database.read(lambda tx: tx.query("outputs.ids"))
        (stored,) = await database.read(lambda tx: tx.query("outputs.get", thread_id=row["thread_id"]))

    assert secret not in stored["raw_memory"] + stored["rollout_summary"]


@pytest.mark.anyio
async def test_a_background_start_stops_at_its_limit(tmp_path: Path) -> None:
    variables = {**environment(tmp_path / "home", "sqlite"), "COMMONPLACE_MEMORY_MAX_ROLLOUTS_PER_START": "3"}
    extractor = Scripted()
    async with books.open(environment=variables) as book:
        done = await learn(book, [session(1 + n / 10) for n in range(5)], tmp_path, extractor, background=True)

    assert 3 == done.extracted


@pytest.mark.anyio
async def test_what_settings_exclude_is_not_read(tmp_path: Path) -> None:
    variables = environment(tmp_path / "home", "sqlite")
    extractor = Scripted()
    async with books.open(environment=variables) as book:
        files.write(Case("x", "", [session()], cases.ExpectedLessons()), tmp_path, NOW)
        await book.importer.run([("codex", tmp_path / "codex")])
    async with books.open(environment={**variables, "COMMONPLACE_MEMORY_EXCLUDE": "/repo"}) as book:
        phase = ExtractionPhase(book.settings, await book.state.database(), extractor, jobs.this_process())
        await phase1.run(phase)

    assert [] == extractor.read


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"is_root": 0}, "not_a_persons_session"),
        ({"source": "internal:guardian"}, "not_a_persons_session"),
        ({"memory_mode": "disabled"}, "disabled"),
        ({"memory_mode": "polluted"}, "polluted"),
        ({"is_archived": 1}, "archived"),
        ({"project": "github.com/acme/secret"}, "excluded"),
        ({"learned_s": NOW_S - 86_400}, "already_learned"),
        ({"updated_s": NOW_S - 31 * 86_400}, "too_old"),
        ({"updated_s": NOW_S - 60}, "too_recent"),
    ],
)
def test_why_a_thread_is_not_learned_from(changes: dict[str, Any], reason: str | None) -> None:
    row = {"is_root": 1, "source": "cli", "memory_mode": "enabled", "is_archived": 0, "project": "github.com/acme/shop"}
    row |= {"learned_s": -1, "updated_s": NOW_S - 86_400, "cwd": "/repo", "path": "/x", **changes}

    assert reason == select.why_not(row, TERMS, NOW_S)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (RAW, None),
        (RAW.replace("keywords: a, b\n", ""), "front matter"),
        (RAW.replace("task_outcome: success\ncwd", "task_outcome: great\ncwd"), "task_outcome"),
        (RAW.replace("### Task 1", "### Task 2"), "numbered"),
        (RAW.replace("\ntask: t\ntask_group: g\ntask_outcome: success\n\nPref", "\n\nPref"), "begin with"),
        (RAW + "\nReferences:\n- x\n\nReusable knowledge:\n- y\n", "in order"),
    ],
)
def test_raw_memory_has_the_shape_that_consolidation_reads(text: str, wrong: str | None) -> None:
    problem = output_shape.problem(Output(text, SUMMARY))

    assert (problem is None) if wrong is None else (wrong in (problem or ""))


@pytest.mark.anyio
async def test_a_worker_imports_and_learns_in_one_cycle(tmp_path: Path) -> None:
    files.write(Case("x", "", [session()], cases.ExpectedLessons()), tmp_path, NOW)
    variables = {**environment(tmp_path / "home", "sqlite"), "CODEX_HOME": str(tmp_path / "codex")}
    async with books.open(environment=variables) as book:
        report = await worker.cycle(book.state, book.importer)

    assert (1, 1) == (report.sources[0].imported, report.extracted + report.no_output)


@pytest.mark.anyio
async def test_a_worker_needs_a_clock_unless_it_runs_once(tmp_path: Path) -> None:
    variables = environment(tmp_path / "home", "sqlite")
    async with books.open(environment=variables) as book:
        with pytest.raises(Exception, match="fixes the clock"):
            await worker.work(book.state, book.importer, lambda _: None, once=False)
        told: list[run.LearningReport] = []
        await worker.work(book.state, book.importer, told.append, once=True)

    assert 1 == len(told)
