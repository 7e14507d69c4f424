"""Threads that read from outside, as their ledgers tell it: memory lets go of them, where the settings ask for that.

A session says so as it happens; but a new thread has no row yet, and of sessions of other programs and of rows that are
made anew only the ledger knows. So the index marks what it reads: lines that were added, or a whole file at first. What
a person decided later about a thread counts more.
"""

from __future__ import annotations

from pathlib import Path

from commonplace.protocol.ids import parse_time
from commonplace.rollout import decisions
from commonplace.rollout.layout import FoundFile
from commonplace.state import outputs
from commonplace.state.database import Row, Transaction
from commonplace.state.thread_scan import FileRow, read_all


def read(is_shunned: bool, files: list[FoundFile], old: list[Row | None], home: Path, complete: bool) -> list[FileRow]:
    """Survey files; where it `is_shunned`, they are read whole, and tell if something from outside counts."""
    rows = read_all(files, old, str(home.resolve()), complete or is_shunned)
    told = [row for row in rows if row.external_s is not None]
    times = decisions.enabled(home) if is_shunned and told else {}
    allowed = {key: moment.timestamp() for key, text in times.items() if (moment := parse_time(text))}
    for row in told:
        if not is_shunned or (row.external_s or 0) <= allowed.get(row.values["thread_id"], -1):
            row.external_s = None
    return rows


def mark(tx: Transaction, rows: list[FileRow]) -> None:
    """Stop using what those threads taught whose files tell of something from outside."""
    for row in rows:
        if row.external_s is not None:
            outputs.pollute(tx, row.values["thread_id"], root=row.values["home"], now=row.external_s)
