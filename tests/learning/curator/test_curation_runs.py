"""Phase 2 with a model, on both databases: what each way to end leaves of the memory, the job and the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from curated import NOW, choice, does, done, edit, nothing
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
from commonplace.memory.workspace import baseline
from commonplace.models.base import Usage
from commonplace.models.retries import RetryPolicy
from commonplace.models.scripted import Answer, ScriptedModel, Step, answer, call, say
from commonplace.state import consolidation_jobs, jobs
from commonplace.state.database import Database, Row
from commonplace.state.jobs import CONSOLIDATION, Worker
from commonplace.state.usage import Limits

FIRST = "Always use uv, never pip."
SECOND = "From now on, write commit messages in the imperative."
THIRD = "From now on, never edit generated files by hand."


async def at_once(_: float) -> None:
    return


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
        limits = options.pop("limits", CuratorLimits(pace=RetryPolicy(sleep=at_once)))
        spending = options.pop("spending", None)
        maker = Curator(self.model, choice(), settings=limits, spending=spending, now=lambda: NOW)
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
        assert "succeeded" == (await found.run(nothing(), nothing())).status
        await found.hears(SECOND)
        yield found


def forever(_: Any) -> Answer:
    """One more call, whatever was answered."""
    return does(call("search", {"words": "uv"}, "s"))


def broken(*, text: str = '- "From now') -> Step:
    """An edit after which the memory cannot be used, and the same as its repair."""
    return lambda request: (
        does(edit({text: "## Whatever\n" + text}), done()) if len(request.input) == 1 else does(done("again"))
    )


async def once_more(attempt: int) -> Answer:
    return nothing()


FAILURES: dict[str, tuple[Callable[[], list[Step]], CuratorLimits, str]] = {
    "arguments that are no JSON": (
        lambda: [does(call("edit", "{", f"c{n}")) for n in range(9)],
        CuratorLimits(),
        "stopped",
    ),
    "arguments of another shape": (
        lambda: [does(*(call("edit", {"file": f"{n}"}, f"c{n}") for n in range(9)))],
        CuratorLimits(),
        "8 calls in a row failed",
    ),
    "an empty answer": (lambda: [answer()], CuratorLimits(), "said nothing"),
    "a huge answer": (lambda: [answer(say("x" * 300_000), piece=4096)], CuratorLimits(), "longer than 200,000 bytes"),
    "an answer that breaks off at its limit": (lambda: [answer(say("I"), stop="length")], CuratorLimits(), "broke off"),
    "a model that declines": (lambda: [answer(say("No."), stop="refused")], CuratorLimits(), "declined"),
    "no time": (lambda: [answer(say("I"), hold=anyio.Event())], CuratorLimits(seconds=0.05), "took longer than"),
    "a busy server": (lambda: [RateLimited("Too many requests.")], CuratorLimits(), "Too many requests"),
    "a dead server": (lambda: [ModelUnavailable("Nobody there.")], CuratorLimits(), "Nobody there"),
    "one more call, always": (lambda: [forever] * 20, CuratorLimits(), "the same again and again"),
    "other calls, always": (
        lambda: [does(call("read", {"path": "MEMORY.md", "line": n}, f"r{n}")) for n in range(1, 30)],
        CuratorLimits(requests=5),
        "more than 5 answers",
    ),
    "many calls at once": (
        lambda: [does(*(call("read", {"path": "MEMORY.md", "line": n}, f"r{n}") for n in range(1, 99)))],
        CuratorLimits(),
        "more than 48 calls",
    ),
    "a memory that cannot be used, twice": (lambda: [broken(), broken()], CuratorLimits(), "cannot be used"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.anyio
async def test_whatever_fails_what_the_model_did_is_dropped_and_the_merge_is_published(home: Home, name: str) -> None:
    steps, limits, why = FAILURES[name]
    before = await home.job()
    done_ = await home.run(*steps(), limits=limits)
    job, root = await home.job(), home.book.home / "memories"

    assert ("succeeded", 1) == (done_.status, done_.added)
    assert why in done_.warnings[-1]
    assert "the memory was put together without it" in done_.warnings[-1]
    assert b'- "From now on, write commit messages in the imperative."' in home.files()["MEMORY.md"]
    assert ([], []) == (home.beside(), baseline.status(root))
    assert ("done", 0) == (job["status"], job["failures"])
    assert job["last_success_watermark"] > before["last_success_watermark"]
    assert 2 == await home.selected()
    assert "unchanged" == (await home.run()).status


@pytest.mark.anyio
async def test_a_run_that_succeeds_makes_a_baseline_marks_the_sessions_and_moves_the_watermark(home: Home) -> None:
    before = await home.job()
    done_ = await home.run(does(edit({'- "From now': '- when committing, "From now'}), done()))
    job = await home.job()
    root = home.book.home / "memories"

    assert ("succeeded", 1, 0, 0) == (done_.status, done_.added, done_.changed, done_.removed)
    assert b'- when committing, "From now on, write commit messages in the imperative."' in home.files()["MEMORY.md"]
    assert (baseline.message(root) or "").startswith("Commonplace memory, made by here:m-1\n")
    assert [] == baseline.status(root)
    assert ("done", 0, None) == (job["status"], job["failures"], job["last_error"])
    assert job["last_success_watermark"] > before["last_success_watermark"]
    assert 2 == await home.selected()
    assert "unchanged" == (await home.run()).status


@pytest.mark.anyio
async def test_a_memory_that_cannot_be_used_is_repaired_once_with_the_reasons(home: Home) -> None:
    bad = does(edit({'- "From now': "## Whatever\n- x\n" + '- "From now'}), done())
    good = does(edit({"## Whatever\n- x\n": ""}, name="e2"), done("d2"))
    done_ = await home.run(bad, good)
    repair = home.model.requests[1].input[-1].decode()

    assert "succeeded" == done_.status
    assert "What you wrote cannot be used" in repair
    assert "Whatever" in repair


@pytest.mark.anyio
async def test_a_later_failure_keeps_the_words_of_an_earlier_run(home: Home) -> None:
    wording = does(edit({'- "From now': '- when committing, "From now'}), done())
    assert "succeeded" == (await home.run(wording)).status
    await home.hears(THIRD)
    done_ = await home.run(RateLimited("busy"))
    text = home.files()["MEMORY.md"].decode()

    assert ("succeeded", 1) == (done_.status, done_.added)
    assert "here:m-1 did not go over the memory: busy" in done_.warnings[-1]
    assert THIRD in text
    assert (
        '- when committing, "From now on, write commit messages in the imperative."' in text
    )  # the model's words are kept
    assert 0 == (await home.job())["failures"]
    assert "unchanged" == (await home.run()).status


@pytest.mark.anyio
async def test_after_the_embedded_one_did_it_the_model_goes_on_with_what_is_new(home: Home) -> None:
    await home.run(RateLimited("busy"))
    await home.hears(THIRD)
    done_ = await home.run(nothing())

    assert "succeeded" == done_.status
    assert "Sessions taught something new" in home.model.requests[0].input[0].decode()


@pytest.mark.parametrize("limits", [Limits(requests=0), Limits(tokens=10), Limits(seconds=0)])
@pytest.mark.anyio
async def test_a_spent_budget_is_no_failure_and_the_merge_is_published(home: Home, limits: Limits) -> None:
    budget = Budget(home.database, lambda: int(NOW.timestamp()), day=limits, kind=CONSOLIDATION)
    done_ = await home.run(spending=budget)
    job = await home.job()

    assert ("succeeded", 1) == (done_.status, done_.added)
    assert "putting the memory together" in done_.warnings[-1]
    assert ([], []) == (home.beside(), home.model.requests)
    assert ("done", 0, None) == (job["status"], job["failures"], job["lease_until"])


@pytest.mark.anyio
async def test_a_budget_that_ends_in_the_middle_drops_what_the_model_did(home: Home) -> None:
    budget = Budget(home.database, lambda: int(NOW.timestamp()), run=Limits(requests=1), kind=CONSOLIDATION)
    change = does(edit({'- "From now': '- when committing, "From now'}))
    done_ = await home.run(change, spending=budget)

    assert ("succeeded", []) == (done_.status, home.beside())
    assert b'- "From now on, write commit messages' in home.files()["MEMORY.md"]
    assert (1, 1_000) == (budget.total.requests, budget.total.tokens)
    assert "done" == (await home.job())["status"]


@pytest.mark.anyio
async def test_what_a_run_cost_is_in_the_books_of_the_day(home: Home) -> None:
    budget = Budget(home.database, lambda: int(NOW.timestamp()), kind=CONSOLIDATION)
    await home.run(does(call("list", {}, "l")), nothing(), spending=budget)
    day = await home.database.read(lambda tx: tx.query("budget.day", day="2026-11-15"))

    assert [(CONSOLIDATION, 2, 2_000)] == [(row["kind"], row["requests"], row["tokens"]) for row in day]


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
        return does(edit({'- "From now': '- when committing, "From now'}), hold=anyio.Event())  # it never ends

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
    done_ = await phase2.run(phase)

    assert ("lost", files, []) == (done_.status, home.files(), home.beside())
    assert "theirs" == (await home.job())["ownership_token"]


@pytest.mark.anyio
async def test_a_run_that_is_cancelled_leaves_nothing_behind_and_gives_the_claim_back(home: Home) -> None:
    files, asked = home.files(), anyio.Event()

    def asks(_: Any) -> Answer:
        asked.set()
        return does(call("list", {}, "l"), hold=anyio.Event())

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
        return does(done(), hold=go)

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
    done_ = await home.run(cut, does(done(), usage=Usage(total=7)), spending=budget)

    assert "succeeded" == done_.status
    assert 2 == budget.total.requests
