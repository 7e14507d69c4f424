"""Rows as a test wants them: put straight into a database, changed by one function of a store, read back whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from contender import HOME, NOW, ROOT, thread_row

from commonplace.state import extraction_jobs, jobs
from commonplace.state.database import Database, Row, Statement, Transaction
from commonplace.state.extraction_jobs import ClaimTerms
from commonplace.state.jobs import CONSOLIDATION, EXTRACTION, Claim, ClaimRefusal, Worker, this_process

P = ParamSpec("P")
T = TypeVar("T")

DAY: Final = 86_400
HOUR: Final = 3_600
HERE: Final = this_process()
ELSEWHERE: Final = Worker("elsewhere:1", "elsewhere.invalid", 1, "another boot:1")

JOB: Final = (
    *("kind", "job_key", "status", "worker_id", "host", "pid", "process_start", "ownership_token", "started_at"),
    *("finished_at", "lease_until", "retry_at", "retry_remaining", "last_error", "input_watermark"),
    "last_success_watermark",
)
OUTPUT: Final = (
    *("thread_id", "source_updated_at", "raw_memory", "rollout_summary", "rollout_slug", "generated_at", "is_empty"),
    *("is_pinned", "retrieved", "last_retrieved", "injected", "last_injected", "cited", "last_cited", "fresh_at"),
    *("is_selected", "selected_source_updated_at", "selected_root"),
)


def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(':' + name for name in columns)})"


STATEMENTS: Final = {
    "test.put_job": _insert("jobs", JOB),
    "test.put_output": _insert("outputs", OUTPUT),
    "test.threads": "SELECT path, thread_id, learned_s, memory_mode FROM threads ORDER BY path",
    "test.jobs": "SELECT * FROM jobs ORDER BY kind, job_key",
    "test.outputs": "SELECT * FROM outputs ORDER BY thread_id",
    "test.entries": "SELECT * FROM entry_usage ORDER BY entry_id",
    "test.budget": "SELECT * FROM budget ORDER BY day, kind",
}
"""Queries that only tests need; the fixture `rows` makes them known while a test runs."""


def statements() -> dict[str, Statement]:
    return {name: Statement(text, {}) for name, text in STATEMENTS.items()}


@dataclass(frozen=True, slots=True)
class Rows:
    """An empty database to fill."""

    database: Database

    async def do(self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one function of a store in a transaction of its own."""
        return await self.database.write(lambda tx: function(tx, *args, **kwargs))

    async def execute(self, name: str, /, **values: Any) -> int:
        return await self.database.write(lambda tx: tx.execute(name, **values))

    async def query(self, name: str, /, **values: Any) -> list[Row]:
        return await self.database.read(lambda tx: tx.query(name, **values))

    async def thread(self, key: str, updated_s: int = NOW - DAY, **changes: Any) -> str:
        await self.execute("threads.put", **thread_row(key, updated_s, **changes))
        return key

    async def job(self, key: str, *, kind: str = EXTRACTION, **columns: Any) -> str:
        values = dict.fromkeys(JOB) | {"kind": kind, "job_key": key, "status": "pending", "retry_remaining": 3}
        await self.execute("test.put_job", **(values | columns))
        return key

    async def running(self, key: str, token: str = "token", *, kind: str = EXTRACTION, **columns: Any) -> str:
        """Put a job that a process of another host works on."""
        values = {"status": "running", "ownership_token": token, "lease_until": NOW + 300, "started_at": NOW - 1}
        return await self.job(key, kind=kind, **(values | ELSEWHERE.values() | columns))

    async def output(self, key: str, source_updated_at: int = NOW - DAY, **columns: Any) -> str:
        values: dict[str, Any] = dict.fromkeys(OUTPUT) | dict.fromkeys(("is_empty", "is_pinned", "is_selected"), 0)
        values |= {"thread_id": key, "source_updated_at": source_updated_at, "fresh_at": source_updated_at}
        values |= dict.fromkeys(("retrieved", "injected", "cited"), 0)
        values |= {"raw_memory": f"raw {key}", "rollout_summary": f"summary {key}", "generated_at": NOW}
        await self.execute("test.put_output", **(values | columns))
        return key

    async def selected(self, key: str, source_updated_at: int = NOW - DAY, root: str = ROOT, **columns: Any) -> str:
        """Put an output that is part of the last consolidation."""
        values = {"is_selected": 1, "selected_source_updated_at": source_updated_at, "selected_root": root}
        return await self.output(key, source_updated_at, **(values | columns))

    async def job_row(self, key: str, kind: str = EXTRACTION) -> Row | None:
        found = await self.query("jobs.get", kind=kind, job_key=key)
        return found[0] if found else None

    async def request(self, root: str = ROOT) -> Row | None:
        """Return the consolidation job of a root."""
        return await self.job_row(root, CONSOLIDATION)

    async def output_row(self, key: str) -> Row | None:
        found = await self.query("outputs.get", thread_id=key)
        return found[0] if found else None

    async def everything(self) -> dict[str, list[Row]]:
        """Return all rows, to tell that nothing changed."""
        names = ("threads", "jobs", "outputs", "entries", "budget")
        return {name: await self.query(f"test.{name}") for name in names}


def part(row: Row | None, *names: str) -> tuple[Any, ...] | None:
    """Return some values of a row."""
    return None if row is None else tuple(row[name] for name in names)


def claim_one(
    tx: Transaction, thread_id: str, watermark: int, worker: Worker, token: str, terms: ClaimTerms, *, now: int
) -> Claim | ClaimRefusal:
    """Claim one thread at a watermark, as `claim_next` does with each that it finds."""
    tx.serialise("claims")
    jobs.free_dead(tx, worker, now)
    return extraction_jobs.claim_thread(tx, thread_id, watermark, worker, token, terms, now)


__all__ = ["DAY", "ELSEWHERE", "HERE", "HOME", "HOUR", "NOW", "ROOT", "Rows", "claim_one", "part", "statements"]
