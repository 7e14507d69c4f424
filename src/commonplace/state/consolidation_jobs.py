"""The consolidation job: one per memory root, with one holder at a time.

Requesting a consolidation raises the watermark and ends a backoff; it does not end the cooldown after a success. This
module does not decide whether there is anything to do: the holder of the claim compares files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from commonplace.state import jobs
from commonplace.state.database import Row, Transaction
from commonplace.state.jobs import CONSOLIDATION, RETRIES, RETRY_SECONDS, Claim, ClaimRefusal, Worker

LEASE_SECONDS: Final = 3_600
"""How long a claim holds without a heartbeat."""
COOLDOWN_SECONDS: Final = 21_600
"""For this long after a success, background starts do not consolidate a root again."""


def enqueue(tx: Transaction, root: str, watermark: int) -> None:
    """Ask for a consolidation."""
    tx.execute("jobs.enqueue", kind=CONSOLIDATION, job_key=root, watermark=watermark, retry_remaining=RETRIES)


def claim(
    tx: Transaction,
    root: str,
    worker: Worker,
    token: str,
    *,
    now: int,
    lease: int = LEASE_SECONDS,
    background: bool = True,
) -> Claim | ClaimRefusal:
    """Claim a root's consolidation; backoff and cooldown bind background starts only, a live lease binds everyone."""
    tx.serialise("claims")
    jobs.free_dead(tx, worker, now)
    row = jobs.get(tx, CONSOLIDATION, root)
    values = {"kind": CONSOLIDATION, "job_key": root, "ownership_token": token, "now": now}
    values |= {"lease_until": now + lease, **worker.values()}
    if row is None:
        inserted = tx.execute(
            "jobs.insert_claim", retry_remaining=RETRIES, input_watermark=0, last_success_watermark=0, **values
        )
        return Claim(CONSOLIDATION, root, token, 0) if inserted else ClaimRefusal.RUNNING
    if background and jobs.backs_off(row, now):
        return ClaimRefusal.BACKOFF
    if jobs.is_running(row, now):
        return ClaimRefusal.RUNNING
    if background and cools_down(row, now):
        return ClaimRefusal.COOLDOWN
    watermark = row["input_watermark"] or 0
    claimed = tx.execute("jobs.claim", retry_remaining=row["retry_remaining"], input_watermark=watermark, **values)
    return Claim(CONSOLIDATION, root, token, watermark, failures=row["failures"]) if claimed else ClaimRefusal.RUNNING


def cools_down(row: Row, now: int) -> bool:
    """Say whether a root was consolidated a short while ago; in the future it was so by a clock that was ahead."""
    finished = row["finished_at"]
    return row["last_error"] is None and finished is not None and now - COOLDOWN_SECONDS < finished <= now


def succeed(tx: Transaction, held: Claim, watermark: int, selected: Iterable[tuple[str, int]], *, now: int) -> bool:
    """Note the fingerprint of what was consolidated; return False if the claim is lost."""
    if not tx.execute("jobs.succeed", watermark=watermark, now=now, **held.values()):
        return False
    root = held.job_key
    tx.execute("outputs.deselect", root=root)
    rows = [{"thread_id": key, "source_updated_at": snapshot, "root": root} for key, snapshot in selected]
    tx.execute_many("outputs.mark_selected", rows)
    return True


def fail(tx: Transaction, held: Claim, reason: str, *, now: int, delay: int = RETRY_SECONDS) -> bool:
    """Note that a consolidation failed; after a lost claim, note it only if nobody else holds the job."""
    if jobs.fail(tx, held, reason, now=now, delay=delay):
        return True
    values = {"last_error": reason, "retry_at": now + max(0, delay), "now": now}
    return tx.execute("jobs.fail_unowned", **values, **held.values()) > 0
