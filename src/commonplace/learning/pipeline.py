"""The pipeline as a person sees it: jobs with their leases and reasons, what is not read and why, and the cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from commonplace.learning import providers, select
from commonplace.protocol.ids import wire_time
from commonplace.state import jobs, usage
from commonplace.state.database import Row, Transaction
from commonplace.state.home import Home
from commonplace.state.usage import Limits, SpentDay, SpentTotals

DAYS: Final = 30
"""How many days of cost are shown."""
_MOST_JOBS: Final = 100
_KINDS: Final = {jobs.EXTRACTION: "read a session", jobs.CONSOLIDATION: "put the memory together"}


class ListedJob(msgspec.Struct, frozen=True):
    """A job that runs, waits or failed."""

    kind: str
    key: str
    is_session: bool
    status: str
    worker: str
    since: str | None
    until: str | None
    """When its lease ends."""
    retry_at: str | None
    retries_left: int
    reason: str


class Unread(msgspec.Struct, frozen=True):
    """Sessions or files that are not learned from."""

    what: str
    reason: str
    count: int


class ModelBudget(msgspec.Struct, frozen=True):
    """What one kind of work may cost on a day, and what it cost today."""

    kind: str
    model: str
    today: SpentTotals
    day: Limits


class Pipeline(msgspec.Struct):
    """How learning stands."""

    jobs: list[ListedJob]
    waiting: int
    """Sessions that would be read now."""
    unread: list[Unread]
    budgets: list[ModelBudget]
    spent: list[SpentDay]


async def pipeline(home: Home) -> Pipeline:
    """Return how learning stands, as of now; the index is taken as it is."""
    now, settings, key = home.now_s(), home.settings, home.key

    def body(tx: Transaction) -> Pipeline:
        terms = select.claim_terms(settings, background=False, max_claims=0)
        rows = tx.query("threads.current", home=key)
        left = select.left_out(rows, terms, now)
        unread = [Unread("sessions", reason, count) for reason, count in sorted(left.items())]
        unread += [Unread(row["source"], row["reason"], row["n"]) for row in tx.query("imports.reasons", home=key)]
        budgets = [
            ModelBudget(
                _KINDS.get(kind, kind),
                providers.model_name(settings, kind),
                usage.spent(tx, kind, now=now),
                providers.limits(settings, kind, "day"),
            )
            for kind in providers.KINDS
        ]
        listed = [_job(row) for row in tx.query("jobs.listed", limit=_MOST_JOBS)]
        spent = usage.spent_days(tx, now=now, days=DAYS)
        return Pipeline(listed, len(rows) - sum(left.values()), unread, budgets, spent)

    return await (await home.database()).read(body)


def _job(row: Row) -> ListedJob:
    return ListedJob(
        kind=_KINDS.get(str(row["kind"]), str(row["kind"])),
        key=row["job_key"],
        is_session=row["kind"] == jobs.EXTRACTION,
        status="failed" if row["status"] == "error" else row["status"],
        worker=row["worker_id"] or "",
        since=_time(row["started_at"]),
        until=_time(row["lease_until"]),
        retry_at=_time(row["retry_at"]),
        retries_left=row["retry_remaining"],
        reason=row["last_error"] or "",
    )


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else wire_time(datetime.fromtimestamp(seconds, UTC))
