"""Queries that run often find their rows by an index, on both databases, whatever else the tables hold."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from contender import HOME, NOW, connect, fill, thread_id
from psycopg import sql
from psycopg.conninfo import make_conninfo

from commonplace.state import postgres, sqlite
from commonplace.state.jobs import EXTRACTION

SIZE = 10_000
"""Threads; half of them have an output. With this many, PostgreSQL prefers an index where it has a fitting one."""
VALUES: dict[str, Any] = {
    "home": HOME,
    "kind": EXTRACTION,
    "host": "here",
    "now": NOW,
    "oldest": NOW - 30 * 86_400,
    "newest": NOW - 6 * 3_600,
    "after_s": NOW - 5 * 86_400,
    "after_id": thread_id(0),
    "cutoff": NOW - 20 * 86_400,
    "archived": 0,
    "before": f"{NOW - 5 * 86_400:020}",
    "before_id": thread_id(0),
    "thread_id": thread_id(77),
    "low": thread_id(77)[:-2],
    "high": thread_id(77)[:-2] + "g",
    "current": thread_id(0),
    "memory_mode": "enabled",
    "watermark": NOW,
    "limit": 64,
}
QUERIES = [
    ("extractions.candidates", (), "threads_to_learn"),
    ("extractions.candidates", ("backoff", "not_current"), "threads_to_learn"),
    ("extractions.candidates", ("backoff", "after"), "threads_to_learn"),
    ("threads.page", ("root",), "threads_by_time"),
    ("threads.page", ("root", "after"), "threads_by_time"),
    ("threads.by_prefix", (), "threads_in_home|threads_by_id"),
    ("threads.by_id", (), "threads_in_home|threads_by_id"),
    ("threads.set_mode", (), "threads_by_id"),
    ("threads.learned", (), "threads_by_id"),
    ("jobs.count_running", (), "jobs_running"),
    ("jobs.running_on_host", (), "jobs_running"),
]
IDS = ["+".join((name, *filters)) for name, filters, _ in QUERIES]


def values_of(text: str) -> dict[str, Any]:
    names = set(re.findall(r"(?<!:):([a-z_]+)", text)) | set(re.findall(r"%\(([a-z_]+)\)s", text))
    return {name: VALUES[name] for name in names}


async def made(address: str) -> str:
    database = await connect(address)
    await database.write(lambda tx: fill(tx, range(SIZE), SIZE))
    await database.close()
    return address


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def file(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[sqlite3.Connection]:
    """A SQLite file with many rows and no statistics, as it is in use."""
    path: Path = tmp_path_factory.mktemp("plans") / "state.sqlite"
    await made(str(path))
    with closing(sqlite3.connect(path)) as connection:
        yield connection


@pytest.fixture(scope="module")
async def server(postgres_server: str) -> AsyncIterator[psycopg.Connection[Any]]:
    """A PostgreSQL database with many rows and the statistics that the server takes by itself in time."""
    name = f"plans_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    address = await made(make_conninfo(postgres_server, dbname=name))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("SET search_path TO commonplace")
        yield connection
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.mark.parametrize(("name", "filters", "index"), QUERIES, ids=IDS)
async def test_sqlite_finds_rows_by_an_index(
    file: sqlite3.Connection, name: str, filters: tuple[str, ...], index: str
) -> None:
    text = sqlite.rendered(name, filters)
    plan = [str(row[3]) for row in file.execute(f"EXPLAIN QUERY PLAN {text}", values_of(text))]

    assert re.search(rf"USING (COVERING )?INDEX ({index})\b", "\n".join(plan)), plan
    assert [] == [line for line in plan if re.match(r"SCAN (threads|outputs|file)\b", line)]
    assert [] == [line for line in plan if line.startswith("USE TEMP B-TREE")]


@pytest.mark.parametrize(("name", "filters", "index"), QUERIES, ids=IDS)
async def test_postgresql_finds_rows_by_an_index(
    server: psycopg.Connection[Any], name: str, filters: tuple[str, ...], index: str
) -> None:
    text: Any = f"EXPLAIN {postgres.rendered(name, filters)}"
    plan = [str(row[0]) for row in server.execute(text, values_of(text))]

    assert re.search(rf"(using|on) ({index})\b", "\n".join(plan)), plan
    assert [] == [line for line in plan if re.search(r"Seq Scan on (threads|outputs)\b", line)]


async def test_sqlite_looks_at_no_other_threads_to_find_one(file: sqlite3.Connection) -> None:
    """A home is one value for most rows: an index that only narrows by it would walk them all."""
    for name in ("threads.by_id", "threads.by_prefix"):
        text = sqlite.rendered(name)
        plan = "\n".join(str(row[3]) for row in file.execute(f"EXPLAIN QUERY PLAN {text}", values_of(text)))

        assert "(home=?)" not in plan
