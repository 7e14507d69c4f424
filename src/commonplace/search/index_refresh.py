"""Bringing what is searched up to date with sessions and memory: what is new comes in, what is gone goes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from commonplace.importers.transcript import SOURCE as TRANSCRIPT
from commonplace.memory import listing, search_documents
from commonplace.memory.workspace import layout
from commonplace.search import index, passages
from commonplace.search.index import Item, Progress
from commonplace.search.rank import analysis
from commonplace.state import postings
from commonplace.state.database import Row, Transaction
from commonplace.state.postings import Shelf, Stamp

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.memory.listing import Known

_LARGE: Final = 8 * 2**20
_GROWTH: Final = 1.25
_QUIET_NS: Final = 600 * 10**9
"""A large session that is being written to is read again when it grew by a quarter, or was left alone for so long."""


async def sessions(book: Book, progress: Progress | None = None) -> int:
    """Take in what sessions say that is new; return how many of them there were."""
    root, database = str(book.home.resolve()), await book.database()
    now_ns = int(book.settings.now().timestamp() * 1e9)

    def look(tx: Transaction) -> tuple[list[Row], list[str], bool]:
        rows = [row for row in postings.stale(tx, root) if _is_due(row, now_ns)]
        return rows, postings.gone(tx, root), _is_outdated(tx, root, "sessions")

    stale, gone, old = await database.read(look)
    if old:
        await database.write(lambda tx: postings.outdated(tx, root, "sessions", analysis.VERSION))
        stale, gone, _ = await database.read(look)
    if gone:
        await database.write(lambda tx: postings.drop(tx, root, "sessions", gone))
        await index.tidy(database, root, "sessions")
    if stale:
        await index.take_in(database, root, "sessions", [_session(row) for row in stale], progress)
    return len(stale)


def _is_outdated(tx: Transaction, root: str, shelf: Shelf) -> bool:
    return any(row["version"] != analysis.VERSION for row in postings.sizes(tx, root, shelf))


def _is_due(row: Row, now_ns: int) -> bool:
    if row["old_size"] is None or row["size"] <= _LARGE or row["size"] < row["old_size"]:
        return True
    return row["size"] > row["old_size"] * _GROWTH or now_ns - row["mtime_ns"] > _QUIET_NS


def _session(row: Row) -> Item:
    read = partial(passages.of_session, Path(row["path"]), dated=row["source"] == TRANSCRIPT)
    return Item(Stamp(row["thread_id"], row["size"], row["mtime_ns"]), read)


async def memory(book: Book, known: list[Known]) -> int:
    """Take in what the memory holds that is new; return how many entries and summaries there were."""
    root, database = str(book.home.resolve()), await book.database()
    if await database.read(lambda tx: _is_outdated(tx, root, "memory")):
        await database.write(lambda tx: postings.outdated(tx, root, "memory", analysis.VERSION))
    before = await database.read(lambda tx: postings.stamps(tx, root, "memory"))
    wanted = await anyio.to_thread.run_sync(_wanted, book.home / layout.FOLDER, known, before)
    gone = sorted(before.keys() - wanted.keys())
    if gone:
        await database.write(lambda tx: postings.drop(tx, root, "memory", gone))
    fresh = [item for name, item in wanted.items() if before.get(name) != item.stamp]
    if fresh:
        await index.take_in(database, root, "memory", fresh)
    elif gone:
        await index.tidy(database, root, "memory")
    return len(fresh)


def _wanted(root: Path, known: list[Known], before: dict[str, Stamp]) -> dict[str, Item]:
    """Return everything of the memory that is searched, by name."""
    found: dict[str, Item] = {}
    for each in known:
        entry = each.entry
        text = search_documents.digest(entry.text, *(source.quote for source in entry.sources))
        stamp = Stamp(f"{search_documents.ENTRY}:{entry.id}", entry.last_seen_s, text)
        found[stamp.document] = Item(stamp, partial(search_documents.of_entry, entry), entry.id, search_documents.ENTRY)
    for name, place, size, mtime_ns in search_documents.summaries(root):
        stamp = Stamp(name, size, mtime_ns)
        thread = "" if before.get(name) == stamp else search_documents.thread_of(place)
        found[name] = Item(stamp, partial(search_documents.of_summary, place), thread, search_documents.SUMMARY)
    return found


async def everything(book: Book, progress: Progress | None = None) -> None:
    """Bring listing, sessions and memory up to date, so that the next question need not."""
    await (await book.index()).refresh(book.home)
    await sessions(book, progress)
    await memory(book, await listing.known(book))
