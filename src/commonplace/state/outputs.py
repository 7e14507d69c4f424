"""Extraction outputs, one row per thread: stored, selected for consolidation, aged out, forgotten.

An output is fresh if the newest of last cited, last retrieved and source updated is recent enough; pinned outputs do
not age. The ranking is by cited, then retrieved, then recency. Threads that memory may not use are hidden, not deleted.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.state import consolidation_jobs, projects
from commonplace.state.database import Row, Transaction
from commonplace.state.jobs import EXTRACTION

DAY: Final = 86_400
PRUNE_BATCH: Final = 200
"""How many outputs one pruning deletes."""


class Output(msgspec.Struct, frozen=True):
    """The output of an extractor for one session."""

    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None = None
    lessons: str | None = None
    """The lessons that the texts are rendered from, as JSON (`memory.lessons`); None if another program wrote the
    texts.
    """

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it to consolidate."""
        return not self.raw_memory.strip() and not self.rollout_summary.strip()


def get(tx: Transaction, thread_id: str) -> Row | None:
    """Return the extraction of a thread."""
    rows = tx.query("outputs.get", thread_id=thread_id)
    return rows[0] if rows else None


def put(tx: Transaction, thread_id: str, watermark: int, output: Output, *, now: int) -> bool:
    """Store an extraction unless a newer one is there; usage, pins and selection are kept."""
    changed = tx.execute(
        "outputs.put",
        thread_id=thread_id,
        source_updated_at=watermark,
        raw_memory=output.raw_memory,
        rollout_summary=output.rollout_summary,
        rollout_slug=output.rollout_slug,
        lessons=output.lessons,
        is_empty=int(output.is_empty),
        now=now,
    )
    return changed > 0


def replace(tx: Transaction, thread_id: str, output: Output, *, now: int) -> None:
    """Replace the texts of an extraction by others of the same session, or by an empty one."""
    row = get(tx, thread_id)
    if row is None:
        return
    if output.is_empty:
        tx.execute("outputs.delete", thread_id=thread_id)
    else:
        put(tx, thread_id, row["source_updated_at"], output, now=now)


def everything(tx: Transaction) -> dict[str, Output]:
    """Return what every thread taught."""
    return {row["thread_id"]: of_row(row) for row in tx.query("outputs.all")}


def of_row(row: Row) -> Output:
    """Return the output that a row holds."""
    return Output(row["raw_memory"], row["rollout_summary"], row["rollout_slug"], row["lessons"])


def select(tx: Transaction, home: str, *, limit: int, max_unused_days: int, now: int) -> list[Row]:
    """Return the extractions to consolidate, in the order of their thread ids (ranking decides who is in)."""
    if limit <= 0:
        return []
    cutoff = now - max(0, max_unused_days) * DAY
    rows = tx.query("outputs.select", home=home, limit=limit, cutoff=cutoff)
    return sorted(rows, key=lambda row: row["thread_id"])


def prune(tx: Transaction, *, max_unused_days: int, now: int, limit: int = PRUNE_BATCH) -> list[str]:
    """Delete extractions that nobody used for long, the stalest first; their jobs stay, so they are not made again."""
    cutoff = now - max(0, max_unused_days) * DAY
    stale = [str(row["thread_id"]) for row in tx.query("outputs.stale", cutoff=cutoff, limit=max(0, limit))]
    for thread_id in stale:
        tx.execute("outputs.delete", thread_id=thread_id)
    return stale


def pin(tx: Transaction, thread_id: str, *, pinned: bool = True) -> bool:
    """Pin or unpin the extraction of a thread; return whether it exists."""
    return tx.execute("outputs.pin", thread_id=thread_id, is_pinned=int(pinned)) > 0


def pollute(tx: Transaction, thread_id: str, *, root: str, now: int) -> bool:
    """Stop using a thread because it received external content; return whether its mode changed."""
    row = get(tx, thread_id)
    changed = tx.execute("threads.set_mode", thread_id=thread_id, memory_mode="polluted") > 0
    if row is not None and row["is_selected"]:
        consolidation_jobs.enqueue(tx, root, now)
    return changed


def delete_thread(tx: Transaction, thread_id: str, *, root: str, now: int) -> bool:
    """Delete the output, the evidence and the job of a thread, before the thread itself is deleted; return whether
    there was an output.
    """
    row = get(tx, thread_id)
    deleted = tx.execute("outputs.delete", thread_id=thread_id) > 0
    projects.delete_evidence(tx, thread_id)
    tx.execute("jobs.delete", kind=EXTRACTION, job_key=thread_id)
    if row is not None and row["is_selected"]:
        consolidation_jobs.enqueue(tx, root, now)
    return deleted


def clear(tx: Transaction) -> None:
    """Delete all outputs and jobs; thread modes stay."""
    tx.execute("outputs.clear")
    tx.execute("jobs.clear")
    tx.execute("threads.forget_learned")
