"""OpenCode's database: sessions, messages and parts as rows, the latter two as JSON.

A session of it is named by a path below the database's file (`…/opencode.db/ses_1`), which no file can have. The
database is opened to be read. Without a log beside it, it is opened as a file that nobody changes, because SQLite would
otherwise make files of its own there.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from commonplace import package_files
from commonplace.errors import LedgerError

FILE: Final = "opencode.db"
_WAIT_S: Final = 5.0
"""How long a reader waits for OpenCode to finish writing."""


def sessions(path: Path) -> list[str]:
    """Return the ids of every session (raises LedgerError)."""
    with _opened(path) as database:
        return [_text(row[0]) for row in database.execute(_query("sessions"))]


def stamp(path: Path, session: str) -> tuple[int, int] | None:
    """Return how many records a session has and when it was last written, in ns; None if it is gone."""
    with _opened(path) as database:
        row = database.execute(_query("stamp"), {"id": session}).fetchone()
    return (int(row[0]), int(row[1]) * 1_000_000) if row is not None else None


def read_session(path: Path, session: str) -> tuple[bytes, str] | None:
    """Return a session's facts as JSON, and its project's folder; None if it is gone (raises LedgerError)."""
    with _opened(path) as database:
        row = database.execute(_query("session"), {"id": session}).fetchone()
    return (_bytes(row[0]), _text(row[1])) if row is not None else None


def read_messages(path: Path, session: str) -> Iterator[tuple[str, bytes, list[tuple[str, bytes]]]]:
    """Yield the id and facts of each message, and the id and content of each of its parts (raises LedgerError)."""
    with _opened(path) as database:
        for key, data in database.execute(_query("messages"), {"id": session}):
            parts = database.execute(_query("parts"), {"id": _text(key)})
            yield _text(key), _bytes(data), [(_text(part), _bytes(content)) for part, content in parts]


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def _text(value: object) -> str:
    return _bytes(value).decode("utf-8", "replace")


@functools.cache
def _query(name: str) -> str:
    return package_files.text(f"importers/opencode/{name}.sql")


@contextlib.contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    log = path.with_name(path.name + "-wal")
    is_written = log.exists() and log.stat().st_size > 0
    address = f"file:{quote(str(path))}?mode=ro" + ("" if is_written else "&immutable=1")
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=_WAIT_S)) as database:
            database.text_factory = bytes
            yield database
    except sqlite3.Error as error:
        raise LedgerError(f"{path} cannot be read: {error}.", hint="Is it OpenCode's database?") from error
