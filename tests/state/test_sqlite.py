"""The embedded database: transactions, waiting for a lock, schema."""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path

import pytest

from commonplace.errors import DatabaseBusy, StateError
from commonplace.state import sqlite
from commonplace.state.database import Transaction, queries
from commonplace.state.sqlite import SqliteDatabase


async def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "x.sqlite")

    def body(tx: Transaction) -> None:
        tx.execute("blobs.put", sha256="a", path="p")
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        await database.write(body)

    assert await database.read(lambda tx: tx.query("blobs.referenced")) == []
    await database.close()


async def test_a_lock_that_another_process_keeps_becomes_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.05)
    database = await SqliteDatabase.open(tmp_path / "x.sqlite")
    other = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(DatabaseBusy):
        await database.write(lambda tx: tx.execute("blobs.put", sha256="a", path="p"))
    read = await database.read(lambda tx: tx.query("blobs.referenced"))

    other.close()
    await database.close()
    assert read == []


async def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"nonsense" * 1000)

    with pytest.raises(StateError, match="cannot be used"):
        await SqliteDatabase.open(tmp_path / "x.sqlite")


async def test_opening_twice_keeps_what_was_written(tmp_path: Path) -> None:
    for _ in range(2):
        database = await SqliteDatabase.open(tmp_path / "x.sqlite")
        await database.write(lambda tx: tx.execute("blobs.put", sha256="a", path="p"))
        await database.close()
    database = await SqliteDatabase.open(tmp_path / "x.sqlite")

    assert await database.read(lambda tx: tx.query("blobs.referenced")) == [{"sha256": "a"}]
    await database.close()


def test_every_query_has_a_name_and_a_sentence_and_runs_on_the_schema() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(resources.files("commonplace.state.sql").joinpath("migration_0001.sql").read_text("utf-8"))
    text = resources.files("commonplace.state.sql").joinpath("threads.sql").read_text("utf-8")

    found = queries("threads")

    assert text.count("-- name: ") == len(found)
    for query in found.values():
        parameters = dict.fromkeys(_parameters(query))
        connection.execute(f"EXPLAIN {query}", parameters)
    connection.close()


def _parameters(query: str) -> set[str]:
    import re

    return set(re.findall(r":([a-z_0-9]+)", query))


def test_every_column_says_why_it_exists() -> None:
    text = resources.files("commonplace.state.sql").joinpath("migration_0001.sql").read_text("utf-8")
    columns = [line for line in text.splitlines() if line.startswith("  ") and "PRIMARY KEY (" not in line]
    unexplained = [line.split()[0] for line in columns if "--" not in line]

    assert unexplained == []
