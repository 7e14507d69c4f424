"""Many real processes on one database: every job is done exactly once, and no lock gets in anybody's way."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from contender import HOME, NOW, connect, race, thread_id, thread_row

from commonplace.state import extraction_jobs, jobs, projects
from commonplace.state.database import Database, Transaction
from commonplace.state.projects import ProjectName

BATCH = 8


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is, of either kind."""
    return str(tmp_path / "state.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres")


async def queue(address: str, count: int) -> tuple[Database, list[str]]:
    """Make threads that need work."""
    database = await connect(address)
    rows = [thread_row(thread_id(number), NOW - 86_400 - number) for number in range(count)]
    await database.write(lambda tx: tx.execute_many("threads.put", rows))
    return database, [thread_id(number) for number in range(count)]


async def states(database: Database) -> dict[tuple[str, str], int]:
    rows = await database.read(lambda tx: tx.query("jobs.states"))
    return {(row["kind"], row["status"]): row["n"] for row in rows}


async def run_race(address: str, *, processes: int, count: int) -> None:
    database, keys = await queue(address, count)

    found = race(address, [0] * processes, batch=BATCH, cap=processes * BATCH)
    stored = {str(row["thread_id"]) for row in await database.read(lambda tx: tx.query("outputs.ids"))}
    counts = await states(database)
    await database.close()

    assert ([0] * processes, "") == (found.codes, found.errors)
    assert Counter(keys) == Counter(found.done)
    assert set(keys) == stored
    assert {(jobs.EXTRACTION, "done"): count, (jobs.CONSOLIDATION, "pending"): 1} == counts


async def test_6_processes_do_300_jobs_exactly_once(address: str) -> None:
    await run_race(address, processes=6, count=300)


@pytest.mark.soak
async def test_32_processes_do_5000_jobs_exactly_once(address: str) -> None:
    await run_race(address, processes=32, count=5_000)


async def test_no_process_ever_sees_more_than_the_cap_running(address: str) -> None:
    database, keys = await queue(address, 200)

    found = race(address, [0] * 6, batch=BATCH, cap=10)
    await database.close()

    assert (set(keys), [0] * 6) == (set(found.done), found.codes)
    assert len(keys) == len(found.done)
    assert BATCH <= found.most <= 10


async def test_what_killed_processes_held_is_free_at_once_and_done_once(address: str) -> None:
    """Each victim is killed while it finishes a job: what it wrote then is undone, what it finished before stays."""
    database, keys = await queue(address, 200)
    deaths = [3, 0, 9, 0, 14, 0]

    first = race(address, deaths, batch=BATCH, cap=100)
    last = race(address, [0], batch=BATCH, cap=100)  # for what was held when the first survivors had ended already
    stored = {str(row["thread_id"]) for row in await database.read(lambda tx: tx.query("outputs.ids"))}
    counts = await states(database)
    await database.close()

    killed = [code for code in first.codes if code]
    finished = Counter(first.done + last.done)
    assert ([-signal.SIGKILL] * len(killed), [0]) == (killed, last.codes)
    assert set(keys) == stored
    assert set(finished.values()) == {1}
    assert len(keys) - len(finished) == sum(
        death - 1 for death, code in zip(deaths, first.codes, strict=True) if code
    )  # those that victims were told are done
    assert len(keys) == counts[jobs.EXTRACTION, "done"]


async def test_a_database_that_many_processes_open_first_is_made_once(tmp_path: Path) -> None:
    address = str(tmp_path / "new" / "state.sqlite")

    found = race(address, [0] * 6, batch=BATCH, cap=100)

    assert ([0] * 6, "") == (found.codes, found.errors)


async def test_claims_of_a_batch_are_newest_first_over_every_page(database: Database) -> None:
    """Candidates are read by pages; those that settings exclude do not end the search."""
    count = 200
    rows = [thread_row(thread_id(number), NOW - 86_400 - number // 3) for number in range(count)]
    await database.write(lambda tx: tx.execute_many("threads.put", rows))
    odd = {thread_id(number) for number in range(1, count, 2)}
    terms = extraction_jobs.ClaimTerms(
        HOME, max_claims=count, max_running=count, wanted=lambda row: row["thread_id"] in odd
    )

    def body(tx: Transaction) -> list[str]:
        tokens = iter(f"token {number}" for number in range(count))
        claimed = extraction_jobs.claim_next(tx, terms, jobs.this_process(), lambda: next(tokens), now=NOW)
        return [one.claim.job_key for one in claimed]

    expected = sorted(odd, key=lambda key: (-(int(key[-12:], 16) // 3), key), reverse=True)
    assert expected == await database.write(body)


async def test_projects_that_many_replace_at_once_are_those_of_one_of_them(address: str) -> None:
    opened = [await connect(address) for _ in range(6)]

    def replace(number: int) -> Callable[[Transaction], None]:
        why = {"shop": ["a"], f"only {number}": ["b"]}
        names = [ProjectName(f"/repo/{folder}", "shop") for folder in range(20)]
        return lambda tx: projects.replace(tx, HOME, why, names)

    async with anyio.create_task_group() as group:
        for number, database in enumerate([*opened] * 5):
            group.start_soon(database.write, replace(number))
    found = await opened[0].read(lambda tx: projects.reasons(tx, HOME))
    for database in opened:
        await database.close()

    assert ["shop"] == [name for name in found if not name.startswith("only ")]
    assert 2 == len(found)
