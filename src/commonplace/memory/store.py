"""The memory of one home: the folder of its files, and its entries with how often each was used.

Rows mirror the files. Where there are no rows (no database yet, or none that can be used), the entries are derived from
the files; how that is done is learning's knowledge, so the function that does it is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from commonplace.memory.entries import TOLD, Entry, Source
from commonplace.memory.workspace import layout, staging
from commonplace.state import entries as rows
from commonplace.state.database import Row, Transaction
from commonplace.state.home import Home

DeriveEntries = Callable[[Path], list[Entry]]
"""Returns the entries that the memory files of a home hold."""
_SOURCES: Final = msgspec.json.Decoder(list[Source])


class KnownEntry(msgspec.Struct):
    """An entry and its usage counters."""

    entry: Entry
    retrieved: int = 0
    injected: int = 0
    cited: int = 0
    is_candidate: bool = False
    """It waits for another session or for a person, and no file of the memory tells it."""


class MemorySummary(msgspec.Struct, frozen=True):
    """How much a memory holds, and some of its entries."""

    entries: int
    candidates: int
    undecided: list[str]
    """The ids of candidates and of entries that are told to nobody unasked."""
    newest: list[KnownEntry]
    named: list[KnownEntry]
    """Those that were asked for by their ids and are there."""


class MemoryStore:
    """The memory of one home. Reading it changes nothing."""

    def __init__(self, home: Home, derive_entries: DeriveEntries) -> None:
        self.home = home
        self._derive_entries = derive_entries

    @property
    def root(self) -> Path:
        """The folder of the memory's files."""
        return self.home.path / layout.FOLDER

    async def is_mirrored(self) -> bool:
        """Say whether rows hold what the files say."""
        if not self.home.has_index():
            return False
        key = self.home.memory_key
        return await (await self.home.database()).read(lambda tx: rows.mirrored_fingerprint(tx, key)) is not None

    async def candidates(self) -> list[KnownEntry]:
        """Return what waits for another session or for a person, the likeliest first."""
        if not self.home.has_index():
            return []
        key, database = self.home.memory_key, await self.home.database()
        return [_known(row) for row in await database.read(lambda tx: rows.everything(tx, key, candidates=True))]

    async def known_entries(self) -> list[KnownEntry]:
        """Return the entries, the most useful first; without candidates."""
        if self.home.has_index():
            key = self.home.memory_key
            database = await self.home.database()
            stored = await database.read(
                lambda tx: None if rows.mirrored_fingerprint(tx, key) is None else rows.everything(tx, key)
            )
            if stored is not None:
                return [_known(row) for row in stored]
        return [KnownEntry(entry) for entry in await anyio.to_thread.run_sync(self._of_files)]

    async def summary(self, newest: int, named: Collection[str] = ()) -> MemorySummary | None:
        """Return counts and a few entries without reading all of them; None where no rows mirror the files."""
        if not await self.is_mirrored():
            return None
        key = self.home.memory_key

        def body(tx: Transaction) -> MemorySummary:
            entries, candidates = rows.count(tx, key)
            found = [rows.get(tx, key, name) for name in named]
            return MemorySummary(
                entries,
                candidates,
                rows.undecided(tx, key, TOLD),
                [_known(row) for row in rows.newest(tx, key, newest)],
                [_known(row) for row in found if row is not None],
            )

        return await (await self.home.database()).read(body)

    def _of_files(self) -> list[Entry]:
        if not self.root.is_dir() or self.root.is_symlink():
            return []
        staging.recover(self.root)
        return self._derive_entries(self.home.path)


def _known(row: Row) -> KnownEntry:
    entry = Entry(
        row["entry_id"],
        row["scope"],
        row["kind"],
        row["text"],
        row["support"],
        _SOURCES.decode(row["sources"]),
        row["first_seen_s"],
        row["last_seen_s"],
        bool(row["is_pinned"]),
        row["confidence"],
    )
    return KnownEntry(entry, row["retrieved"], row["injected"], row["cited"], bool(row["is_candidate"]))
