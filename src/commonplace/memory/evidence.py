"""The evidence of entries: for each source the summary, the ledger, the turn, the bytes and the words.

The chains of many entries are read in one go: one file of the workspace and the index of threads, no ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import anyio.to_thread
import msgspec
from msgspec import UNSET, UnsetType

from commonplace.memory.entries import Entry, Source
from commonplace.memory.files import raw_memories
from commonplace.memory.files.raw_memories import SessionFiles
from commonplace.memory.store import MemoryStore
from commonplace.memory.workspace import layout
from commonplace.state import shared_memory
from commonplace.state.database import Transaction
from commonplace.state.home import Home

_FEW: Final = 32
"""So many threads are looked up one by one; of more, the index of all threads is read once."""


class Link(msgspec.Struct, kw_only=True):
    """One source of an entry: the words, and where they stand."""

    summary_file: str | None
    thread_id: str | None
    path: str | None
    turn: int | None
    byte_start: int | None
    byte_end: int | None
    quote: str
    host: str | UnsetType = UNSET
    """Where the ledger is, if that is another host's home."""


class _Ledger(NamedTuple):
    """Where the words of a source are."""

    path: str | None
    host: str | None = None
    """If that is the home of another."""


async def chains(store: MemoryStore, entries: Sequence[Entry]) -> list[list[Link]]:
    """Return the chain of each entry; whether the words still stand there is not checked."""
    files = await anyio.to_thread.run_sync(raw_memories.session_files, store.root)
    threads = {source.thread_id for entry in entries for source in entry.sources if source.thread_id}
    paths = await _paths(store.home, threads)
    paths |= await _ledgers_elsewhere(store.home, threads - paths.keys())
    return [[_link(store.root, source, files, paths) for source in entry.sources] for entry in entries]


def _link(root: Path, source: Source, files: dict[str, SessionFiles], paths: dict[str, _Ledger]) -> Link:
    if source.note:
        summary, thread, ledger = None, None, _Ledger(str(root / source.note))
    else:
        thread = source.thread_id
        known = files.get(thread or "")
        summary = f"{layout.SUMMARIES}/{known.summary}" if known is not None else None
        ledger = paths.get(thread or "") or _Ledger(known.rollout_path if known is not None else None)
    return Link(
        summary_file=summary,
        thread_id=thread,
        path=ledger.path,
        turn=source.turn,
        byte_start=source.byte_start,
        byte_end=source.byte_end,
        quote=source.quote,
        host=ledger.host or UNSET,
    )


async def _ledgers_elsewhere(home: Home, threads: set[str]) -> dict[str, _Ledger]:
    """Return the ledgers of threads that other homes have which share the memory."""
    if not (threads and home.is_shared):
        return {}

    def body(tx: Transaction) -> dict[str, _Ledger]:
        found = {key: shared_memory.ledgers(tx, key) for key in sorted(threads)}
        return {key: _Ledger(rows[0]["path"], rows[0]["host"]) for key, rows in found.items() if rows}

    return await (await home.database()).read(body)


async def _paths(home: Home, threads: set[str]) -> dict[str, _Ledger]:
    """Return the ledgers of threads, as far as the index knows them."""
    if not home.has_index() or not threads:
        return {}
    root = home.key

    def body(tx: Transaction) -> dict[str, _Ledger]:
        if len(threads) > _FEW:
            rows = tx.query("threads.current", home=root)
            return {row["thread_id"]: _Ledger(row["path"]) for row in rows if row["thread_id"] in threads}
        found = {key: tx.query("threads.by_id", home=root, thread_id=key) for key in sorted(threads)}
        return {key: _Ledger(lines[0]["path"]) for key, lines in found.items() if lines}

    return await (await home.database()).read(body)
