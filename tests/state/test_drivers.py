"""Both drivers: transactions, collisions, lost connections, values of any kind, and errors that say what is wrong."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from rows import Rows

from commonplace.errors import DatabaseBusy, StateError
from commonplace.state import database as queries
from commonplace.state import postgres as driver
from commonplace.state import sqlite
from commonplace.state.database import Database, Statement, Transaction
from commonplace.state.postgres import PostgresDatabase
from commonplace.state.sqlite import SqliteDatabase

EXTRA = {
    "test.blobs": "SELECT sha256, path FROM blob_refs ORDER BY sha256, path",
    "test.literal": "SELECT sha256 FROM blob_refs WHERE sha256 LIKE '100%' AND path = :path",
    "test.pid": "SELECT pg_backend_pid() AS pid",
    "test.repeatable": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "test.or_rollback": "INSERT OR ROLLBACK INTO blob_refs (sha256, path) VALUES ('a', 'p')",
    "test.no_more_pages": "PRAGMA max_page_count = 1",
    "test.more_pages": "PRAGMA max_page_count = 100000",
    "test.nonsense": "SELECT x FROM nowhere",
}


@pytest.fixture(autouse=True)
def extra_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in EXTRA.items():
        monkeypatch.setitem(queries.statements(), name, Statement(text, {}))


@pytest.fixture
async def server(postgres: str) -> AsyncIterator[PostgresDatabase]:
    """An open database on a server."""
    database = await PostgresDatabase.open(postgres)
    yield database
    await database.close()


def put(tx: Transaction, name: str, path: str = "p") -> int:
    return tx.execute("blobs.put", sha256=name, path=path)


def names(tx: Transaction) -> list[str]:
    return [row["sha256"] for row in tx.query("test.blobs")]


# Transactions.


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
async def test_a_transaction_happens_whole_or_not_at_all(database: Database, error: type[BaseException]) -> None:
    def body(tx: Transaction) -> None:
        put(tx, "a")
        tx.execute_many("blobs.put", [{"sha256": "b", "path": "p"}, {"sha256": "c", "path": "p"}])
        raise error("stop")

    with pytest.raises(error, match="stop"):
        await database.write(body)
    await database.write(lambda tx: put(tx, "after"))

    assert await database.read(names) == ["after"]


async def test_a_statement_that_fails_undoes_what_came_before_it(database: Database) -> None:
    def body(tx: Transaction) -> None:
        put(tx, "a")
        tx.query("test.nonsense")

    with pytest.raises(StateError) as caught:
        await database.write(body)

    assert "nowhere" in caught.value.message
    assert await database.read(names) == []


async def test_a_transaction_sees_what_it_wrote(database: Database) -> None:
    assert await database.write(lambda tx: (put(tx, "a"), put(tx, "a"), names(tx))) == (1, 0, ["a"])


def put_b(tx: Transaction) -> int:
    return put(tx, "b")


async def test_a_read_is_one_snapshot_whatever_others_write_meanwhile(
    database: Database, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if isinstance(database, PostgresDatabase):
        other: Database = await PostgresDatabase.open(request.getfixturevalue("postgres_server"))
    else:
        other = await SqliteDatabase.open(tmp_path / "state.sqlite")
    await database.write(lambda tx: put(tx, "a"))

    def body(tx: Transaction) -> tuple[list[str], list[str]]:
        before = names(tx)
        anyio.from_thread.run(other.write, put_b)
        return before, names(tx)

    seen = await database.read(body)
    await other.close()

    assert seen == (["a"], ["a"])
    assert await database.read(names) == ["a", "b"]


async def test_many_tasks_use_one_database_at_the_same_time(database: Database) -> None:
    async def work(number: int) -> None:
        await database.write(lambda tx: put(tx, f"{number:02}"))
        await database.read(names)

    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(work, number)

    assert await database.read(names) == [f"{number:02}" for number in range(30)]


# Values.

TEXTS = [
    "",
    "'; DROP TABLE jobs; --",
    "100% of :name %(name)s %s %% $1 ?1 ? @x {filters} {skip_locked}",
    "\"double\" 'single' `back` \\ \\' \\x00",
    "naïve 日本語 🚀 \u202e \ufeff \u0001",
    "lines\r\n\tand tabs\n",
    "NULL",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_values_are_bound_and_come_back(database: Database, text: str) -> None:
    await database.write(lambda tx: put(tx, text, path=text))
    await database.write(lambda tx: tx.execute_many("blobs.put", [{"sha256": "many", "path": text}]))

    found = await database.read(lambda tx: tx.query("test.blobs"))
    dropped = await database.write(lambda tx: tx.execute("blobs.drop", path=text))

    assert sorted(row["sha256"] for row in found) == sorted([text, "many"])
    assert {row["path"] for row in found} == {text}
    assert dropped == 2


async def test_a_query_may_contain_a_percent_sign_beside_values(database: Database) -> None:
    await database.write(lambda tx: (put(tx, "100 percent"), put(tx, "1000"), put(tx, "99")))

    found = await database.read(lambda tx: tx.query("test.literal", path="p"))

    assert sorted(row["sha256"] for row in found) == ["100 percent", "1000"]


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**63 - 1, -(2**63), None])
async def test_numbers_of_64_bits_and_nothing_come_back(rows: Rows, number: int | None) -> None:
    await rows.job("a", pid=number)

    row = await rows.job_row("a")

    assert row is not None
    assert row["pid"] == number


async def test_a_text_with_a_nul_stops_nothing(database: Database) -> None:
    await database.write(lambda tx: put(tx, "a\0b"))
    await database.write(lambda tx: tx.execute_many("blobs.put", [{"sha256": "c\0d", "path": "p"}]))

    expected = ["a\ufffdb", "c\ufffdd"] if isinstance(database, PostgresDatabase) else ["a\0b", "c\0d"]
    assert await database.read(names) == expected


async def test_no_rows_are_no_work(database: Database) -> None:
    await database.write(lambda tx: tx.execute_many("blobs.put", []))
    await database.write(lambda tx: tx.execute_many("blobs.put", (row for row in [{"sha256": "a", "path": "p"}])))

    assert await database.read(names) == ["a"]


async def test_how_many_rows_changed_is_said(database: Database) -> None:
    await database.write(lambda tx: (put(tx, "a"), put(tx, "b"), put(tx, "c", path="q")))

    assert await database.write(lambda tx: tx.execute("blobs.drop", path="p")) == 2
    assert await database.write(lambda tx: tx.execute("blobs.drop", path="p")) == 0


# Collisions.


async def test_a_locked_file_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = await SqliteDatabase.open(tmp_path / "x.sqlite", patience=60.0)
    other = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            other.execute("COMMIT")

    monkeypatch.setattr(sqlite, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    changed = await database.write(lambda tx: put(tx, "a"))
    other.close()
    await database.close()

    assert changed == 1
    assert len(pauses) == 3


async def test_a_full_disk_is_a_clear_error_and_what_comes_after_it_works(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "x.sqlite")
    await database.write(lambda tx: tx.query("test.no_more_pages"))

    with pytest.raises(StateError, match="full"):
        await database.write(lambda tx: [put(tx, str(number), path="x" * 4000) for number in range(50)])
    await database.write(lambda tx: tx.query("test.more_pages"))
    await database.write(lambda tx: put(tx, "a"))

    assert await database.read(names) == ["a"]
    await database.close()


async def test_what_went_wrong_is_said_even_when_sqlite_has_ended_the_transaction_itself(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "x.sqlite")

    with pytest.raises(StateError, match="UNIQUE"):
        await database.write(lambda tx: (put(tx, "a"), tx.execute("test.or_rollback")))

    assert await database.read(names) == []
    await database.close()


async def test_a_deadlock_is_tried_again_until_both_are_done(server: PostgresDatabase) -> None:
    barrier = threading.Barrier(2)
    runs: list[str] = []

    def spending(first: str, second: str) -> Callable[[Transaction], None]:
        def body(tx: Transaction) -> None:
            runs.append(first)
            tx.execute("budget.spend", day="d", kind=first, requests=1, tokens=0, millis=0)
            if runs.count(first) == 1:
                barrier.wait(60)
            tx.execute("budget.spend", day="d", kind=second, requests=1, tokens=0, millis=0)

        return body

    for kind in ("a", "b"):
        await server.write(
            lambda tx, kind=kind: tx.execute("budget.spend", day="d", kind=kind, requests=0, tokens=0, millis=0)
        )
    async with anyio.create_task_group() as group:
        group.start_soon(server.write, spending("a", "b"))
        group.start_soon(server.write, spending("b", "a"))

    spent = await server.read(lambda tx: tx.query("budget.day", day="d"))
    assert [(row["kind"], row["requests"]) for row in spent] == [("a", 2), ("b", 2)]
    assert len(runs) >= 3


async def test_a_transaction_that_cannot_be_serialised_is_tried_again(server: PostgresDatabase, postgres: str) -> None:
    await server.write(lambda tx: tx.execute("budget.spend", day="d", kind="k", requests=1, tokens=0, millis=0))
    runs: list[int] = []

    def body(tx: Transaction) -> None:
        tx.execute("test.repeatable")
        runs.append(tx.query("budget.day", day="d")[0]["requests"])
        if len(runs) == 1:
            with psycopg.connect(postgres) as other:
                other.execute("UPDATE commonplace.budget SET requests = 10")
        tx.execute("budget.spend", day="d", kind="k", requests=1, tokens=0, millis=0)

    await server.write(body)

    assert runs == [1, 10]
    assert (await server.read(lambda tx: tx.query("budget.day", day="d")))[0]["requests"] == 11


async def test_a_transaction_that_collides_every_time_ends_as_busy(
    server: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_TRIES", 3)
    runs: list[int] = []

    def body(tx: Transaction) -> None:
        runs.append(put(tx, "a"))
        raise psycopg.errors.DeadlockDetected

    with pytest.raises(DatabaseBusy):
        await server.write(body)

    assert runs == [1, 1, 1]
    assert await server.read(names) == []


async def test_a_lock_that_another_transaction_keeps_on_the_server_becomes_a_clear_error(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_LOCK_SECONDS", 0.05)
    database = await PostgresDatabase.open(postgres)
    with psycopg.connect(postgres) as other:
        other.execute("LOCK TABLE commonplace.blob_refs IN SHARE MODE")
        with pytest.raises(DatabaseBusy):
            await database.write(lambda tx: put(tx, "a"))
        read = await database.read(names)
    await database.write(lambda tx: put(tx, "b"))

    assert (read, await database.read(names)) == ([], ["b"])
    await database.close()


async def test_a_claim_that_another_transaction_is_making_is_waited_for_no_longer_than_that(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_LOCK_SECONDS", 0.05)
    database = await PostgresDatabase.open(postgres)

    def same(tx: Transaction) -> None:
        tx.serialise("claims")

    def different(tx: Transaction) -> None:
        tx.serialise("something else")

    def body(tx: Transaction) -> None:
        same(tx)
        with pytest.raises(DatabaseBusy):
            anyio.from_thread.run(database.write, same)
        anyio.from_thread.run(database.write, different)

    await database.write(body)
    await database.write(same)
    await database.close()


# Connections that are lost.


def terminate(address: str, pid: int) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


async def test_a_connection_that_was_ended_while_idle_is_not_noticed(server: PostgresDatabase, postgres: str) -> None:
    pid = (await server.read(lambda tx: tx.query("test.pid")))[0]["pid"]
    terminate(postgres, pid)
    await server.write(lambda tx: put(tx, "a"))

    assert await server.read(names) == ["a"]
    assert (await server.read(lambda tx: tx.query("test.pid")))[0]["pid"] != pid


async def test_a_connection_that_ends_in_the_middle_makes_the_transaction_run_again(
    server: PostgresDatabase, postgres: str
) -> None:
    runs: list[int] = []

    def body(tx: Transaction) -> list[str]:
        runs.append(put(tx, f"run {len(runs)}"))
        if len(runs) == 1:
            terminate(postgres, tx.query("test.pid")[0]["pid"])
        return names(tx)

    assert await server.write(body) == ["run 1"]
    assert runs == [1, 1]
    assert await server.read(names) == ["run 1"]


async def test_a_connection_that_ends_before_the_commit_is_a_clear_error_since_nobody_knows_what_happened(
    server: PostgresDatabase, postgres: str
) -> None:
    runs: list[int] = []

    def body(tx: Transaction) -> None:
        runs.append(put(tx, "a"))
        terminate(postgres, tx.query("test.pid")[0]["pid"])

    with pytest.raises(StateError) as caught:
        await server.write(body)

    assert_one_sentence(caught.value)
    assert runs == [1]
    assert await server.read(names) == []


class Relay:
    """A server on a port of this host that hands everything on, until it is gone."""

    def __init__(self, address: str) -> None:
        parts = conninfo_to_dict(address)
        self._host, self._port = str(parts.get("host", "localhost")), str(parts.get("port", 5432))
        self._ends: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        while self._ends:
            self._ends.pop().close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._host.startswith("/"):
            there = await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        else:
            there = await asyncio.open_connection(self._host, int(self._port))
        self._ends |= {writer, there[1]}
        await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    writer.close()


@pytest.mark.timeout(20)
async def test_a_server_that_goes_away_is_an_error_at_once_and_works_again_when_it_is_back(postgres: str) -> None:
    relay = Relay(postgres)
    await relay.start()
    database = await PostgresDatabase.open(make_conninfo(postgres, host="127.0.0.1", port=relay.port))
    await database.write(lambda tx: put(tx, "a"))
    await relay.stop()
    errors: list[StateError] = []
    for _ in range(3):
        with pytest.raises(StateError) as caught:
            await database.read(names)
        errors.append(caught.value)
    await relay.start()

    assert await database.read(names) == ["a"]
    await database.close()
    await relay.stop()
    for error in errors:
        assert_one_sentence(error)
        assert "refused" in error.message


# Addresses that lead nowhere.


def assert_one_sentence(error: StateError) -> None:
    assert "\n" not in error.message
    assert error.message.endswith(".")
    assert not error.message.endswith(("?.", ".."))
    assert error.hint


ADDRESSES = {
    "nobody listens": ("postgresql://user:secret@127.0.0.1:1/db", "refused"),
    "nobody listens, by name": ("postgresql://user:secret@localhost:1/db", "refused"),
    "no socket there": ("postgresql:///db?host=/nonexistent", "No such file"),
    "a port that is none": ("postgresql://user:secret@127.0.0.1:port/db", "port"),
    "an option that is none": ("postgresql://user:secret@127.0.0.1:1/db?secret=1", "not understood"),
    "no address": ("postgres//user:secret@127.0.0.1/db", "not understood"),
    "a password with a sign that should be escaped": ("postgresql://user:top@secret@127.0.0.1:1/db", "not understood"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("address", "reason"), ADDRESSES.values(), ids=ADDRESSES)
async def test_a_wrong_address_is_one_sentence_without_the_password(address: str, reason: str) -> None:
    with pytest.raises(StateError, match=reason) as caught:
        await PostgresDatabase.open(address)

    assert_one_sentence(caught.value)
    assert "secret" not in caught.value.sentence()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("changes", "reason"), [({"dbname": "nowhere"}, "nowhere"), ({"user": "nobody"}, "nobody")])
async def test_a_server_that_does_not_let_us_in_says_why(postgres: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(StateError, match=reason) as caught:
        await PostgresDatabase.open(make_conninfo(postgres, **changes))

    assert_one_sentence(caught.value)


@pytest.mark.parametrize("data", [b"nonsense" * 1000, b"SQLite format 3\0" + b"\xff" * 4096], ids=["text", "damaged"])
async def test_a_file_that_is_no_database_is_one_sentence_and_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(data)

    with pytest.raises(StateError, match="cannot be used") as caught:
        await SqliteDatabase.open(path)

    assert_one_sentence(caught.value)
    assert path.read_bytes() == data


async def test_a_transaction_that_stands_still_after_many_rows_is_ended_by_the_server(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver sends many rows as a pipeline, after which the server would wait as long as the connection lives."""
    monkeypatch.setattr(driver, "_IDLE_SECONDS", 0.05)
    server = await PostgresDatabase.open(postgres)
    left: list[bool] = []

    def body(tx: Transaction) -> None:
        if left:
            return
        tx.execute_many("blobs.put", [{"sha256": "a", "path": "p"}, {"sha256": "b", "path": "p"}])
        with psycopg.connect(postgres, autocommit=True) as other:
            own = "application_name = 'commonplace' AND state LIKE 'idle in transaction%'"
            query = f"SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND {own}"
            while other.execute(query.encode()).fetchall():
                pass
        left.append(True)
        tx.query("test.blobs")

    await server.write(body)
    found = await server.read(names)
    await server.close()
    assert ([True], []) == (left, found)


async def test_a_connection_breaks_soon_after_its_network_unless_the_address_says_otherwise(postgres: str) -> None:
    server = await PostgresDatabase.open(f"{postgres}&tcp_user_timeout=1234")
    known = server._idle[0].info.get_parameters()
    await server.close()

    assert ("1234", "30") == (known["tcp_user_timeout"], known["keepalives_idle"])
