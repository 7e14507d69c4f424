"""When learning begins by itself: is there anything to do, and has it not just begun elsewhere?

At most once in a while for a home, over all processes: `begin` changes one row, and whoever changed it may go on. A
clock that was set back does not stop it for long: a beginning that lies in the future does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from commonplace.state import extraction_jobs, jobs
from commonplace.state.consolidation_jobs import COOLDOWN_SECONDS
from commonplace.state.database import Row, Transaction
from commonplace.state.extraction_jobs import ClaimTerms
from commonplace.state.jobs import CONSOLIDATION, Worker

PAUSE_SECONDS: Final = 600
"""Learning begins by itself at most once in this time."""


def begin(tx: Transaction, root: str, *, now: int) -> bool:
    """Take the right to begin now; False if somebody began a short while ago."""
    return tx.execute("starts.begin", root=root, now=now, before=now - PAUSE_SECONDS) > 0


def has_begun(tx: Transaction, root: str) -> bool:
    """Say whether learning ever began by itself in a home."""
    return bool(tx.query("starts.get", root=root))


def is_anything_due(
    tx: Transaction, terms: ClaimTerms, worker: Worker, wanted: Callable[[Row], bool], *, has_memory: bool, now: int
) -> bool:
    """Say whether a background start would find something to do: a session to read, or a memory to look after.

    Whether a memory is up to date, only a consolidation can tell (there may be notes, edits by hand, entries that
    aged): so one is due whenever it may be claimed. Where none ever ran, it is due if a workspace is there already.
    """
    jobs.free_dead(tx, worker, now)
    if extraction_jobs.is_waiting(tx, terms, wanted, now=now):
        return True
    row = jobs.get(tx, CONSOLIDATION, terms.home)
    if row is None:
        return has_memory
    if jobs.is_running(row, now) or (row["retry_at"] or 0) > now:
        return False
    finished = row["finished_at"]
    return row["last_error"] is not None or finished is None or finished <= now - COOLDOWN_SECONDS
