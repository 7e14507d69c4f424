"""Limits: asked before every request, noted after it, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from taught_by_model import choice, says, tabs

from commonplace.errors import BudgetSpent, ExtractionFailed
from commonplace.learning.budget import Budget
from commonplace.learning.extract.model import ModelExtractor
from commonplace.models.base import Usage
from commonplace.models.scripted import ScriptedModel
from commonplace.state import usage
from commonplace.state.database import Database
from commonplace.state.postgres import PostgresDatabase
from commonplace.state.sqlite import SqliteDatabase
from commonplace.state.usage import Limits

NOW = 1_763_200_000
DAY = 86_400


@pytest.fixture
async def database(database_address: str, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database, of either kind."""
    if database_address == "sqlite":
        opened: SqliteDatabase | PostgresDatabase = await SqliteDatabase.open(tmp_path / "state.sqlite")
    else:
        opened = await PostgresDatabase.open(database_address)
    yield opened
    await opened.close()


async def books(database: Database) -> list[tuple[str, int, int]]:
    rows = await database.read(lambda tx: tx.query("budget.day", day=usage.day_of(NOW)))
    return [(row["kind"], row["requests"], row["tokens"]) for row in rows]


@pytest.mark.anyio
async def test_what_was_spent_is_in_the_books_of_the_day(database: Database) -> None:
    budget = Budget(database, lambda: NOW)
    async with ScriptedModel(says("bad"), says("bad", usage=Usage(total=50))) as scripted:
        with pytest.raises(ExtractionFailed):
            await ModelExtractor(scripted, choice(), spending=budget).extract(tabs())

    assert [("memory_stage1", 2, 1_050)] == await books(database)
    assert (2, 1_050) == (budget.total.requests, budget.total.tokens)


@pytest.mark.parametrize(
    ("run", "day", "limit"),
    [
        (Limits(requests=3), Limits(), "run"),
        (Limits(), Limits(requests=3), "day"),
        (Limits(tokens=9_000), Limits(), "run"),
        (Limits(), Limits(tokens=9_000), "day"),
    ],
    ids=["requests of a run", "requests of a day", "tokens of a run", "tokens of a day"],
)
@pytest.mark.anyio
async def test_a_model_that_always_answers_nonsense_is_stopped_within_the_limits(
    database: Database, run: Limits, day: Limits, limit: str
) -> None:
    budget = Budget(database, lambda: NOW, run=run, day=day)
    cost = Usage(input=2_600, output=400, total=3_000)
    scripted = ScriptedModel(*[says("nonsense", usage=cost)] * 20)
    reader = ModelExtractor(scripted, choice(), spending=budget)
    stopped = 0
    for _ in range(5):
        with pytest.raises((ExtractionFailed, BudgetSpent)) as caught:
            await reader.extract(tabs())
        stopped += isinstance(caught.value, BudgetSpent)
        if isinstance(caught.value, BudgetSpent):
            assert (limit, "budget_spent") == (caught.value.limit, caught.value.code)

    assert stopped == 4  # the first session ends by itself, the second in its middle
    assert len(scripted.requests) <= 3
    assert budget.total.tokens <= 9_000


@pytest.mark.anyio
async def test_requests_at_once_do_not_all_slip_below_a_limit(database: Database) -> None:
    budget = Budget(database, lambda: NOW, day=Limits(requests=4))
    outcomes: list[str] = []
    gate = anyio.Event()

    async def one() -> None:
        try:
            await budget.admit(10)
        except BudgetSpent:
            outcomes.append("refused")
            return
        await gate.wait()
        await budget.record(1, 10)
        outcomes.append("made")

    async with anyio.create_task_group() as group:
        for _ in range(9):
            group.start_soon(one)
        while len(outcomes) < 5:
            await anyio.lowlevel.checkpoint()
        gate.set()

    assert (4, 5) == (outcomes.count("made"), outcomes.count("refused"))
    assert [("memory_stage1", 4, 40)] == await books(database)


@pytest.mark.anyio
async def test_a_request_that_was_refused_leaves_its_room_to_others(database: Database) -> None:
    budget = Budget(database, lambda: NOW, day=Limits(tokens=100))
    with pytest.raises(BudgetSpent):
        await budget.admit(101)
    await budget.admit(100)


@pytest.mark.anyio
async def test_another_day_and_another_run_have_limits_of_their_own(database: Database) -> None:
    now = NOW
    budget = Budget(database, lambda: now, day=Limits(requests=1))
    await budget.admit(1)
    await budget.record(1, 1)
    with pytest.raises(BudgetSpent, match="used up: 1 requests"):
        await budget.admit(1)
    now += DAY
    await budget.admit(1)

    fresh = Budget(database, lambda: NOW, run=Limits(requests=1))
    await fresh.admit(1)


@pytest.mark.anyio
async def test_what_other_processes_spent_today_counts(database: Database) -> None:
    await database.write(lambda tx: usage.spend(tx, "memory_stage1", usage.SpentTotals(7, 70), now=NOW))
    with pytest.raises(BudgetSpent):
        await Budget(database, lambda: NOW, day=Limits(requests=7)).admit(1)
    await Budget(database, lambda: NOW, day=Limits(requests=8)).admit(1)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("run", "day", "limit"),
    [
        (Limits(seconds=1), Limits(seconds=14_400), "run"),
        (Limits(seconds=14_400), Limits(seconds=1), "day"),
        (Limits(), Limits(seconds=1), "day"),
        (Limits(seconds=1), Limits(), "run"),
    ],
)
async def test_work_that_ran_out_of_time_is_told_which_limit_that_was(
    database: Database, run: Limits, day: Limits, limit: str
) -> None:
    """The time of a run begins with its first request, which is later than when somebody asked how much is left."""
    clock = [100.0]
    budget = Budget(database, lambda: NOW, run=run, day=day, monotonic=lambda: clock[0])

    assert await budget.seconds_left() == 1
    clock[0] += 0.2
    await budget.admit(10)
    clock[0] += 0.8
    told = budget.time_refusal()

    assert told.data["limit"] == limit
    assert "1 seconds" in told.message
