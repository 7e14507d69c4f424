"""Extraction jobs: one per thread, claimed newest first among threads that are neither too fresh nor too old.

A thread needs work if it was updated after its last extraction. After three failures at one watermark it is not tried
again until it has newer activity. The limit on running extractions holds over all processes: claims are made one at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from commonplace.state import consolidation_jobs, jobs, outputs
from commonplace.state.database import Row, Transaction
from commonplace.state.jobs import EXTRACTION, RETRIES, Claim, ClaimRefusal, Worker

DAY: Final = 86_400
HOUR: Final = 3_600
SCAN_LIMIT: Final = 5_000
"""How many threads that need work one start looks at."""
LEARNED_SOURCES: Final = frozenset(
    {"cli", "vscode", "exec", "chat", "atlas", "chatgpt", "claude-code", "gemini", "opencode", "copilot", "entire"}
    | {"specstory", "aider", "swe-agent", "transcript", "codex"}
)
"""Sessions that people had with an agent, whichever it was. Not a condition of the query: it would mislead planners."""
_PAGE: Final = 64
"""How many rows are read at a time: a claim takes a few, and blocks other claims while it looks."""


def _any(row: Row) -> bool:
    return True


class ClaimTerms(msgspec.Struct, frozen=True):
    """What a start may claim."""

    home: str
    """The home whose sessions may be claimed."""
    max_claims: int
    max_age_days: int | None = 30
    """None: sessions of any age."""
    min_idle_s: int = 6 * HOUR
    max_running: int = 64
    lease: int = 300
    background: bool = True
    """Retry backoff binds background starts; a person who typed a command does not wait for it."""
    current: str | None = None
    """The thread whose session is running now; it is not claimed."""
    scan: int = SCAN_LIMIT
    memory: str = ""
    """The memory that they are for; empty: that of the home alone."""
    wanted: Callable[[Row], bool] = _any
    """Whether a thread may be claimed; settings exclude some."""


class ExtractionClaim(msgspec.Struct, frozen=True):
    """A claimed thread."""

    claim: Claim
    path: str
    source: str
    cwd: str
    project: str


def claim_next(
    tx: Transaction,
    terms: ClaimTerms,
    worker: Worker,
    new_token: Callable[[], str],
    *,
    now: int,
) -> list[ExtractionClaim]:
    """Claim up to `max_claims` threads that need work."""
    if terms.max_claims <= 0 or terms.scan <= 0:
        return []
    tx.serialise("claims")
    jobs.free_dead(tx, worker, now)
    room = min(terms.max_claims, terms.max_running - _count_running(tx, now))
    claimed: list[ExtractionClaim] = []
    looked_at = 0
    for row in _candidates(tx, terms, now) if room > 0 else ():
        if len(claimed) >= room or looked_at >= terms.scan:
            break
        if row["source"] not in LEARNED_SOURCES or not terms.wanted(row):
            continue
        looked_at += 1
        found = claim_thread(tx, row["thread_id"], row["updated_s"], worker, new_token(), terms, now)
        if isinstance(found, Claim):
            claimed.append(ExtractionClaim(found, row["path"], row["source"], row["cwd"], row["project"]))
    return claimed


def is_waiting(tx: Transaction, terms: ClaimTerms, *, now: int) -> bool:
    """Say whether any thread needs work; nothing is claimed."""
    return any(row["source"] in LEARNED_SOURCES and terms.wanted(row) for row in _candidates(tx, terms, now))


def _candidates(tx: Transaction, terms: ClaimTerms, now: int) -> Iterator[Row]:
    """Yield threads that need work, newest first, a page at a time: mostly the first one is enough."""
    filters = ["backoff"] if terms.background else []
    values: dict[str, object] = {"home": terms.home, "now": now}
    values["oldest"] = 0 if terms.max_age_days is None else now - max(0, terms.max_age_days) * DAY
    values["newest"] = now - max(0, terms.min_idle_s)
    if terms.current is not None:
        filters.append("not_current")
        values["current"] = terms.current
    while True:
        rows = tx.query("extractions.candidates", *filters, limit=_PAGE, **values)
        yield from rows
        if len(rows) < _PAGE:
            return
        if "after" not in filters:
            filters.append("after")
        values |= {"after_s": rows[-1]["updated_s"], "after_id": rows[-1]["thread_id"]}


def claim_thread(
    tx: Transaction, thread_id: str, watermark: int, worker: Worker, token: str, terms: ClaimTerms, now: int
) -> Claim | ClaimRefusal:
    """Claim one thread at a watermark, by the table of the rules, or say why not; the caller has serialised claims."""
    output = outputs.get(tx, thread_id)
    if output is not None and output["source_updated_at"] >= watermark:
        return ClaimRefusal.UP_TO_DATE
    row = jobs.get(tx, EXTRACTION, thread_id)
    success = row["last_success_watermark"] if row else None
    if success is not None and success >= watermark:
        return ClaimRefusal.UP_TO_DATE
    values = {"kind": EXTRACTION, "job_key": thread_id, "ownership_token": token, "input_watermark": watermark}
    values |= {"now": now, "lease_until": now + terms.lease, **worker.values()}
    advanced = row is None or watermark > (row["input_watermark"] if row["input_watermark"] is not None else -1)
    retries = RETRIES if row is None or advanced else row["retry_remaining"]
    claim = Claim(EXTRACTION, thread_id, token, watermark, retries)
    if _count_running(tx, now) >= terms.max_running:
        return _why_not(row, now)
    if row is None:
        tx.execute("jobs.insert_claim", retry_remaining=RETRIES, last_success_watermark=None, **values)
        return claim
    waiting = terms.background and jobs.backs_off(row, now)
    if jobs.is_running(row, now) or (not advanced and (waiting or row["retry_remaining"] <= 0)):
        return _why_not(row, now)
    return claim if tx.execute("jobs.claim", retry_remaining=retries, **values) else ClaimRefusal.RUNNING


def _count_running(tx: Transaction, now: int) -> int:
    return tx.query("jobs.count_running", kind=EXTRACTION, now=now)[0]["n"]


def _why_not(row: Row | None, now: int) -> ClaimRefusal:
    if row is not None and row["retry_remaining"] <= 0:
        return ClaimRefusal.EXHAUSTED
    if row is not None and jobs.backs_off(row, now):
        return ClaimRefusal.BACKOFF
    return ClaimRefusal.RUNNING


def succeed(tx: Transaction, claim: Claim, output: outputs.Output, *, root: str, now: int) -> bool:
    """Store the output of a thread and request a consolidation; return False if the claim is lost."""
    if not tx.execute("jobs.succeed", watermark=claim.watermark, now=now, **claim.values()):
        return False
    outputs.put(tx, claim.job_key, claim.watermark, output, now=now)
    tx.execute("threads.learned", thread_id=claim.job_key, watermark=claim.watermark)
    consolidation_jobs.enqueue(tx, root, claim.watermark)
    return True


def succeed_without_output(tx: Transaction, claim: Claim, *, root: str, now: int) -> bool:
    """Note that a thread taught nothing, and forget what it taught before; return False if the claim is lost."""
    if not tx.execute("jobs.succeed", watermark=claim.watermark, now=now, **claim.values()):
        return False
    tx.execute("threads.learned", thread_id=claim.job_key, watermark=claim.watermark)
    if tx.execute("outputs.delete", thread_id=claim.job_key):
        consolidation_jobs.enqueue(tx, root, claim.watermark)
    return True
