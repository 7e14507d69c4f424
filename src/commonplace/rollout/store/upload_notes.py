"""What this home has put into the store, one line per upload in `home/uploads.jsonl`; the newest line of a file counts.

The notes save requests and are what `doctor` goes by. They are never trusted against the store: one that is missing, or
older than what the store has (a process that was killed between an upload and its note), costs a comparison.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from pathlib import Path
from typing import Final

import msgspec

from commonplace.rollout import journal
from commonplace.rollout.private_folders import make_private

FILE: Final = "uploads.jsonl"
NAME_FILE: Final = "ledger_root"
_MANY_LINES: Final = 1000


class UploadNote(msgspec.Struct, frozen=True):
    """What is known of one file."""

    file: str
    """Its path in the home."""
    end: int = 0
    """How many of its bytes are in the store."""
    check: int = 0
    """A checksum of the last bytes before the end: it tells whether the file was written anew."""
    state: str = ""
    """`replacing`: its old segments are on their way out. `gone`: it was deleted here, and is to be in the store.
    `dropped`: that was done. `conflict`: another home writes to the same place."""


class UploadNotes:
    """The notes of one home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stamp: tuple[int, int] | None = None
        self._notes: dict[str, UploadNote] = {}

    def read(self) -> dict[str, UploadNote]:
        """Return the newest note of each file that is, or was, in the store."""
        path = self._home / FILE
        try:
            status = path.stat()
        except OSError:
            self._stamp, self._notes = None, {}
            return self._notes
        stamp = (status.st_ino, status.st_size)
        if stamp != self._stamp:
            notes: dict[str, UploadNote] = {}
            lines = path.read_bytes().split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError, RecursionError):
                    note = msgspec.json.decode(line, type=UploadNote)
                    notes[note.file] = note
            self._notes = {file: note for file, note in notes.items() if note.state != "dropped"}
            self._stamp = stamp
            if len(lines) > 2 * len(self._notes) + _MANY_LINES:
                self._shorten()
        return self._notes

    def write(self, note: UploadNote) -> None:
        """Add a note (raises LedgerError)."""
        journal.append(self._home, FILE, msgspec.json.encode(note))

    def _shorten(self) -> None:
        """Write the newest notes alone; the caller is the one that uploads, so that none comes between."""
        part = self._home / f".{FILE}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(msgspec.json.encode(note) + b"\n" for note in self._notes.values())
        part.replace(self._home / FILE)
        self._stamp = None


def root_of(home: Path) -> str:
    """Return the name of this home in the store: the host's and a random number, made up once and kept in the home."""
    path = home / NAME_FILE
    with contextlib.suppress(OSError):
        return path.read_text("ascii").strip()
    make_private(home)
    host = "".join(char if char.isascii() and char.isalnum() else "-" for char in socket.gethostname()).strip("-")
    part = home / f".{NAME_FILE}.{os.getpid()}.{secrets.token_hex(4)}"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{host[:60] or 'host'}-{secrets.token_hex(4)}\n")
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    part.unlink()
    return path.read_text("ascii").strip()
