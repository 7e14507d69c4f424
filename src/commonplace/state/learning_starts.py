"""Automatic starts of learning: whether there is anything to do, and whether another process started just now.

A home starts at most once in `PAUSE_SECONDS`, over all processes: `begin` changes one row, and the process that changed
it may go on. A start time in the future does not count, so a clock that was set back does not block starts for long.
"""

from __future__ import annotations

from typing import Final

from commonplace.state import consolidation_jobs, extraction_jobs, jobs
from commonplace.state.database import Transaction
from commonplace.state.extraction_jobs import ClaimTerms
from commonplace.state.jobs import CONSOLIDATION, Worker

PAUSE_SECONDS: Final = 600
"""Learning starts by itself at most once in this time."""


def begin(tx: Transaction, root: str, *, now: int) -> bool:
    """Take the right to start now; return False if another process started a short while ago."""
    return tx.execute("starts.begin", root=root, now=now, before=now - PAUSE_SECONDS) > 0


def has_begun(tx: Transaction, root: str) -> bool:
    """Say whether learning ever began by itself in a home."""
    return bool(tx.query("starts.get", root=root))


def is_anything_due(tx: Transaction, terms: ClaimTerms, worker: Worker, *, has_memory: bool, now: int) -> bool:
    """Say whether a background start would find something to do: a session to read, or a memory to look after.

    Only a consolidation can tell whether a memory is up to date (there may be notes, manual edits, aged entries): so
    one is due whenever it may be claimed. If none ever ran, it is due if a workspace exists.
    """
    jobs.free_dead(tx, worker, now)
    if extraction_jobs.is_waiting(tx, terms, now=now):
        return True
    row = jobs.get(tx, CONSOLIDATION, terms.memory or terms.home)
    if row is None:
        return has_memory
    return not (jobs.is_running(row, now) or jobs.backs_off(row, now) or consolidation_jobs.cools_down(row, now))
