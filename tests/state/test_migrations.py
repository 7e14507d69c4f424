"""The schema: migrations and the readable whole are the same, on both databases, whoever opens first."""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rows import NOW

import processes
from commonplace.errors import DatabaseNewer, StateError
from commonplace.state import database as queries
from commonplace.state import postgres, sqlite
from commonplace.state.database import LATEST, Database, split
from commonplace.state.postgres import PostgresDatabase
from commonplace.state.sqlite import SqliteDatabase

Shape = dict[str, list[Any]]
"""Everything that can be asked about a schema, by what it is about."""

OPENER = """
import sys, anyio
from commonplace.state.postgres import PostgresDatabase
from commonplace.state.sqlite import SqliteDatabase
from pathlib import Path

async def main(address):
    kind = SqliteDatabase if address.endswith(".sqlite") else PostgresDatabase
    database = await kind.open(Path(address) if kind is SqliteDatabase else address)
    await database.write(lambda tx: tx.execute("blobs.put", sha256=sys.argv[2], path="p"))
    await database.close()

print("ready", flush=True)
sys.stdin.readline()
anyio.run(main, sys.argv[1])
"""

PG_COLUMNS = """
SELECT table_name, ordinal_position, column_name, data_type, column_default, is_nullable
FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2
"""
PG_INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %s ORDER BY 1, 2"
PG_CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = %s::regnamespace ORDER BY 1, 2
"""


def is_file(address: str) -> bool:
    return address.endswith(".sqlite")


async def open_at(address: str) -> Database:
    return await (SqliteDatabase.open(Path(address)) if is_file(address) else PostgresDatabase.open(address))


def sqlite_shape(connection: sqlite3.Connection) -> Shape:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
    shape: Shape = {}
    for table in tables:
        shape[f"{table} columns"] = connection.execute(f"PRAGMA table_info({table})").fetchall()
        indexes = sorted(row[1:] for row in connection.execute(f"PRAGMA index_list({table})"))
        shape[f"{table} indexes"] = indexes
        for name, *_ in indexes:
            shape[f"{name} keys"] = connection.execute(f"PRAGMA index_xinfo({name})").fetchall()
            (text,) = connection.execute(
                "SELECT coalesce(sql, '') FROM sqlite_master WHERE name = ?", [name]
            ).fetchone()
            shape[f"{name} condition"] = text.partition(" WHERE ")[2].split()
    return shape


def postgres_shape(connection: psycopg.Connection[Any], schema: str) -> Shape:
    shape: Shape = {}
    for about, query in (("columns", PG_COLUMNS), ("indexes", PG_INDEXES), ("constraints", PG_CONSTRAINTS)):
        found = connection.execute(query.encode(), [schema]).fetchall()
        for row in found:
            table, *values = (str(value).replace(f"{schema}.", "") for value in row)
            if table != "schema_version":  # how the driver counts migrations is no part of the schema
                shape.setdefault(f"{table} {about}", []).append(values)
    return shape


def shape_of(address: str) -> Shape:
    """Return the schema of a database that was opened before."""
    if is_file(address):
        connection = sqlite3.connect(address)
        shape = sqlite_shape(connection)
        connection.close()
        return shape
    with psycopg.connect(address) as connection:
        return postgres_shape(connection, "commonplace")


def written_shape(address: str) -> Shape:
    """Return the schema that schema.sql describes."""
    statements = split(resources.files("commonplace.state.sql").joinpath("schema.sql").read_text("utf-8"))
    if is_file(address):
        connection = sqlite3.connect(":memory:")
        for statement in statements:
            connection.execute(statement)
        shape = sqlite_shape(connection)
        connection.close()
        return shape
    with psycopg.connect(address) as connection:
        connection.execute("CREATE SCHEMA written")
        connection.execute("SET LOCAL search_path TO written")
        for statement in statements:
            connection.execute(statement.encode())
        return postgres_shape(connection, "written")


def stop_at(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """Let the program know no migration after a version, and make a new database by the migrations alone."""
    for module in (queries, sqlite, postgres):
        monkeypatch.setattr(module, "LATEST", version)
        monkeypatch.setattr(module, "upgrade", queries.migrations)


def set_version(address: str, version: int) -> None:
    """Say that a program of another version made the schema."""
    if is_file(address):
        connection = sqlite3.connect(address)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        return
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE commonplace.schema_version SET version = %s", [version])


def version_of(address: str) -> int:
    if is_file(address):
        connection = sqlite3.connect(address)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.close()
        return int(version)
    with psycopg.connect(address) as connection:
        rows = connection.execute("SELECT version FROM commonplace.schema_version").fetchall()
    ((version,),) = rows
    return int(version)


@pytest.mark.parametrize("by", ["migrations", "schema"])
async def test_the_migrations_come_to_what_the_schema_file_says(
    empty_address: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "migrations":
        stop_at(monkeypatch, LATEST)
    await (await open_at(empty_address)).close()

    migrated = shape_of(empty_address)

    assert migrated == written_shape(empty_address)
    assert {"threads columns", "blob_refs columns", "jobs columns", "outputs columns"} <= migrated.keys()


def test_every_migration_is_known_to_the_program() -> None:
    names = [file.name for file in resources.files("commonplace.state.sql").iterdir()]

    assert sorted(name for name in names if name.startswith("migration_")) == [
        f"migration_{number:04}.sql" for number in range(1, LATEST + 1)
    ]


async def test_migrating_step_by_step_is_migrating_at_once_and_keeps_rows(
    empty_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions: list[int] = []
    for version in range(1, LATEST + 1):
        stop_at(monkeypatch, version)
        database = await open_at(empty_address)
        await database.write(lambda tx, name=str(version): tx.execute("blobs.put", sha256=name, path="p"))
        await database.close()
        versions.append(version_of(empty_address))
    monkeypatch.undo()
    database = await open_at(empty_address)
    kept = await database.read(lambda tx: tx.query("blobs.referenced"))
    await database.close()

    assert versions == list(range(1, LATEST + 1))
    assert shape_of(empty_address) == written_shape(empty_address)
    assert sorted(row["sha256"] for row in kept) == sorted(map(str, versions))


async def test_what_was_selected_before_roots_were_told_apart_is_let_go_by_the_next_consolidation(
    empty_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, 2)
    database = await open_at(empty_address)
    await database.close()
    columns = "thread_id, source_updated_at, raw_memory, rollout_summary, generated_at, is_empty, fresh_at"
    raw(empty_address, f"INSERT INTO outputs ({columns}) VALUES ('a', 1, 'x', 'x', {NOW}, 0, 1)")
    raw(empty_address, "UPDATE outputs SET is_selected = 1, selected_source_updated_at = 1")
    monkeypatch.undo()
    database = await open_at(empty_address)
    changed = await database.write(lambda tx: tx.execute("outputs.deselect", root="/any"))
    await database.close()

    assert changed == 1


def raw(address: str, statement: str) -> None:
    if is_file(address):
        connection = sqlite3.connect(address, isolation_level=None)
        connection.execute(statement)
        connection.close()
        return
    with psycopg.connect(address) as connection:
        connection.execute("SET search_path TO commonplace")
        connection.execute(statement.encode())


def open_in_processes(address: str, count: int) -> list[tuple[int, str]]:
    """Let processes open a database at the same moment; return how each ended."""
    started = [
        processes.Process([address, number], stdin=processes.PIPE, text=True, code=OPENER) for number in range(count)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [(process.returncode, errors) for process in started for _, errors in [process.communicate(timeout=100)]]


async def test_processes_that_open_an_empty_database_at_the_same_time_all_succeed(empty_address: str) -> None:
    ended = open_in_processes(empty_address, 4)
    database = await open_at(empty_address)
    written = await database.read(lambda tx: tx.query("blobs.referenced"))
    await database.close()

    assert ended == [(0, "")] * 4
    assert sorted(row["sha256"] for row in written) == ["0", "1", "2", "3"]
    assert shape_of(empty_address) == written_shape(empty_address)


async def test_a_schema_of_a_newer_program_is_read_and_not_touched(empty_address: str) -> None:
    database = await open_at(empty_address)
    await database.write(lambda tx: tx.execute("blobs.put", sha256="a", path="p"))
    await database.close()
    set_version(empty_address, LATEST + 1)
    before = shape_of(empty_address)

    database = await open_at(empty_address)
    found = await database.read(lambda tx: tx.query("blobs.referenced"))
    with pytest.raises(DatabaseNewer):
        await database.write(lambda tx: tx.execute("blobs.drop", path="p"))
    with pytest.raises(StateError):
        await database.read(lambda tx: tx.execute("blobs.drop", path="p"))
    still = await database.read(lambda tx: tx.query("blobs.referenced"))
    is_read_only = database.read_only
    await database.close()

    assert is_read_only
    assert found == still == [{"sha256": "a"}]
    assert version_of(empty_address) == LATEST + 1
    assert shape_of(empty_address) == before


async def test_a_newer_file_is_not_even_given_another_journal(tmp_path: Path) -> None:
    path = tmp_path / "newer.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {LATEST + 1}")
    connection.close()
    before = path.read_bytes()

    database = await SqliteDatabase.open(path)
    await database.close()

    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


async def test_a_role_that_may_only_use_the_schema_can_open_it(empty_postgres: str) -> None:
    await (await PostgresDatabase.open(empty_postgres)).close()
    with psycopg.connect(empty_postgres, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA commonplace TO guest")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA commonplace TO guest")
    address = make_conninfo(empty_postgres, options="-c role=guest")
    database = await PostgresDatabase.open(address)
    changed = await database.write(lambda tx: tx.execute("blobs.put", sha256="a", path="p"))
    await database.close()
    with psycopg.connect(empty_postgres, autocommit=True) as connection:
        connection.execute("DROP OWNED BY guest")
        connection.execute("DROP ROLE guest")

    assert changed == 1
