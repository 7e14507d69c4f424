"""How learning stands: threads by mode, jobs by state, failures, what models cost, and who holds a lease."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from commonplace.learning import providers
from commonplace.memory import refusals
from commonplace.protocol.ids import wire_time
from commonplace.state import usage
from commonplace.state.database import Transaction
from commonplace.state.home import Home
from commonplace.state.usage import Limits

SHOWN_FAILURES: Final = 20
"""How many failed extractions are listed."""


class FailedJob(msgspec.Struct):
    """An extraction that failed last."""

    thread_id: str
    reason: str
    retry_at: str | None


class HeldLease(msgspec.Struct):
    """A claim with a live lease, and who holds it."""

    kind: str
    key: str
    worker: str
    until: str


class Cost(msgspec.Struct):
    """What models cost today for one kind of work, and what they may cost (None: no limit)."""

    model: str
    requests: int
    tokens: int
    seconds: float
    run: Limits
    """Of one run."""
    day: Limits
    """Of one day (UTC)."""


class Status(msgspec.Struct):
    """The state of learning and memory (the JSON of `memory status`)."""

    threads: dict[str, int]
    jobs: dict[str, int]
    failed: list[FailedJob]
    outputs: int
    selected: int
    refused: int
    """Lines that models said and sessions do not bear out; `memory review` shows them."""
    budget: dict[str, Cost]
    """By kind of job, for those that a model does or did today."""
    locks: list[HeldLease]


async def status(home: Home) -> Status:
    """Count threads, work, results and cost, as of now."""
    await (await home.index()).refresh(home.path)
    now = home.now_s()
    return await (await home.database()).read(lambda tx: _status(tx, home, now))


def _status(tx: Transaction, home: Home, now: int) -> Status:
    settings = home.settings
    states: dict[str, int] = {}
    for row in tx.query("jobs.states"):
        states[row["status"]] = states.get(row["status"], 0) + row["n"]
    failed = [
        FailedJob(row["job_key"], row["last_error"] or "", _time(row["retry_at"]))
        for row in tx.query("jobs.failed", limit=SHOWN_FAILURES)
    ]
    held = [
        HeldLease(row["kind"], row["job_key"], row["worker_id"], _time(row["lease_until"]) or "")
        for row in tx.query("jobs.leases", now=now)
    ]
    spent: dict[str, Cost] = {}
    for kind in providers.KINDS:
        today = usage.spent(tx, kind, now=now)
        run, day = (providers.limits(settings, kind, span) for span in ("run", "day"))
        model = providers.model_name(settings, kind)
        if model != providers.EMBEDDED or today.requests:
            spent[kind] = Cost(model, today.requests, today.tokens, today.seconds, run, day)
    count = tx.query("outputs.count")[0]
    modes = {row["memory_mode"]: row["n"] for row in tx.query("threads.modes", home=home.key)}
    refused = refusals.count(tx, home.sources_key)
    return Status(modes, states, failed, count["outputs"], int(count["selected"]), refused, spent, held)


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else wire_time(datetime.fromtimestamp(seconds, UTC))
