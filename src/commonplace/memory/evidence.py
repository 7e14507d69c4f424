"""The evidence of entries: for each source the summary, the ledger, the turn, the bytes and the words.

The chains of many entries are read in one go: one file of the workspace and the index of threads, no ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from commonplace.memory.entries import Entry, Source
from commonplace.memory.files import raw_memories
from commonplace.memory.files.raw_memories import SessionFiles
from commonplace.memory.store import MemoryStore
from commonplace.memory.workspace import layout
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


async def chains(store: MemoryStore, entries: Sequence[Entry]) -> list[list[Link]]:
    """Return the chain of each entry; whether the words still stand there is not checked."""
    files = await anyio.to_thread.run_sync(raw_memories.session_files, store.root)
    threads = {source.thread_id for entry in entries for source in entry.sources if source.thread_id}
    paths = await _paths(store.home, threads)
    return [[_link(store.root, source, files, paths) for source in entry.sources] for entry in entries]


def _link(root: Path, source: Source, files: dict[str, SessionFiles], paths: dict[str, str]) -> Link:
    if source.note:
        summary, thread, path = None, None, str(root / source.note)
    else:
        thread = source.thread_id
        known = files.get(thread or "")
        summary = f"{layout.SUMMARIES}/{known.summary}" if known is not None else None
        path = paths.get(thread or "") or (known.rollout_path if known is not None else None)
    return Link(
        summary_file=summary,
        thread_id=thread,
        path=path,
        turn=source.turn,
        byte_start=source.byte_start,
        byte_end=source.byte_end,
        quote=source.quote,
    )


async def _paths(home: Home, threads: set[str]) -> dict[str, str]:
    """Return the ledgers of threads, as far as the index knows them."""
    if not home.has_index() or not threads:
        return {}
    root = home.key

    def body(tx: Transaction) -> dict[str, str]:
        if len(threads) > _FEW:
            rows = tx.query("threads.current", home=root)
            return {row["thread_id"]: row["path"] for row in rows if row["thread_id"] in threads}
        found = {key: tx.query("threads.by_id", home=root, thread_id=key) for key in sorted(threads)}
        return {key: lines[0]["path"] for key, lines in found.items() if lines}

    return await (await home.database()).read(body)
