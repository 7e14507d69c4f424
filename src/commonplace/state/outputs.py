"""Extraction outputs, one row per thread: stored, selected for consolidation, forgotten.

Every output of a thread that memory may use is consolidated, however old it is. The ranking decides whose texts become
files: pinned and fresh ones first, then by cited, retrieved and recency. An output is fresh if the newest of last
cited, last retrieved and source updated is not long before that of the freshest output; so the ranking does not change
while nothing happens. Threads that memory may not use are hidden, not deleted.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.state import consolidation_jobs, projects
from commonplace.state.database import Row, Transaction
from commonplace.state.jobs import EXTRACTION

DAY: Final = 86_400


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
        return self.lessons is None and not self.has_text

    @property
    def has_text(self) -> bool:
        """Whether it tells anything that is likely to last; else it holds at most candidates."""
        return bool(self.raw_memory.strip() or self.rollout_summary.strip())


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


def keep_person(tx: Transaction, thread_id: str, home: str) -> None:
    """Keep with an extraction whose session it was, as the home that listed it knows."""
    tx.execute("outputs.set_person", thread_id=thread_id, home=home)


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


def _of_threads(rows: list[Row]) -> list[Row]:
    """Return one row for each thread, the first."""
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(row["thread_id"], row)
    return list(found.values())


def matching(tx: Transaction, home: str | None, pattern: str) -> list[Row]:
    """Return the lessons of extractions that hold a text, the newest first."""
    chosen, values = projects.of_home(home)
    return _of_threads(tx.query("outputs.matching", chosen, pattern=pattern, **values))


def select(tx: Transaction, home: str | None, *, limit: int, max_unused_days: int) -> list[Row]:
    """Return the extractions to consolidate, in the order of their thread ids; `is_filed` marks the first of the
    ranking, whose texts become files. Without a home, those of all homes that share this memory are meant.
    """
    chosen, values = projects.of_home(home)
    rows = _of_threads(tx.query("outputs.select", chosen, **values))
    cutoff = max((row["fresh_at"] for row in rows), default=0) - max(0, max_unused_days) * DAY
    ranked = sorted(rows, key=lambda row: not (row["is_pinned"] or row["fresh_at"] >= cutoff))
    found = [{**row, "is_filed": place < limit} for place, row in enumerate(ranked)]
    return sorted(found, key=lambda row: row["thread_id"])


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
