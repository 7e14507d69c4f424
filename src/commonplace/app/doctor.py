"""The doctor: compares files with rows and leases with processes, and repairs derived state.

Files are the truth. `repair` rebuilds every row that can be made from them (the thread index from the ledgers, outputs
and entries from the memory workspace), frees leases of dead processes, and moves a damaged database file away. Counters
and budgets cannot be rebuilt; the report says when they are lost.
"""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import msgspec

from commonplace.agent import sandbox
from commonplace.errors import CommonplaceError, StateError
from commonplace.memory.restore import missing_outputs, store_outputs
from commonplace.projects import assignment
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.store.upload_notes import FILE, NAME_FILE
from commonplace.rollout.store.uploads import Pending
from commonplace.state import jobs
from commonplace.state.database import SQLITE_FILE, Database
from commonplace.state.home import Home


class Check(msgspec.Struct):
    """The result of one check."""

    name: str
    ok: bool
    detail: str


class DoctorReport(msgspec.Struct):
    """What the doctor found (the JSON of `doctor`)."""

    ok: bool
    checks: list[Check]


async def examine(home: Home, *, repair: bool = False) -> DoctorReport:
    """Run every check, and repair what can be repaired if `repair` is set."""
    checks = [_home_folder(home.path, repair=repair), _settings(home), await _sandbox()]
    database, check = await _database(home, repair=repair)
    checks.append(check)
    if home.settings.ledger is not None:
        checks.append(await _uploads(home, repair=repair))
    if database is not None:
        try:
            checks.append(await _index(home, repair=repair))
            checks.append(await _learned(home, repair=repair))
            checks.append(await _leases(home, database, repair=repair))
            checks.append(await _blobs(home))
        except CommonplaceError as error:
            checks.append(Check("state", ok=False, detail=error.sentence()))
    return DoctorReport(all(check.ok for check in checks), checks)


def _home_folder(home: Path, *, repair: bool) -> Check:
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
    level = await anyio.to_thread.run_sync(sandbox.detect)
    return Check("sandbox", ok=True, detail=level.detail)


def _is_open_to_others(place: Path) -> bool:
    return not place.is_symlink() and bool(place.stat().st_mode & 0o077)


def _settings(home: Home) -> Check:
    unknown = home.settings.unknown
    if unknown:
        return Check(
            "settings", ok=False, detail=f"config.toml sets what this version does not know: {', '.join(unknown)}"
        )
    return Check("settings", ok=True, detail=f"home from {home.settings.home_source}")


async def _database(home: Home, *, repair: bool) -> tuple[Database | None, Check]:
    """Open the database; a file that is none can be moved away, since it only mirrors files."""
    file = home.path / SQLITE_FILE
    if not home.has_index() and not repair:
        return None, Check("database", ok=True, detail="there is none yet; the first listing makes it")
    note = ""
    try:
        database = await home.open_database()
    except OSError as error:
        return None, Check("database", ok=False, detail=f"{error.filename or file}: {error.strerror}")
    except StateError as error:
        if not repair or home.settings.database != "sqlite" or not file.exists():
            return None, Check("database", ok=False, detail=error.sentence())
        for ending in ("", "-wal", "-shm"):
            part = Path(f"{file}{ending}")
            if part.exists():
                part.rename(f"{part}.damaged")
        database = await home.open_database()
        note = f"; the damaged one is {file.name}.damaged, and its counters and budgets are lost"
    if database.read_only:
        await database.close()
        return None, Check("database", ok=False, detail="it was written by a newer version; update Commonplace")
    await database.close()
    return await home.database(), Check("database", ok=True, detail=f"{_where(home)} opens{note}")


def _where(home: Home) -> str:
    address = home.settings.database
    return str(home.path / SQLITE_FILE) if address == "sqlite" else "postgresql"


async def _index(home: Home, *, repair: bool) -> Check:
    index = await home.index()
    if repair:
        found = await index.refresh(home.path, rebuild=True, complete=True)
        await assignment.settle(home)
        return Check("index", ok=True, detail=f"built again: {found.threads} threads in {found.files} files")
    stale, gone, files = await index.differences(home.path)
    detail = f"{files} files; {stale} changed and {gone} gone since the last listing"
    return Check("index", ok=not stale and not gone, detail=detail)


async def _learned(home: Home, *, repair: bool) -> Check:
    """Compare what the memory's files hold with the rows; rows that are missing come back from the files."""
    missing, known = await missing_outputs(home)
    if missing and repair:
        await store_outputs(home, missing)
        return Check("learned", ok=True, detail=f"{len(missing)} extractions restored from the memory workspace")
    detail = f"{known} extractions; {len(missing)} in the workspace have no row"
    return Check("learned", ok=not missing, detail=detail)


async def _leases(home: Home, database: Database, *, repair: bool) -> Check:
    now = home.now_s()
    worker = home.worker()
    if repair:
        freed = await database.write(lambda tx: jobs.free_dead(tx, worker, now))
        return Check("leases", ok=True, detail=f"{freed} leases of dead processes freed")
    held = await database.read(lambda tx: tx.query("jobs.running_on_host", host=worker.host, now=now))
    dead = [row for row in held if jobs.process_start(row["pid"]) != row["process_start"]]
    detail = f"{len(held)} held on this host, {len(dead)} of them by processes that are dead"
    return Check("leases", ok=not dead, detail=detail)


async def _blobs(home: Home) -> Check:
    """Check that every payload which a ledger refers to exists."""
    referenced = await (await home.index()).referenced_blobs(home.path)
    store = BlobStore(home.path)
    missing = await anyio.to_thread.run_sync(lambda: [name for name in referenced if not store.has(name)])
    detail = f"{len(referenced)} payloads, {len(missing)} missing"
    return Check("blobs", ok=not missing, detail=detail)


async def _uploads(home: Home, *, repair: bool) -> Check:
    """Say what the store of ledgers does not have yet; `repair` compares every file with it, and uploads."""
    try:
        store = home.ledger_store()
        assert store is not None
        if repair:
            await anyio.to_thread.run_sync(lambda: store.uploads.sweep(check=True))
        left: Pending = await anyio.to_thread.run_sync(store.uploads.pending)
    except CommonplaceError as error:
        return Check("uploads", ok=False, detail=error.sentence())
    detail = f"{left.files} session files; {left.waiting} not in the store as they are here ({left.bytes} bytes)"
    if left.conflicts:
        where = home.path / NAME_FILE
        detail += (
            f"; {left.conflicts} differ there, because another home has this one's name: remove {where} and {FILE}"
        )
    return Check("uploads", ok=not left.waiting and not left.conflicts, detail=detail)


async def last_learning(home: Home) -> int | None:
    """Return when the memory was last brought up to date, in seconds; None if that is not known."""
    if not home.has_index():
        return None
    try:
        key, database = home.memory_key, await home.database()
        row = await database.read(lambda tx: jobs.get(tx, jobs.CONSOLIDATION, key))
    except StateError:
        return None
    return row["finished_at"] if row is not None else None
