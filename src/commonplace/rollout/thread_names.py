"""Names that people give to threads: `session_index.jsonl`, append-only, the newest entry of an id wins.

The format is Codex's. Deleting a thread rewrites the file without it; lines that nobody understands are kept. Our own
writers take turns, so that no name is lost to a rewrite; reading holds one line at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import NotASession
from commonplace.rollout import journal, private_folders, reader

FILE: Final = "session_index.jsonl"
_LINE_BYTES: Final = 64 * 1024
"""A longer line is no entry; it is kept, a piece at a time."""


class NameEntry(msgspec.Struct):
    """One line of the index."""

    id: str
    thread_name: str
    updated_at: str = ""


_entry = msgspec.json.Decoder(NameEntry)


def read(home: Path) -> dict[str, str]:
    """Return the current name of every thread that has one."""
    names: dict[str, str] = {}
    for _, entry in _entries(home / FILE):
        if entry is None:
            continue
        if name := entry.thread_name.strip():
            names[entry.id] = name
        else:
            names.pop(entry.id, None)
    return names


def append(home: Path, thread_id: str, name: str, updated_at: str) -> None:
    """Give a thread a name (an empty one takes it away), durably.

    Raises:
        LedgerError: the index cannot be written.
    """
    journal.append(home, FILE, msgspec.json.encode(NameEntry(thread_id, name.strip(), updated_at)))


def remove(home: Path, thread_id: str) -> None:
    """Rewrite the index without a thread.

    Raises:
        LedgerError: the index cannot be written; it is as it was.
    """
    path = home / FILE
    if not path.exists():
        return
    part = path.with_suffix(".jsonl.tmp")
    with journal.changing(home, FILE):
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(raw for raw, entry in _entries(path) if entry is None or entry.id != thread_id)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            private_folders.sync(home)
        finally:
            part.unlink(missing_ok=True)


def _entries(path: Path) -> Iterator[tuple[bytes, NameEntry | None]]:
    """Yield the file's bytes, a line or a bounded piece of one at a time, with the entry if it is one."""
    try:
        with reader.open_session(path) as file:
            begins = True
            while raw := file.readline(_LINE_BYTES):
                ends = raw.endswith(b"\n")
                yield raw, _decoded(raw) if begins and (ends or len(raw) < _LINE_BYTES) else None
                begins = ends
    except NotASession:
        return


def _decoded(raw: bytes) -> NameEntry | None:
    try:
        return _entry.decode(raw)
    except (ValueError, RecursionError):
        return None
