"""The embedded database: transactions, waiting for a lock, schema."""

from __future__ import annotations

import re
import sqlite3
from importlib import resources
from pathlib import Path

import pytest

from commonplace.errors import DatabaseBusy, StateError
from commonplace.state.database import QUERY_FILES, Transaction, migrations, statements
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


async def test_a_lock_that_another_process_keeps_becomes_a_clear_error(tmp_path: Path) -> None:
    database = await SqliteDatabase.open(tmp_path / "x.sqlite", patience=0.05)
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


def test_every_query_runs_on_the_schema_with_any_of_its_filters() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in migrations(0):
        connection.execute(statement)

    for name, statement in statements().items():
        for chosen in [(), *((filter_name,) for filter_name in statement.filters)]:
            text = statement.render(chosen, skip_locked="")
            parameters = dict.fromkeys(re.findall(r":([a-z_0-9]+)", text))
            connection.execute(f"EXPLAIN {text}", parameters)
            assert "{" not in text, name
    connection.close()


def test_every_query_is_named_once_and_says_what_it_is_for() -> None:
    folder = resources.files("commonplace.state.sql")
    texts = [folder.joinpath(f"{name}.sql").read_text("utf-8") for name in QUERY_FILES]
    names = [line for text in texts for line in text.splitlines() if line.startswith("-- name: ")]

    assert len(names) == len(set(names)) == len(statements())


@pytest.mark.parametrize("name", ["migration_0001", "migration_0002", "migration_0003", "schema"])
def test_every_column_says_why_it_exists(name: str) -> None:
    text = resources.files("commonplace.state.sql").joinpath(f"{name}.sql").read_text("utf-8")
    bodies = re.findall(r"CREATE TABLE \w+ \((.*?)^\);", text, re.DOTALL | re.MULTILINE)
    columns = [line.strip() for body in bodies for line in body.splitlines() if line.strip()]
    columns += [line for line in text.splitlines() if " ADD COLUMN " in line]
    unexplained = [line for line in columns if "--" not in line and not line.startswith("PRIMARY KEY")]

    assert columns
    assert unexplained == []
