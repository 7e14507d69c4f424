"""The shared database: PostgreSQL 14 or later, through a small pool of connections.

Everything lives in a schema of its own, `commonplace`, so that a database which holds other things is not in the way. A
transaction that collides with another (deadlock, serialisation) is run again; claims are made one at a time by an
advisory lock, so that caps hold across hosts.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, cast

import anyio.to_thread
import psycopg
from psycopg import errors as pg
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from commonplace.errors import DatabaseBusy, DatabaseNewer, StateError
from commonplace.state.database import LATEST, Row, T, Transaction, migrations, statements

SCHEMA: Final = "commonplace"
_TRIES: Final = 20
_CONNECTIONS: Final = 4
_WAIT_SECONDS: Final = 30.0
_NAMED: Final = re.compile(r"(?<![:\w]):([a-z_][a-z_0-9]*)")

Connection = psycopg.Connection[dict[str, Any]]


@cache
def _text(name: str, filters: tuple[str, ...] = ()) -> str:
    """Return a query with the driver's kind of placeholders."""
    text = statements()[name].render(filters, skip_locked="FOR UPDATE OF threads SKIP LOCKED")
    return _NAMED.sub(r"%(\1)s", text.replace("%", "%%"))


class _PostgresTransaction:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def query(self, name: str, /, *filters: str, **values: Any) -> list[Row]:
        return list(self._connection.execute(cast("Any", _text(name, filters)), values).fetchall())

    def execute(self, name: str, /, **values: Any) -> int:
        return self._connection.execute(cast("Any", _text(name)), values).rowcount

    def execute_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(cast("Any", _text(name)), rows)

    def serialise(self, name: str, /) -> None:
        key = zlib.crc32(f"{SCHEMA}.{name}".encode())
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (key,))


class PostgresDatabase:
    """A database on a server."""

    def __init__(self, address: str) -> None:
        self.read_only = False
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address,
            min_size=0,
            max_size=_CONNECTIONS,
            open=False,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_WAIT_SECONDS,
            connection_class=cast("type[Connection]", psycopg.Connection),
            kwargs={"row_factory": dict_row, "connect_timeout": 5, "application_name": "commonplace"},
            configure=_configure,
        )

    @classmethod
    async def open(cls, address: str) -> PostgresDatabase:
        """Connect, and bring the schema up to date.

        Raises:
            StateError: the server cannot be reached, or does not let us in.
        """
        database = cls(address)
        await anyio.to_thread.run_sync(database._open, address)
        return database

    def _open(self, address: str) -> None:
        try:
            with psycopg.connect(address, connect_timeout=5) as connection:  # fails at once, unlike a pool
                self._migrate(connection)
            self._pool.open()
        except psycopg.Error as error:
            raise _unusable(error) from error

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (zlib.crc32(b"commonplace.migrations"),))
        connection.execute("CREATE SCHEMA IF NOT EXISTS commonplace")
        connection.execute("SET LOCAL search_path TO commonplace")
        connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
        row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
        version = (row and row[0]) or 0
        if version > LATEST:
            self.read_only = True
            return
        for migration in migrations(version):
            for statement in migration:
                connection.execute(cast("Any", statement))
        if version < LATEST:
            connection.execute("DELETE FROM schema_version")
            connection.execute("INSERT INTO schema_version VALUES (%s)", (LATEST,))

    async def read(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that only looks, on one snapshot."""
        return await anyio.to_thread.run_sync(self._run, body)

    async def write(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that changes rows, in one transaction.

        Raises:
            DatabaseBusy: other transactions were in the way every time.
            DatabaseNewer: the schema is newer than this program.
        """
        if self.read_only:
            raise DatabaseNewer("The database was written by a newer version.", hint="Update Commonplace.")
        return await anyio.to_thread.run_sync(self._run, body)

    def _run(self, body: Callable[[Transaction], T]) -> T:
        try:
            for _ in range(_TRIES):
                try:
                    with self._pool.connection() as connection, connection.transaction():
                        return body(_PostgresTransaction(connection))
                except (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable):
                    continue
        except (psycopg.Error, PoolTimeout) as error:
            raise _unusable(error) from error
        raise DatabaseBusy("The database is busy.", hint="Try again.")

    async def close(self) -> None:
        """Close every connection."""
        await anyio.to_thread.run_sync(self._pool.close)


def _configure(connection: Connection) -> None:
    connection.execute("SET search_path TO commonplace")
    connection.commit()


def _unusable(error: Exception) -> StateError:
    reason = " ".join(str(error).split())
    return StateError(
        f"The PostgreSQL database cannot be used: {reason}.",
        hint="Check `database` in config.toml; sessions are not affected.",
    )
