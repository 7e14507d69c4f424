"""The files that imports have looked at: one row per file of another agent, so that only changed files are
read again.
"""

from __future__ import annotations

import msgspec

from commonplace.state.database import Transaction


class ImportedFile(msgspec.Struct, frozen=True):
    """The result of looking at one file."""

    path: str
    source: str
    size: int
    mtime_ns: int
    thread_id: str | None = None
    ledger: str | None = None
    ledger_size: int | None = None
    first_record: str | None = None
    first_answer: str | None = None
    reason: str | None = None
    """Why it was left out."""


def read(tx: Transaction, home: str) -> dict[str, ImportedFile]:
    """Return the row of every file that was looked at for a home."""
    return {row["path"]: msgspec.convert(row, ImportedFile) for row in tx.query("imports.all", home=home)}


def note(tx: Transaction, home: str, rows: list[ImportedFile]) -> None:
    """Note what became of files."""
    tx.execute_many("imports.put", [{"home": home, **msgspec.structs.asdict(row)} for row in rows])


def forget_left_out(tx: Transaction, home: str) -> None:
    """Delete the rows of files that settings or decisions left out, so that they are looked at again."""
    tx.execute("imports.forget_left_out", home=home)
