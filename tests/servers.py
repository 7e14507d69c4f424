"""A real PostgreSQL for tests: one per test process, with empty tables for each test.

The server comes from the `pgserver` wheel, or is named by COMMONPLACE_TEST_POSTGRES.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server."""
    if address := os.environ.get("COMMONPLACE_TEST_POSTGRES"):
        yield address
        return
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    pgserver = pytest.importorskip("pgserver", reason="no pgserver wheel here; set COMMONPLACE_TEST_POSTGRES")
    # Not below pytest's own folder: any other run of pytest closes that to the server, which is another user for root.
    with tempfile.TemporaryDirectory(prefix="commonplace-postgres-", ignore_cleanup_errors=True) as folder:
        server = _started(pgserver, Path(folder))
        _need_not_last(str(server.get_uri()))
        yield str(server.get_uri())
        server.cleanup()


def _started(pgserver: Any, folder: Path) -> Any:
    """Start a server; the wheel gives it ten seconds, which a busy machine may not have."""
    for number in range(4):
        try:
            return pgserver.get_server(folder / str(number), cleanup_mode="delete")
        except (subprocess.SubprocessError, OSError):
            continue
    return pgserver.get_server(folder / "last", cleanup_mode="delete")


def _need_not_last(address: str) -> None:
    """Let the server keep nothing for the case that the machine fails: its data is removed with the tests."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET synchronous_commit = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def postgres_connection(postgres_server: str) -> Iterator[psycopg.Connection]:
    """One connection for all tests: the server makes a process for each."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection


@pytest.fixture
def postgres(postgres_server: str, postgres_connection: psycopg.Connection) -> str:
    """The address of a server whose tables are empty."""
    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'commonplace' AND tablename <> 'schema_version'"
    if names := [sql.Identifier("commonplace", name) for (name,) in postgres_connection.execute(query)]:
        # Faster than TRUNCATE, which makes new files.
        postgres_connection.execute(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(name) for name in names))
    return postgres_server
