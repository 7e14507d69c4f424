"""Bringing the search index up to date with sessions: what is new comes in, what is gone goes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from commonplace.importers.transcript import SOURCE as TRANSCRIPT
from commonplace.search import index, passages
from commonplace.search.index import NewDocument, Progress
from commonplace.search.rank import analysis
from commonplace.state import postings
from commonplace.state.database import Row, Transaction
from commonplace.state.home import Home
from commonplace.state.postings import DocumentStamp, Shelf

_LARGE: Final = 8 * 2**20
"""Larger files that only grew a little are not indexed again at once."""
_GROWTH: Final = 1.25
"""They are indexed again when they grew by this factor."""
_QUIET_NS: Final = 600 * 10**9
"""A large session that is being written to is read again when it grew by a quarter, or was left alone for so long."""


async def refresh(home: Home, progress: Progress | None = None) -> int:
    """Take in what sessions say that is new; return how many of them there were."""
    root, database = home.key, await home.database()
    now_ns = int(home.now().timestamp() * 1e9)

    def look(tx: Transaction) -> tuple[list[Row], list[str], bool]:
        rows = [row for row in postings.changed_threads(tx, root) if _is_due(row, now_ns)]
        return rows, postings.removed_threads(tx, root), is_outdated(tx, root, "sessions")

    stale, gone, old = await database.read(look)
    if old:
        await database.write(lambda tx: postings.remove_outdated(tx, root, "sessions", analysis.VERSION))
        stale, gone, _ = await database.read(look)
    if gone:
        await database.write(lambda tx: postings.drop(tx, root, "sessions", gone))
        await index.merge_segments(database, root, "sessions")
    if stale:
        await index.add_documents(database, root, "sessions", [_session(row) for row in stale], progress)
    return len(stale)


def is_outdated(tx: Transaction, root: str, shelf: Shelf) -> bool:
    """Say whether a collection was indexed by an older analysis of texts."""
    return any(row["version"] != analysis.VERSION for row in postings.sizes(tx, root, shelf))


def _is_due(row: Row, now_ns: int) -> bool:
    if row["old_size"] is None or row["size"] <= _LARGE or row["size"] < row["old_size"]:
        return True
    return row["size"] > row["old_size"] * _GROWTH or now_ns - row["mtime_ns"] > _QUIET_NS


def _session(row: Row) -> NewDocument:
    read = partial(passages.of_session, Path(row["path"]), dated=row["source"] == TRANSCRIPT)
    return NewDocument(DocumentStamp(row["thread_id"], row["size"], row["mtime_ns"]), read)
