"""Every test of the state runs on both databases: a SQLite file, and a real PostgreSQL.

Each test gets empty tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
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
