"""Every test of the state runs on both databases: a SQLite file, and a real PostgreSQL.

The server comes from the `pgserver` wheel, one per test process, or is named by COMMONPLACE_TEST_POSTGRES. Each test
gets empty tables.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from rows import Rows, statements

from commonplace.state import database as queries
from commonplace.state.database import Database
from commonplace.state.postgres import PostgresDatabase
from commonplace.state.sqlite import SqliteDatabase

TABLES = ("threads", "blob_refs", "jobs", "outputs", "entry_usage", "budget")


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server."""
    if address := os.environ.get("COMMONPLACE_TEST_POSTGRES"):
        yield address
        return
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    pgserver = pytest.importorskip("pgserver", reason="no pgserver wheel here; set COMMONPLACE_TEST_POSTGRES")
    server = _started(pgserver, tmp_path_factory)
    yield str(server.get_uri())
    server.cleanup()


def _started(pgserver: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Start a server; the wheel gives it ten seconds, which a busy machine may not have."""
    for _ in range(4):
        try:
            return pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete")
        except (subprocess.SubprocessError, OSError):
            continue
    return pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete")


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of a server whose tables are empty."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        exists = connection.execute("SELECT to_regclass('commonplace.jobs')").fetchone()
        if exists and exists[0]:
            names = ", ".join(f"commonplace.{name}" for name in TABLES)
            connection.execute(f"TRUNCATE {names}")  # pyright: ignore[reportArgumentType]
    return postgres_server


@pytest.fixture
def empty_postgres(postgres_server: str) -> Iterator[str]:
    """The address of a database that nobody ever opened."""
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield make_conninfo(postgres_server, dbname=name)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(params=["sqlite", "postgres"])
def empty_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a database of either kind could be, and none is yet."""
    if request.param == "sqlite":
        return str(tmp_path / "empty.sqlite")
    return str(request.getfixturevalue("empty_postgres"))


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database, of either kind."""
    if request.param == "sqlite":
        opened: SqliteDatabase | PostgresDatabase = await SqliteDatabase.open(tmp_path / "state.sqlite")
    else:
        opened = await PostgresDatabase.open(request.getfixturevalue("postgres"))
    yield opened
    await opened.close()


@pytest.fixture
def rows(database: Database, monkeypatch: pytest.MonkeyPatch) -> Rows:
    """The same, to be filled with rows."""
    for name, statement in statements().items():
        monkeypatch.setitem(queries.statements(), name, statement)
    return Rows(database)
