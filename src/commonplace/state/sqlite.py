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
from importlib import resources
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from commonplace.errors import DatabaseBusy, DatabaseNewer, StateError
from commonplace.rollout.folders import make_private
from commonplace.state.database import Row, T, Transaction, queries

FILE: Final = "state.sqlite"
SCHEMA_VERSION: Final = 1
_BUSY_SECONDS: Final = 10.0
_QUERY_FILES: Final = ("threads",)


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._queries = {name: text for file in _QUERY_FILES for name, text in queries(file).items()}

    def query(self, name: str, /, **values: Any) -> list[Row]:
        return [dict(row) for row in self._connection.execute(self._queries[name], values)]

    def execute(self, name: str, /, **values: Any) -> int:
        return self._connection.execute(self._queries[name], values).rowcount

    def execute_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        self._connection.executemany(self._queries[name], rows)


class SqliteDatabase:
    """A database file (or, for a listing that cannot have one, memory)."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.read_only = False
        self._guard = threading.Lock()
        self._connection = self._connect()

    @classmethod
    async def open(cls, path: Path | None) -> SqliteDatabase:
        """Open, and bring the schema up to date.

        Raises:
            StateError: the file cannot be opened or is not a database.
        """
        return await anyio.to_thread.run_sync(cls, path)

    def _connect(self) -> sqlite3.Connection:
        if self.path is not None:
            make_private(self.path.parent)
            os.close(
                os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            )  # so that WAL files are private too
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                self.path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.row_factory = sqlite3.Row
            self._migrate(connection)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise StateError(
                f"The database {self.path} cannot be used: {error}.",
                hint="It only mirrors files: move it away and run `commonplace sessions reindex`.",
            ) from error
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            self.read_only = True
            return
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if version == SCHEMA_VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have been faster
        for number in range(version + 1, SCHEMA_VERSION + 1):
            file = resources.files("commonplace.state.sql").joinpath(f"migration_{number:04}.sql")
            for statement in _statements(file.read_text("utf-8")):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        connection.execute("COMMIT")

    async def read(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that only looks, on one snapshot."""
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
        deadline = time.monotonic() + _BUSY_SECONDS
        pause = 0.005
        while True:
            try:
                with self._guard:
                    return self._once(body, begin)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) and "busy" not in str(error):
                    raise StateError(f"The database {self.path} failed: {error}.", hint="Check the disk.") from error
                if time.monotonic() > deadline:
                    raise DatabaseBusy(
                        f"The database {self.path} is locked by another process.", hint="Try again."
                    ) from error
            except sqlite3.Error as error:
                raise StateError(
                    f"The database {self.path} failed: {error}.",
                    hint="It only mirrors files: move it away and run `commonplace sessions reindex`.",
                ) from error
            time.sleep(pause * (0.5 + random.random()))  # noqa: S311 (jitter, not a secret)
            pause = min(pause * 2, 0.5)

    def _once(self, body: Callable[[Transaction], T], begin: str) -> T:
        self._connection.execute(begin)
        try:
            result = body(_SqliteTransaction(self._connection))
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        return result

    async def close(self) -> None:
        """Close the file."""
        await anyio.to_thread.run_sync(self._connection.close)


def _statements(script: str) -> Iterable[str]:
    """Split a migration into statements; its comments may contain semicolons."""
    code = "\n".join(line.partition("--")[0] for line in script.splitlines())
    return (statement for statement in code.split(";") if statement.strip())
