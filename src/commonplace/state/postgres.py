"""The shared database: PostgreSQL 14 or later, through a few connections that are opened when needed.

Everything is in the schema `commonplace`, so that a database can hold other things. Each memory root has a schema of
its own (`commonplace_acme`), so that no query of one memory can meet a row of another. A transaction that collides with
another (deadlock, serialisation failure), or that loses its connection before the commit, is run again; an advisory
lock makes claims one at a time, so that limits hold across hosts.

A transaction connects in its own thread, not through a pool that connects in the background: if the server is gone, the
error comes at once and names the reason.
"""

from __future__ import annotations

import hashlib
import random
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, LiteralString, cast

import anyio
import anyio.to_thread
import psycopg
from psycopg import IsolationLevel, sql
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from commonplace.errors import DatabaseBusy, DatabaseNewer, StateError
from commonplace.patterns import regex
from commonplace.state.database import LATEST, Row, T, Transaction, statements, upgrade

SCHEMA: Final = "commonplace"
_MAX_NAME: Final = 63
"""The server cuts longer names."""
_TRIES: Final = 20
"""How often a transaction that collides is run again."""
_CONNECTIONS: Final = 4
"""How many connections one process opens."""
_LOCK_SECONDS: Final = 30.0
"""How long a transaction waits for rows or claims that another one holds."""
_IDLE_SECONDS: Final = 60
"""The server ends a transaction whose process stands still for this long, which releases its locks."""
_CONNECTION: Final = {
    "application_name": "commonplace",
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Unless the address says otherwise. A connection whose network is gone breaks after a minute, not after hours."""
_NAMED: Final = regex(r"(?<![:\w]):([a-z_][a-z_0-9]*)")

Connection = psycopg.Connection[dict[str, Any]]


@cache
def rendered(name: str, filters: tuple[str, ...] = ()) -> str:
    """Return a query with the driver's kind of placeholders."""
    text = statements()[name].render(filters, skip_locked="FOR UPDATE OF threads SKIP LOCKED")
    return _NAMED.sub(r"%(\1)s", text.replace("%", "%%"))


class _ConnectionLost(Exception):
    """The connection broke before the transaction was told to commit, so nothing was changed."""


def _storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the one character that text in PostgreSQL cannot hold."""
    return {key: value.replace("\0", "\ufffd") if isinstance(value, str) else value for key, value in values.items()}


class _PostgresTransaction:
    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def query(self, name: str, /, *filters: str, **values: Any) -> list[Row]:
        return list(self._connection.execute(cast("Any", rendered(name, filters)), _storable(values)).fetchall())

    def execute(self, name: str, /, **values: Any) -> int:
        return self._connection.execute(cast("Any", rendered(name)), _storable(values)).rowcount

    def execute_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(cast("Any", rendered(name)), [_storable(row) for row in rows])
        # The driver sends rows as a pipeline; the server forgets then that it ends transactions that stand still.
        self._connection.execute("SELECT 1")

    def serialise(self, name: str, /) -> None:
        key = zlib.crc32(f"{self._schema}.{name}".encode())
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (key,))


class PostgresDatabase:
    """The tables of one memory, or of all homes that share none, on a server: a schema of their own."""

    def __init__(self, address: str, schema: str) -> None:
        self.schema = schema
        self.read_only = False
        self._address = address
        self._idle: list[Connection] = []
        self._limiter = anyio.CapacityLimiter(_CONNECTIONS)

    @classmethod
    async def open(cls, address: str, memory_root: str | None = None) -> PostgresDatabase:
        """Connect, and bring the schema up to date; each memory root has a schema of its own.

        Raises:
            StateError: the server cannot be reached, or does not let us in.
        """
        database = cls(address, schema_of(memory_root))
        await anyio.to_thread.run_sync(database._open)
        return database

    def _open(self) -> None:
        try:
            connection = self._connect()
            self._idle.append(connection)
            with connection.transaction():
                self._migrate(connection)
        except psycopg.Error as error:
            self._disconnect()
            raise self._unusable(error) from error

    def _connect(self) -> Connection:
        values = {**_CONNECTION, **conninfo_to_dict(self._address)}
        connection = Connection.connect(make_conninfo("", **values), autocommit=True, row_factory=dict_row)
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.schema)))
        for name, seconds in (("lock_timeout", _LOCK_SECONDS), ("idle_in_transaction_session_timeout", _IDLE_SECONDS)):
            connection.execute("SELECT set_config(%s, %s, false)", (name, f"{seconds * 1000:.0f}ms"))
        return connection

    def _migrate(self, connection: Connection) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (zlib.crc32(f"{self.schema}.migrations".encode()),))
        if _first(connection, "SELECT to_regclass('schema_version')") is None:
            if _first(connection, "SELECT to_regnamespace(%s)", f'"{self.schema}"') is None:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
            connection.execute("CREATE TABLE schema_version (version BIGINT NOT NULL)")
        version = _first(connection, "SELECT max(version) FROM schema_version") or 0
        if version > LATEST:
            self.read_only = True
            return
        if version < LATEST:
            for statement in upgrade(version):
                connection.execute(cast("Any", statement))
            connection.execute("DELETE FROM schema_version")
            connection.execute("INSERT INTO schema_version VALUES (%s)", (LATEST,))

    async def read(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that only reads, on one snapshot."""
        return await anyio.to_thread.run_sync(self._run, body, True, limiter=self._limiter)

    async def write(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that changes rows, in one transaction.

        Raises:
            DatabaseBusy: other transactions were in the way for too long, or every time.
            DatabaseNewer: the schema is newer than this program.
        """
        if self.read_only:
            raise DatabaseNewer("The database was written by a newer version.", hint="Update Commonplace.")
        return await anyio.to_thread.run_sync(self._run, body, False, limiter=self._limiter)

    def _run(self, body: Callable[[Transaction], T], looking: bool) -> T:
        for _ in range(_TRIES):
            try:
                return self._once(body, looking)
            except (pg.DeadlockDetected, pg.SerializationFailure, _ConnectionLost):
                time.sleep(0.05 * random.random())  # noqa: S311 (so that the same two do not meet again)
            except pg.LockNotAvailable:
                break
            except psycopg.Error as error:
                raise self._unusable(error) from error
        raise DatabaseBusy("The database is busy.", hint="Try again.")

    def _once(self, body: Callable[[Transaction], T], looking: bool) -> T:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        may_be_committed = False
        try:
            connection.read_only = looking
            connection.isolation_level = IsolationLevel.REPEATABLE_READ if looking else None
            with connection.transaction():
                result = body(_PostgresTransaction(connection, self.schema))
                may_be_committed = True
        except psycopg.Error as error:
            if connection.broken and not may_be_committed:
                raise _ConnectionLost from error
            raise
        finally:
            if not connection.closed:
                self._idle.append(connection)
        return result

    def wait_longer(self, seconds: float) -> None:
        """Do nothing: the server says how long, and it is long."""

    async def scrub(self) -> None:
        """Free the space of rows that were deleted or changed."""
        await anyio.to_thread.run_sync(self._scrub, limiter=self._limiter)

    def _scrub(self) -> None:
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            connection.read_only, connection.isolation_level = None, None
            connection.execute("VACUUM outputs, entries, threads, entry_usage, shared_contents")
        except psycopg.Error as error:
            raise self._unusable(error) from error
        finally:
            if not connection.closed:
                self._idle.append(connection)

    async def close(self) -> None:
        """Close every connection."""
        await anyio.to_thread.run_sync(self._disconnect)

    def _disconnect(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _unusable(self, error: psycopg.Error) -> StateError:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        is_unparsed = isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None
        if is_unparsed or self._address.count("@") > 1:  # what the driver says then shows parts of the password
            reason = "its address is not understood"
        return StateError(
            f"The PostgreSQL database cannot be used: {reason}.",
            hint="Check `database` in config.toml; sessions are not affected.",
        )


def schema_of(memory_root: str | None) -> str:
    """Return the schema of a memory root; a long name is cut and told apart by a hash."""
    if memory_root is None:
        return SCHEMA
    name = f"{SCHEMA}_{memory_root}"
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 17]}_{digest}"


def _first(connection: Connection, query: LiteralString, *values: str) -> Any:
    """Return the first value of the first row."""
    row = connection.execute(query, values or None).fetchone()
    return next(iter(row.values())) if row else None
