"""A memory that homes on several hosts share: the homes, the files as they were last published, and people's decisions.

Every change raises the generation, so that a host that has the newest one needs to read a single row. Contents are kept
by their hash, each once, and go when no file holds them any more. Changes are made one at a time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping

import msgspec

from commonplace.state.database import Row, Transaction


class SharedFile(msgspec.Struct, frozen=True):
    """A published file."""

    path: str
    """Below the home."""
    sha256: str
    mtime_ns: int = 0
    is_program: bool = False
    person: str | None = None
    """Of a note: who wrote it, as JSON."""


def register(tx: Transaction, home: str, host: str, folder: str) -> None:
    """Note that a home shares this memory, and where it is."""
    tx.execute("homes.put", home=home, host=host, folder=folder)


def homes(tx: Transaction) -> list[str]:
    """Return the homes that share this memory."""
    return [row["home"] for row in tx.query("homes.all")]


def ledgers(tx: Transaction, thread_id: str) -> list[Row]:
    """Return where the ledger of a thread is: `path`, `home` and `host`."""
    return tx.query("homes.of_thread", thread_id=thread_id)


class Version(msgspec.Struct, frozen=True):
    """The state of a shared memory: how often it changed since it was made."""

    generation: int = 0
    epoch: str = ""

    def follows(self, other: Version) -> bool:
        """Say whether this may be a later state of the same memory; else it was lost, or put back from a backup."""
        return self.epoch == other.epoch and self.generation >= other.generation


def version(tx: Transaction, root: str) -> Version:
    """Return the state of a memory."""
    rows = tx.query("shared.generation", root=root)
    return Version(rows[0]["generation"], rows[0]["epoch"]) if rows else Version()


def files(tx: Transaction) -> dict[str, SharedFile]:
    """Return the published files by their paths."""
    return {
        row["path"]: SharedFile(row["path"], row["sha256"], row["mtime_ns"], bool(row["is_program"]), row["person"])
        for row in tx.query("shared.files")
    }


def contents(tx: Transaction, names: Iterable[str]) -> dict[str, bytes]:
    """Return what files hold, by the hash of it; what is not there is left out."""
    found: dict[str, bytes] = {}
    for name in names:
        rows = tx.query("shared.content", sha256=name)
        if rows:
            found[name] = bytes(rows[0]["data"])
    return found


def decisions(tx: Transaction) -> list[str]:
    """Return the lines of what people decided, in no order."""
    return [row["line"] for row in tx.query("shared.decisions")]


def clear(tx: Transaction, root: str) -> None:
    """Delete every published file; what people decided stays."""
    serialise(tx)
    change(tx, root, [], {}, list(files(tx)))


def serialise(tx: Transaction) -> None:
    """Keep others from changing the memory until the transaction has ended."""
    tx.serialise("shared memory")


def change(
    tx: Transaction,
    root: str,
    changed: Iterable[SharedFile],
    data: Mapping[str, bytes],
    removed: Iterable[str] = (),
    decided: Iterable[str] = (),
) -> Version:
    """Publish files and decisions, and raise the generation if there are any; return it. `serialise` comes first."""
    put, gone, lines = list(changed), list(removed), list(decided)
    if not (put or gone or lines):
        return version(tx, root)
    hashes = dict.fromkeys(file.sha256 for file in put)
    tx.execute_many("shared.put_content", [{"sha256": name, "data": data[name]} for name in hashes])
    tx.execute_many(
        "shared.put_file", [{**msgspec.structs.asdict(file), "is_program": int(file.is_program)} for file in put]
    )
    tx.execute_many("shared.drop_file", [{"path": path} for path in gone])
    rows = [{"line_id": hashlib.sha256(line.encode()).hexdigest(), "line": line} for line in lines]
    tx.execute_many("shared.put_decision", rows)
    tx.execute("shared.drop_contents")
    tx.execute("shared.bump", root=root, epoch=os.urandom(8).hex())
    return version(tx, root)
