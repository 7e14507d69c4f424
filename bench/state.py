"""What the shared state promises, measured: a claim and a selection cost the same however much there is.

Both sizes are measured in the same run, so that their ratio does not depend on the machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench.ledger import Table
from commonplace.state import extraction_jobs, jobs, outputs
from commonplace.state.database import Database, Row, Transaction

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from tests.state import contender
from tests.state.contender import HOME, NOW, ROOT, thread_id, thread_row

T = TypeVar("T")

SIZES: Final = (10_000, 100_000)
"""Threads; half of them were extracted, the other half are eligible."""
REPEATS: Final = 31
BATCH: Final = 8
SELECTED: Final = 1_024
CONTENDERS: Final = 32
CONTENDED: Final = 5_000
SELECTION: Final = "selection of all that was learned, which grows with it"
TARGETS: Final = {"claim of 8": "20 ms", "claim, nothing to do": "20 ms", SELECTION: ""}
_CHUNK: Final = 10_000


def run_all() -> list[Table]:
    """Run every measurement on both databases, in throw-away places."""
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder, server(Path(folder)) as own:
        addresses: dict[str, Callable[[str], str]] = {
            "SQLite": lambda name: str(Path(folder) / f"{name}.sqlite"),
            "PostgreSQL": partial(new_database, own),
        }
        return [costs(addresses), contention(addresses)]


@contextmanager
def server(folder: Path) -> Generator[str]:
    """Run a PostgreSQL of our own."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pgserver.postgres_server import get_server

    server = get_server(folder / "postgres", cleanup_mode="delete")
    yield str(server.get_uri())
    server.cleanup()


def new_database(server: str, name: str) -> str:
    """Make an empty database; return its address."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return make_conninfo(server, dbname=name)


def costs(addresses: dict[str, Callable[[str], str]]) -> Table:
    """Measure one claim and one selection, small and large."""
    small, large = (f"{size // 1000:,}k threads" for size in SIZES)
    table = Table(
        "One transaction, median", ("database", "what", small, large, "ratio (of claims at most 2)", "target")
    )
    for kind, address in addresses.items():
        found = [anyio.run(_costs_at, address(f"size_{size}"), size) for size in SIZES]
        for what, target in TARGETS.items():
            few, many = (times[what] for times in found)
            goal = target if kind == "SQLite" else ""
            table.add(kind, what, f"{few * 1e3:.2f} ms", f"{many * 1e3:.2f} ms", f"{many / few:.2f}", goal)
    return table


async def _costs_at(address: str, size: int) -> dict[str, float]:
    database = await contender.connect(address)
    await _fill(database, size)
    _vacuum(address)
    worker = jobs.this_process()
    terms = extraction_jobs.ClaimTerms(HOME, max_claims=BATCH)

    def claim(tx: Transaction) -> list[extraction_jobs.ExtractionClaim]:
        return extraction_jobs.claim_next(tx, terms, worker, lambda: str(uuid.uuid4()), now=NOW)

    def finish(tx: Transaction, claimed: list[extraction_jobs.ExtractionClaim]) -> None:
        for job in claimed:
            extraction_jobs.succeed(tx, job.claim, outputs.Output("raw", "summary"), root=ROOT, now=NOW)

    claiming: list[float] = []
    for _ in range(REPEATS):
        seconds, claimed = await _timed(database, claim)
        claiming.append(seconds)
        assert len(claimed) == BATCH
        await database.write(partial(finish, claimed=claimed))

    def selecting(tx: Transaction) -> list[Row]:
        """What is learned from is everything; so many of them become files."""
        rows = outputs.select(tx, HOME, limit=SELECTED, max_unused_days=30)
        return [row for row in rows if row["is_filed"]]

    times = {
        "claim of 8": statistics.median(claiming),
        SELECTION: await _median(database, selecting, SELECTED),
    }
    rest = [{"thread_id": thread_id(number), "watermark": NOW} for number in range(size)]
    for start in range(0, size, _CHUNK):
        await database.write(lambda tx, start=start: tx.execute_many("threads.learned", rest[start : start + _CHUNK]))
    _vacuum(address)
    times["claim, nothing to do"] = await _median(database, claim, 0)
    await database.close()
    return times


def _vacuum(address: str) -> None:
    """Do what a PostgreSQL server does by itself within a minute of such a change."""
    if not address.startswith("/"):
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")


async def _timed(database: Database, body: Callable[[Transaction], T]) -> tuple[float, T]:
    begun = time.perf_counter()
    result = await database.write(body)
    return time.perf_counter() - begun, result


async def _median(database: Database, body: Callable[[Transaction], list[T]], rows: int) -> float:
    taken: list[float] = []
    for _ in range(REPEATS):
        seconds, found = await _timed(database, body)
        taken.append(seconds)
        assert len(found) == rows
    return statistics.median(taken)


async def _fill(database: Database, size: int) -> None:
    for start in range(0, size, _CHUNK):
        await database.write(partial(contender.fill, numbers=range(start, min(start + _CHUNK, size)), size=size))


def contention(addresses: dict[str, Callable[[str], str]]) -> Table:
    """Measure how fast many processes work off one queue."""
    title = f"{CONTENDERS} processes, {CONTENDED:,} jobs, claimed by {BATCH}, each finished in its own transaction"
    table = Table(title, ("database", "jobs/s", "taken", "done", "done twice", "processes that failed"))
    for kind, address in addresses.items():
        place = address("contention")
        anyio.run(_queue, place)
        found = contender.race(place, [0] * CONTENDERS, batch=BATCH, cap=CONTENDERS * BATCH)
        done, failed = set(found.done), sum(code != 0 for code in found.codes)
        twice = len(found.done) - len(done)
        table.add(kind, f"{len(done) / found.seconds:,.0f}", f"{found.seconds:.1f} s", f"{len(done):,}", twice, failed)
    return table


async def _queue(address: str) -> None:
    database = await contender.connect(address)
    rows = [thread_row(thread_id(number), NOW - 86_400 - number) for number in range(CONTENDED)]
    await database.write(lambda tx: tx.execute_many("threads.put", rows))
    await database.close()
