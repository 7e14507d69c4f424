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
    now, settings = home.now_s(), home.settings

    def body(tx: Transaction) -> Pipeline:
        left, waiting = _standing(tx, home, now)
        unread = [Unread("sessions", reason, count) for reason, count in sorted(left.items())]
        unread += [Unread(row["source"], row["reason"], row["n"]) for row in tx.query("imports.reasons", home=home.key)]
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
        return Pipeline(listed, waiting, unread, budgets, spent)

    return await (await home.database()).read(body)


def _standing(tx: Transaction, home: Home, now: int) -> tuple[dict[str, int], int]:
    """Return how many sessions are not read, by reason, and how many would be read now."""
    terms = select.claim_terms(home.settings, background=False, max_claims=0)
    if home.settings.memory.exclude:  # a pattern may name a path: each session is looked at
        rows = tx.query("threads.current", home=home.key)
        left = select.left_out(rows, terms, now)
        return left, len(rows) - sum(left.values())
    left, waiting = dict[str, int](), 0
    newest = now - terms.min_idle_s
    for row in tx.query("threads.standing", home=home.key, newest=newest):
        updated = newest + 1 if row["is_recent"] else newest
        alike = {**row, "path": "", "updated_s": updated, "learned_s": updated if row["is_learned"] else updated - 1}
        reason = select.why_not(alike, terms, now)
        if reason is None:
            waiting += row["n"]
        else:
            left[reason] = left.get(reason, 0) + row["n"]
    return left, waiting


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
