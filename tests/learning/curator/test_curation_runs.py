"""Phase 2 with a model, on both databases: what each way to end leaves of the memory, the job and the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from curated import LIMITS, NOW, choice, edit, nothing, proposes, sent
from learners import environment, workspace

from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.errors import ModelUnavailable, RateLimited, StreamBroken
from commonplace.learning.budget import Budget
from commonplace.learning.consolidate import phase2
from commonplace.learning.consolidate.consolidator import MergeConsolidator
from commonplace.learning.consolidate.curator import Curator, CuratorLimits
from commonplace.learning.consolidate.phase2 import ConsolidationResult
from commonplace.learning.evaluate import files
from commonplace.learning.evaluate.cases import Case, CaseSession, ExpectedLessons
from commonplace.learning.extract import phase1
from commonplace.learning.extract.rules import RuleExtractor
from commonplace.memory.entries import entry_id
from commonplace.memory.workspace import baseline, layout
from commonplace.models.base import Usage
from commonplace.models.scripted import Answer, ScriptedModel, Step, answer, say
from commonplace.state import consolidation_jobs, jobs
from commonplace.state.database import Database, Row
from commonplace.state.jobs import CONSOLIDATION, Worker
from commonplace.state.usage import Limits

FIRST = "Always use uv, never pip."
SECOND = "From now on, write commit messages in the imperative."
THIRD = "From now on, never edit generated files by hand."
COMMITS = entry_id("/repo", "preference", SECOND)
WORDING = "write commit messages in the imperative, from now on"


class Home:
    """A home whose sessions are read, and models that go over what they taught."""

    def __init__(self, folder: Path, book: Book, database: Database, variables: dict[str, str]) -> None:
        self.folder = folder
        self.book = book
        self.database = database
        self.variables = variables
        self.model = ScriptedModel()
        self.key = str(book.home.resolve())
        self._count = 0

    async def hears(self, words: str) -> None:
        """A person says something in a session of its own, and it is read."""
        self._count += 1
        events = [{"user": words}, {"assistant": "Understood."}]
        told = CaseSession("codex", "/repo", events, days_ago=3 - self._count / 10)
        files.write(Case(f"said-{self._count}", "", [told], ExpectedLessons()), self.folder / "said", NOW)
        await self.book.importer.run([("codex", self.folder / "said" / "codex")])
        await phase1.run(
            phase1.ExtractionPhase(self.book.settings, self.database, RuleExtractor(), jobs.this_process())
        )

    def phase(self, *steps: Step, **options: Any) -> phase2.ConsolidationPhase:
        self.model = ScriptedModel(*steps)
        limits = options.pop("limits", LIMITS)
        spending = options.pop("spending", None)
        maker = Curator(self.model, choice(), settings=limits, spending=spending)
        worker = options.pop("worker", jobs.this_process())
        return phase2.ConsolidationPhase(self.book.settings, self.database, maker, worker, **options)

    async def run(self, *steps: Step, **options: Any) -> ConsolidationResult:
        """Let a model go over the memory."""
        with anyio.fail_after(60):
            return await phase2.run(self.phase(*steps, **options))

    async def job(self) -> Row:
        row = await self.database.read(lambda tx: jobs.get(tx, CONSOLIDATION, self.key))
        assert row is not None
        return row

    async def selected(self) -> int:
        """How many sessions are marked as part of the memory, exactly as they are."""
        rows = await self.database.read(lambda tx: tx.query("outputs.ids"))
        found = [
            await self.database.read(lambda tx, key=row["thread_id"]: tx.query("outputs.get", thread_id=key)[0])
            for row in rows
        ]
        return sum(bool(row["selected_source_updated_at"] == row["source_updated_at"]) for row in found)

    def files(self) -> dict[str, bytes]:
        return workspace(self.variables)

    def beside(self) -> list[str]:
        """What stands beside the memory folder and belongs to a run."""
        return sorted(path.name for path in self.book.home.iterdir() if path.name.startswith("memories."))


@pytest.fixture
async def home(tmp_path: Path, database_address: str) -> AsyncIterator[Home]:
    """A memory that a model went over, and one more session that was read since."""
    variables = environment(tmp_path / "home", database_address)
    async with books.open(environment=variables) as book:
        found = Home(tmp_path, book, await book.state.database(), variables)
        await found.hears(FIRST)
        assert "succeeded" == (await found.run(nothing())).status
        await found.hears(SECOND)
        yield found


def defect(_: Any) -> Answer:
    """Break in a way that nobody thought of."""
    raise ZeroDivisionError


FAILURES: dict[str, tuple[Callable[[], list[Step]], CuratorLimits, str]] = {
    "words instead of edits": (lambda: [answer(say("I did it."))], LIMITS, "1 × is no list of edits"),
    "an empty answer": (lambda: [answer()], LIMITS, "is no list of edits"),
    "a huge answer": (lambda: [answer(say("x" * 300_000), piece=4096)], LIMITS, "is no list of edits"),
    "an answer that breaks off": (lambda: [answer(say('{"edits": [{'), stop="length")], LIMITS, "no list of edits"),
    "objects that are no edits": (lambda: [proposes({"file": "MEMORY.md"}, edit("delete", "m1"))], LIMITS, "2 × is no"),
    "a model that declines": (lambda: [answer(say("No."), stop="refused")], LIMITS, "refused to go over the memory"),
    "no time": (lambda: [answer(say("I"), hold=anyio.Event())], CuratorLimits(seconds=0.05), "took longer than"),
    "a slow request": (
        lambda: [answer(say("I"), hold=anyio.Event())],
        CuratorLimits(request_seconds=0.05),
        "for one request",
    ),
    "a busy server": (lambda: [RateLimited("Too many requests.")], LIMITS, "Too many requests"),
    "a dead server": (lambda: [ModelUnavailable("Nobody there.")], LIMITS, "Nobody there"),
    "a model that breaks": (lambda: [defect], LIMITS, "the memory was put together without it"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.anyio
async def test_whatever_fails_the_merge_is_published_and_that_is_said(home: Home, name: str) -> None:
    steps, limits, why = FAILURES[name]
    before = await home.job()
    done = await home.run(*steps(), limits=limits)
    job, root = await home.job(), home.book.home / "memories"

    assert ("succeeded", 1) == (done.status, done.added)
    assert why in done.warnings[-1]
    assert b'- "From now on, write commit messages in the imperative."' in home.files()["MEMORY.md"]
    assert ([], []) == (home.beside(), baseline.status(root))
    assert ("done", 0) == (job["status"], job["failures"])
    assert job["last_success_watermark"] > before["last_success_watermark"]
    assert 2 == await home.selected()
    assert "unchanged" == (await home.run()).status


@pytest.mark.anyio
async def test_a_run_that_succeeds_makes_a_baseline_marks_the_sessions_and_moves_the_watermark(home: Home) -> None:
    before = await home.job()
    done = await home.run(proposes(edit("reword", COMMITS, text=WORDING)))
    job = await home.job()
    root = home.book.home / "memories"

    assert ("succeeded", 1, 0, 0) == (done.status, done.added, done.changed, done.removed)
    assert WORDING.encode() in home.files()["MEMORY.md"]
    assert (baseline.message(root) or "").startswith("Commonplace memory, made by embedded, edited by here:m-1\n")
    assert [] == baseline.status(root)
    assert ("done", 0, None) == (job["status"], job["failures"], job["last_error"])
    assert job["last_success_watermark"] > before["last_success_watermark"]
    assert 2 == await home.selected()
    assert "unchanged" == (await home.run()).status


@pytest.mark.anyio
async def test_a_wording_stays_when_a_session_joins_whoever_puts_the_memory_together(home: Home) -> None:
    await home.run(proposes(edit("reword", COMMITS, text=WORDING)))
    await home.hears(THIRD)
    done = await home.run(RateLimited("busy"))
    first = home.files()["MEMORY.md"].decode()
    phase = home.phase()
    phase.consolidator = MergeConsolidator()
    embedded = await phase2.run(phase)

    assert ("succeeded", 1) == (done.status, done.added)
    assert "did not go over 1 of 1 entries: busy" in done.warnings[-1]
    assert THIRD in first
    assert WORDING in first
    assert "succeeded" == embedded.status
    assert first == home.files()["MEMORY.md"].decode()
    listed = {each.id: each.text for each in await home.book.memory.entries()}
    assert WORDING == listed[COMMITS]


@pytest.mark.anyio
async def test_what_was_not_gone_over_is_asked_about_with_what_is_new(home: Home) -> None:
    await home.run(RateLimited("busy"))
    await home.hears(THIRD)
    done = await home.run(nothing())
    asked = sent(home.model.requests[0])

    assert ("succeeded", []) == (done.status, done.warnings)
    assert SECOND in asked
    assert THIRD in asked
    assert FIRST not in asked


@pytest.mark.anyio
async def test_what_is_forgotten_leaves_the_edits_too(home: Home) -> None:
    await home.run(proposes(edit("reword", COMMITS, text=WORDING)))
    await home.book.memory.forget(COMMITS)
    edits = home.book.home / "memories" / layout.EDITS

    assert "imperative" not in edits.read_text("utf-8")
    assert b"imperative" not in home.files()["MEMORY.md"]


@pytest.mark.parametrize("limits", [Limits(requests=0), Limits(tokens=10), Limits(seconds=0)])
@pytest.mark.anyio
async def test_a_spent_budget_is_no_failure_and_the_merge_is_published(home: Home, limits: Limits) -> None:
    budget = Budget(home.database, lambda: int(NOW.timestamp()), day=limits, kind=CONSOLIDATION)
    done = await home.run(spending=budget)
    job = await home.job()

    assert ("succeeded", 1) == (done.status, done.added)
    assert "did not go over 1 of 1 entries" in done.warnings[-1]
    assert ([], []) == (home.beside(), home.model.requests)
    assert ("done", 0, None) == (job["status"], job["failures"], job["lease_until"])


@pytest.mark.anyio
async def test_a_budget_that_ends_in_the_middle_keeps_the_edits_of_finished_batches(home: Home) -> None:
    await home.hears(THIRD)
    budget = Budget(home.database, lambda: int(NOW.timestamp()), run=Limits(requests=1), kind=CONSOLIDATION)
    limits = CuratorLimits(part_bytes=1)
    done = await home.run(
        lambda request: (
            proposes(edit("reword", COMMITS, text=WORDING)) if SECOND in sent(request) else nothing()
        ),
        spending=budget, limits=limits,
    )  # fmt: skip
    text = home.files()["MEMORY.md"].decode()

    assert ("succeeded", []) == (done.status, home.beside())
    assert "did not go over 1 of 2 entries" in done.warnings[-1]
    assert (WORDING in text) == (SECOND in sent(home.model.requests[0]))
    assert (1, 1_000) == (budget.total.requests, budget.total.tokens)


@pytest.mark.anyio
async def test_what_a_run_cost_is_in_the_books_of_the_day(home: Home) -> None:
    budget = Budget(home.database, lambda: int(NOW.timestamp()), kind=CONSOLIDATION)
    await home.run(nothing(), spending=budget)
    day = await home.database.read(lambda tx: tx.query("budget.day", day="2026-11-15"))

    assert [(CONSOLIDATION, 1, 1_000)] == [(row["kind"], row["requests"], row["tokens"]) for row in day]


def other(name: str = "other") -> Worker:
    return Worker(name, "elsewhere", 1, "then")


async def take_over(home: Home) -> None:
    """Another process on another host finds the lease run out, and takes the job."""
    later = int(NOW.timestamp()) + 2 * consolidation_jobs.LEASE_SECONDS
    claim = await home.database.write(
        lambda tx: consolidation_jobs.claim(tx, home.key, other(), "theirs", now=later, background=False)
    )
    assert isinstance(claim, jobs.Claim)


class Beats:
    """Heartbeats when a test says so."""

    def __init__(self) -> None:
        self.now = anyio.Event()

    async def sleep(self, _: float) -> None:
        await self.now.wait()


@pytest.mark.anyio
async def test_a_lost_lease_ends_the_work_at_once_and_nothing_is_written(home: Home) -> None:
    files, beats, asked = home.files(), Beats(), anyio.Event()

    def asks(_: Any) -> Answer:
        asked.set()
        return proposes(edit("reword", COMMITS, text=WORDING), hold=anyio.Event())  # it never ends

    found: list[ConsolidationResult] = []

    async def work() -> None:
        found.append(await home.run(asks, sleep=beats.sleep))

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        with anyio.fail_after(60):
            await asked.wait()
        await take_over(home)
        beats.now.set()

    assert "lost" == found[0].status
    assert (files, []) == (home.files(), home.beside())
    job = await home.job()
    assert ("running", "theirs", 0) == (job["status"], job["ownership_token"], job["failures"])


@pytest.mark.anyio
async def test_a_lease_that_was_lost_without_a_heartbeat_is_noticed_before_anything_is_replaced(home: Home) -> None:
    files = home.files()

    class Slow(MergeConsolidator):
        name = "slow"

        async def curate(self, material: Any, made: Any, check: Any) -> Any:
            await take_over(home)
            return made

    phase = home.phase()
    phase.consolidator = Slow()
    done = await phase2.run(phase)

    assert ("lost", files, []) == (done.status, home.files(), home.beside())
    assert "theirs" == (await home.job())["ownership_token"]


@pytest.mark.anyio
async def test_a_run_that_is_cancelled_leaves_nothing_behind_and_gives_the_claim_back(home: Home) -> None:
    files, asked = home.files(), anyio.Event()

    def asks(_: Any) -> Answer:
        asked.set()
        return proposes(hold=anyio.Event())

    async with anyio.create_task_group() as group:
        group.start_soon(home.run, asks)
        with anyio.fail_after(60):
            await asked.wait()
        group.cancel_scope.cancel()

    assert (files, []) == (home.files(), home.beside())
    assert ("pending", 0) == ((await home.job())["status"], (await home.job())["failures"])
    assert "succeeded" == (await home.run(nothing())).status


@pytest.mark.anyio
async def test_two_workers_at_once_ask_the_model_once(home: Home) -> None:
    asked, go = anyio.Event(), anyio.Event()

    def asks(_: Any) -> Answer:
        asked.set()
        return proposes(hold=go)

    found: list[str] = []

    async def work(phase: phase2.ConsolidationPhase) -> None:
        found.append((await phase2.run(phase)).status)

    async with anyio.create_task_group() as group:
        group.start_soon(work, home.phase(asks))
        with anyio.fail_after(60):
            await asked.wait()
        await work(home.phase(worker=other()))
        go.set()

    assert ["skipped_running", "succeeded"] == found


@pytest.mark.anyio
async def test_an_answer_that_breaks_off_is_asked_for_again_and_both_requests_count(home: Home) -> None:
    cut = answer(say("I will"), breaks=StreamBroken("gone"))
    budget = Budget(home.database, lambda: int(NOW.timestamp()), kind=CONSOLIDATION)
    done = await home.run(cut, proposes(usage=Usage(total=7)), spending=budget)

    assert "succeeded" == done.status
    assert 2 == budget.total.requests
