"""The embedded database: one SQLite file in WAL mode, nothing to install.

Writes are short immediate transactions; when another process holds the write lock they are tried again with growing,
jittered pauses and then fail with `DatabaseBusy`. A file written by a newer program is opened for reading only.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from commonplace.errors import DatabaseBusy, DatabaseNewer, StateError
from commonplace.rollout.private_folders import make_private
from commonplace.state.database import LATEST, Row, T, Transaction, statements, upgrade

BUSY_SECONDS: Final = 10.0
"""How long a transaction waits for another process."""
_FIRST_PAUSE: Final = 0.001
"""The first pause between two tries, in seconds; pauses grow from here."""
_LONGEST_PAUSE: Final = 0.02
"""The longest pause between two tries: transactions are short, so waiting processes try often."""


@cache
def rendered(name: str, filters: tuple[str, ...] = ()) -> str:
    """Return a query as this driver sends it."""
    return statements()[name].render(filters, skip_locked="")


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def query(self, name: str, /, *filters: str, **values: Any) -> list[Row]:
        return [dict(row) for row in self._connection.execute(rendered(name, filters), values)]

    def execute(self, name: str, /, **values: Any) -> int:
        return self._connection.execute(rendered(name), values).rowcount

    def execute_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        self._connection.executemany(rendered(name), rows)

    def serialise(self, name: str, /) -> None:
        """Do nothing: an immediate transaction is the only one that writes."""


class SqliteDatabase:
    """A SQLite database in a file, or in memory for a listing that cannot have a file."""

    def __init__(self, path: Path | None, patience: float = BUSY_SECONDS) -> None:
        self.path = path
        self.read_only = False
        self._patience = patience
        self._guard = threading.Lock()
        self._connection = self._connect()

    @classmethod
    async def open(cls, path: Path | None, *, patience: float = BUSY_SECONDS) -> SqliteDatabase:
        """Open the database and migrate its schema; `patience` is how long it waits for another process.

        Raises:
            StateError: the file cannot be opened or is not a database.
        """
        return await anyio.to_thread.run_sync(cls, path, patience)

    def _connect(self) -> sqlite3.Connection:
        if self.path is not None:
            make_private(self.path.parent)
            os.close(
                os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            )  # so that WAL files are private too
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                self.path or ":memory:", timeout=0, isolation_level=None, check_same_thread=False
            )  # SQLite's own waiting is coarse and unfair, and it does not wait for a change to WAL: `_patiently` does
            connection.row_factory = sqlite3.Row
            _patiently(partial(self._migrate, connection), self._patience)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise self._error(error, "cannot be used") from error
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > LATEST:
            self.read_only = True
            connection.execute("PRAGMA query_only = ON")
            return
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if version == LATEST:
            return
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have been faster
        for statement in upgrade(version):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {LATEST:d}")
        connection.execute("COMMIT")

    async def read(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that only reads, on one snapshot."""
        return await anyio.to_thread.run_sync(self._run, body, "BEGIN")

    async def write(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that changes rows, in one transaction.

        Raises:
            DatabaseBusy: another process kept the write lock.
            DatabaseNewer: the schema is newer than this program.
        """
        if self.read_only:
            raise DatabaseNewer(f"{self.path} was written by a newer version.", hint="Update Commonplace.")
        return await anyio.to_thread.run_sync(self._run, body, "BEGIN IMMEDIATE")

    def _run(self, body: Callable[[Transaction], T], begin: str) -> T:
        try:
            return _patiently(partial(self._once, body, begin), self._patience)
        except sqlite3.Error as error:
            raise self._error(error, "failed") from error

    def _once(self, body: Callable[[Transaction], T], begin: str) -> T:
        with self._guard:
            self._connection.execute(begin)
            try:
                result = body(_SqliteTransaction(self._connection))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # some errors have ended it already
                    self._connection.execute("ROLLBACK")
                raise
            return result

    def wait_longer(self, seconds: float) -> None:
        """Let transactions wait for other processes for so long."""
        self._patience = seconds

    async def scrub(self) -> None:
        """Write the file anew with what is still there, so that free pages and the log hold nothing that was deleted.

        Raises:
            DatabaseBusy: another process kept reading or writing.
        """
        await anyio.to_thread.run_sync(self._scrub)

    def _scrub(self) -> None:
        try:
            _patiently(self._rewrite, self._patience)
        except sqlite3.Error as error:
            raise self._error(error, "failed") from error

    def _rewrite(self) -> None:
        with self._guard:
            self._connection.execute("PRAGMA temp_store = MEMORY")  # the copy must not be left in a temporary file
            self._connection.execute("VACUUM")
            is_busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            if is_busy:
                raise sqlite3.OperationalError("the log is locked by a reader")

    def _error(self, error: sqlite3.Error, what: str) -> StateError:
        if _is_locked(error):
            return DatabaseBusy(f"The database {self.path} is locked by another process.", hint="Try again.")
        hint = "It only mirrors files: move it away and run `commonplace sessions reindex`."
        if what == "failed" and isinstance(error, sqlite3.OperationalError):
            hint = "Check the disk."
        return StateError(f"The database {self.path} {what}: {error}.", hint=hint)

    async def close(self) -> None:
        """Close the file, when nobody uses it."""
        await anyio.to_thread.run_sync(self._close)

    def _close(self) -> None:
        with self._guard:  # closing it under a query of another thread ends the process
            self._connection.close()


def _is_locked(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))


def _patiently(action: Callable[[], T], patience: float) -> T:
    """Call a function that changes nothing when it fails; call it again while another process holds the file locked."""
    deadline = time.monotonic() + patience
    pause = _FIRST_PAUSE
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not _is_locked(error) or time.monotonic() > deadline:
                raise
        time.sleep(pause * (0.5 + random.random()))  # noqa: S311 (jitter, not a secret)
        pause = min(pause * 2, _LONGEST_PAUSE)
