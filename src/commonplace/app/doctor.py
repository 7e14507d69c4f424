"""Whether everything fits together: files against rows, leases against processes; and putting derived state right.

Files are the truth. `repair` rebuilds every row that can be made from them (the thread index from the ledgers, what was
learned from the memory workspace), frees leases of dead processes, and moves a database away that is none. Counters and
budgets cannot be rebuilt; when they are lost, that is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError, StateError
from commonplace.memory.files import raw_memories
from commonplace.projects import assignment
from commonplace.rollout.blobs import BlobStore
from commonplace.state import jobs, outputs
from commonplace.state.database import Database, Transaction
from commonplace.state.outputs import Output
from commonplace.state.sqlite import FILE

if TYPE_CHECKING:
    from commonplace.app.book import Book


class Check(msgspec.Struct):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


class Report(msgspec.Struct):
    """What the doctor found (the JSON of `doctor`)."""

    ok: bool
    checks: list[Check]


async def examine(book: Book, *, repair: bool = False) -> Report:
    """Look at everything, and put right what can be."""
    checks = [_home(book.home, repair=repair), _settings(book), await _sandbox()]
    database, check = await _database(book, repair=repair)
    checks.append(check)
    if database is not None:
        try:
            checks.append(await _index(book, repair=repair))
            checks.append(await _learned(book, database, repair=repair))
            checks.append(await _leases(book, database, repair=repair))
            checks.append(await _blobs(book))
        except CommonplaceError as error:
            checks.append(Check("state", ok=False, detail=error.sentence()))
    return Report(all(check.ok for check in checks), checks)


def _home(home: Path, *, repair: bool) -> Check:
    if not home.exists():
        return Check("home", ok=True, detail=f"{home} does not exist yet")
    open_places = [place for place in (home, *home.iterdir()) if _is_open_to_others(place)]
    if repair:
        for place in open_places:
            place.chmod(0o700 if place.is_dir() else 0o600)
        return Check("home", ok=True, detail=f"{home}; {len(open_places)} made private")
    names = ", ".join(place.name for place in open_places[:5])
    detail = f"others can look into {names}; --repair makes them private" if open_places else str(home)
    return Check("home", ok=not open_places, detail=detail)


async def _sandbox() -> Check:
    """Say how commands are confined here; where they cannot be, a person is asked, and nothing is wrong."""
    from commonplace.agent import sandbox

    level = await anyio.to_thread.run_sync(sandbox.level)
    return Check("sandbox", ok=True, detail=level.detail)


def _is_open_to_others(place: Path) -> bool:
    return not place.is_symlink() and bool(place.stat().st_mode & 0o077)


def _settings(book: Book) -> Check:
    unknown = book.settings.unknown
    if unknown:
        return Check(
            "settings", ok=False, detail=f"config.toml sets what this version does not know: {', '.join(unknown)}"
        )
    return Check("settings", ok=True, detail=f"home from {book.settings.home_source}")


async def _database(book: Book, *, repair: bool) -> tuple[Database | None, Check]:
    """Open the database; a file that is none can be moved away, since it only mirrors files."""
    file = book.home / FILE
    if not book.has_index() and not repair:
        return None, Check("database", ok=True, detail="there is none yet; the first listing makes it")
    note = ""
    try:
        database = await book.open_database()
    except OSError as error:
        return None, Check("database", ok=False, detail=f"{error.filename or file}: {error.strerror}")
    except StateError as error:
        if not repair or book.settings["database"] != "sqlite" or not file.exists():
            return None, Check("database", ok=False, detail=error.sentence())
        for ending in ("", "-wal", "-shm"):
            part = Path(f"{file}{ending}")
            if part.exists():
                part.rename(f"{part}.damaged")
        database = await book.open_database()
        note = f"; the damaged one is {file.name}.damaged, and its counters and budgets are lost"
    if database.read_only:
        await database.close()
        return None, Check("database", ok=False, detail="it was written by a newer version; update Commonplace")
    await database.close()
    return await book.database(), Check("database", ok=True, detail=f"{_where(book)} opens{note}")


def _where(book: Book) -> str:
    address = str(book.settings["database"])
    return str(book.home / FILE) if address == "sqlite" else "postgresql"


async def _index(book: Book, *, repair: bool) -> Check:
    index = await book.index()
    if repair:
        found = await index.refresh(book.home, rebuild=True, complete=True)
        await assignment.settle(book)
        return Check("index", ok=True, detail=f"built again: {found.threads} threads in {found.files} files")
    stale, gone, files = await index.differences(book.home)
    detail = f"{files} files; {stale} changed and {gone} gone since the last listing"
    return Check("index", ok=not stale and not gone, detail=detail)


async def restore_learned(book: Book) -> int:
    """Give a database that does not have them the rows that the workspace's files hold; return how many."""
    stored = await anyio.to_thread.run_sync(raw_memories.read, book.home)
    database = await book.database()
    known = await database.read(lambda tx: {row["thread_id"] for row in tx.query("outputs.ids")})
    missing = [one for one in stored if one.thread_id not in known]
    if missing and not known:
        now = int(book.settings.now().timestamp())
        await database.write(lambda tx: _restore(tx, missing, now, str(book.home.resolve())))
    return len(missing) if not known else 0


async def _learned(book: Book, database: Database, *, repair: bool) -> Check:
    """Compare what the workspace's files hold with the rows; rows that are missing come back from the files."""
    stored = await anyio.to_thread.run_sync(raw_memories.read, book.home)
    known = await database.read(lambda tx: {row["thread_id"] for row in tx.query("outputs.ids")})
    missing = [one for one in stored if one.thread_id not in known]
    if missing and repair:
        now = int(book.settings.now().timestamp())
        await database.write(lambda tx: _restore(tx, missing, now, str(book.home.resolve())))
        return Check("learned", ok=True, detail=f"{len(missing)} extractions restored from the memory workspace")
    detail = f"{len(known)} extractions; {len(missing)} in the workspace have no row"
    return Check("learned", ok=not missing, detail=detail)


def _restore(tx: Transaction, missing: list[raw_memories.StoredInput], now: int, home: str) -> None:
    for one in missing:
        found = Output(one.raw_memory, one.rollout_summary, one.rollout_slug)
        outputs.put(tx, one.thread_id, one.updated_s, found, now=now)
    tx.execute("threads.restore_learned", home=home)


async def _leases(book: Book, database: Database, *, repair: bool) -> Check:
    now = int(book.settings.now().timestamp())
    worker = jobs.this_process()
    if repair:
        freed = await database.write(lambda tx: jobs.free_dead(tx, worker, now))
        return Check("leases", ok=True, detail=f"{freed} leases of dead processes freed")
    held = await database.read(lambda tx: tx.query("jobs.running_on_host", host=worker.host, now=now))
    dead = [row for row in held if jobs.process_start(row["pid"]) != row["process_start"]]
    detail = f"{len(held)} held on this host, {len(dead)} of them by processes that are dead"
    return Check("leases", ok=not dead, detail=detail)


async def _blobs(book: Book) -> Check:
    """Every payload that a ledger refers to must be there."""
    referenced = await (await book.index()).referenced_blobs()
    store = BlobStore(book.home)
    missing = await anyio.to_thread.run_sync(lambda: [name for name in referenced if not store.has(name)])
    detail = f"{len(referenced)} payloads, {len(missing)} missing"
    return Check("blobs", ok=not missing, detail=detail)
