"""Names that people give to threads: `session_index.jsonl`, append-only, the newest entry of an id wins.

The format is Codex's. Deleting a thread rewrites the file without it; lines that nobody understands are kept.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from commonplace.rollout.folders import make_private

FILE: Final = "session_index.jsonl"


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
    """Give a thread a name (an empty one takes it away), durably."""
    path = home / FILE
    make_private(home)
    line = msgspec.json.encode(NameEntry(thread_id, name.strip(), updated_at)) + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(home: Path, thread_id: str) -> None:
    """Rewrite the index without a thread."""
    path = home / FILE
    kept = [raw for raw, entry in _entries(path) if entry is None or entry.id != thread_id]
    if not path.exists():
        return
    part = path.with_suffix(".jsonl.tmp")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(raw + b"\n" for raw in kept)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _entries(path: Path) -> list[tuple[bytes, NameEntry | None]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found: list[tuple[bytes, NameEntry | None]] = []
    for raw in lines:
        if not raw.strip():
            continue
        try:
            found.append((raw, _entry.decode(raw)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found.append((raw, None))
    return found
