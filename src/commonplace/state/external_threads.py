"""Threads that received external content, as their ledgers show: memory stops using them if the settings ask for it.

A session reports external content as it happens; but a new thread has no row yet, and sessions of other programs and
rebuilt rows are known only from the ledger. So the index marks threads as it reads them: the added lines of a file, or
at first the whole file. A person's later decision about a thread counts more.
"""

from __future__ import annotations

from pathlib import Path

from commonplace.protocol.ids import parse_time
from commonplace.rollout import decisions
from commonplace.rollout.layout import FoundFile
from commonplace.state import outputs
from commonplace.state.database import Row, Transaction
from commonplace.state.thread_scan import FileRow, read_all


def read(
    is_shunned: bool, files: list[FoundFile], old: list[Row | None], home: Path, key: str, complete: bool
) -> list[FileRow]:
    """Survey files; if `is_shunned`, read them whole, so that the survey tells whether external content counts."""
    rows = read_all(files, old, key, complete or is_shunned)
    told = [row for row in rows if row.external_s is not None]
    times = decisions.enabled_since(home) if is_shunned and told else {}
    allowed = {key: moment.timestamp() for key, text in times.items() if (moment := parse_time(text))}
    for row in told:
        if not is_shunned or (row.external_s or 0) <= allowed.get(row.values["thread_id"], -1):
            row.external_s = None
    return rows


def mark(tx: Transaction, rows: list[FileRow], memory: str | None) -> None:
    """Stop using the threads whose files show external content; `memory` is what their home shares with others."""
    for row in rows:
        if row.external_s is not None:
            outputs.pollute(tx, row.values["thread_id"], root=memory or row.values["home"], now=row.external_s)
