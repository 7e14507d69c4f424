"""Processes that learn, and what they left in the database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio

import processes
from commonplace.app import book as books
from commonplace.app.book import Book
from commonplace.learning.evaluate import cases, files
from commonplace.learning.evaluate.cases import Case, CaseSession

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def environment(home: Path, database: str) -> dict[str, str]:
    """What a learner runs with: a clock that stands still, and nobody else's sessions."""
    place = {"COMMONPLACE_HOME": str(home), "COMMONPLACE_NOW": NOW.isoformat(), "COMMONPLACE_DATABASE": database}
    return {**os.environ, **place, "HOME": str(home.parent / "nobody")}


def many(folder: Path, count: int) -> Path:
    """Write so many Codex sessions, made of the gold set's with names and times of their own; return their home."""
    known = [session for case in cases.bundled() for session in case.sessions if session.source == "cli"]
    for number in range(count):
        session = known[number % len(known)]
        again = CaseSession("codex", session.cwd, session.events, remote=session.remote, days_ago=1 + number / 100)
        files.write(Case(f"many-{number}", "", [again], cases.ExpectedLessons()), folder, NOW)
    return folder / "codex"


def run(variables: Mapping[str, str], *arguments: str) -> None:
    """Run the program; it must succeed."""
    done = processes.run(arguments, env=variables, text=True)
    assert done.returncode == 0, done.stderr


def outputs(variables: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """Return what every thread taught, as it is stored."""

    async def inside() -> dict[str, tuple[Any, ...]]:
        async with books.open(environment=variables) as book:
            return await stored(book)

    return anyio.run(inside)


async def stored(book: Book) -> dict[str, tuple[Any, ...]]:
    """The same of a book that is open."""
    database = await book.state.database()
    known = await database.read(lambda tx: tx.query("outputs.ids"))
    ids = [str(row["thread_id"]) for row in known]
    rows = await database.read(lambda tx: [tx.query("outputs.get", thread_id=key)[0] for key in ids])
    columns = ("source_updated_at", "raw_memory", "rollout_summary", "rollout_slug", "generated_at", "is_empty")
    return {str(row["thread_id"]): tuple(row[name] for name in columns) for row in rows}


def workspace(variables: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of the memory, the baseline aside."""
    root = Path(variables["COMMONPLACE_HOME"]) / "memories"
    found = (path for path in sorted(root.rglob("*")) if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def days(count: float) -> datetime:
    """Return the time so many days before now."""
    return NOW - timedelta(days=count)
