"""What imports have looked at: one row per file of another agent, so that it is read again only when it changed."""

from __future__ import annotations

import msgspec

from commonplace.state.database import Transaction


class ImportedFile(msgspec.Struct, frozen=True):
    """What became of a file."""

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
    """Return what became of every file that was imported into a home."""
    return {row["path"]: msgspec.convert(row, ImportedFile) for row in tx.query("imports.all", home=home)}


def put(tx: Transaction, home: str, path: str, source: str, size: int, mtime_ns: int, *, reason: str) -> None:
    """Note a file that was left out."""
    note(tx, home, [ImportedFile(path, source, size, mtime_ns, reason=reason)])


def note(tx: Transaction, home: str, rows: list[ImportedFile]) -> None:
    """Note what became of files."""
    tx.execute_many("imports.put", [{"home": home, **msgspec.structs.asdict(row)} for row in rows])


def forget_left_out(tx: Transaction, home: str) -> None:
    """Look again at what settings and decisions had left out."""
    tx.execute("imports.forget_left_out", home=home)
