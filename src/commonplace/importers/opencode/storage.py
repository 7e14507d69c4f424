"""Where OpenCode keeps sessions: files that `opencode export` wrote, a database, or one file for each record.

    DATA/opencode.db                                     since version 1.2
    DATA/storage/session/PROJECT/SESSION.json            before that, with
    DATA/storage/message/SESSION/MESSAGE.json
    DATA/storage/part/MESSAGE/PART.json
    DATA/storage/project/PROJECT.json

DATA is `$XDG_DATA_HOME/opencode`, else `~/.local/share/opencode`. The database took over what the files had, and the
files stayed: what both have is read from the database. However a session is stored, it is read as a `StoredSession`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import LedgerError, NotASession
from commonplace.importers import json_lines
from commonplace.importers.converter import MAX_RECORD_BYTES
from commonplace.importers.json_values import decoded_document, elements_of, first_byte, word_of
from commonplace.importers.opencode import database
from commonplace.protocol.rollout import Skipped

_NONE: Final = msgspec.Raw()
_STORAGE: Final = "storage"


class StoredPart(msgspec.Struct, gc=False):
    """A part as it is stored; its id is empty where it stands in the content."""

    key: str
    raw: bytes | msgspec.Raw | Skipped


class StoredMessage(msgspec.Struct, gc=False):
    """A message as it is stored: its facts, and its parts in order."""

    key: str
    info: bytes | msgspec.Raw | Skipped
    parts: list[StoredPart]


class StoredSession(msgspec.Struct):
    """A session as it is stored."""

    info: bytes | msgspec.Raw
    messages: Iterator[StoredMessage]
    worktree: str = ""
    """The folder of its project, where that is noted."""


class _Exported(msgspec.Struct, gc=False):
    info: msgspec.Raw = _NONE
    messages: msgspec.Raw = _NONE


class _ExportedMessage(msgspec.Struct, gc=False):
    info: msgspec.Raw = _NONE
    parts: msgspec.Raw = _NONE


class _Project(msgspec.Struct, gc=False):
    worktree: msgspec.Raw = _NONE


_exported = msgspec.json.Decoder(_Exported)
_message = msgspec.json.Decoder(_ExportedMessage)


def default_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that OpenCode keeps its data in."""
    base = environment.get("XDG_DATA_HOME")
    home = environment.get("HOME")
    user = Path(home) if home else Path.home()
    return (Path(base).expanduser() if base else user / ".local" / "share") / "opencode"


def find(path: Path) -> Iterator[Path]:
    """Yield the sessions at a path: OpenCode's folder, its storage or database, a folder of exports, or a file."""
    if path.name == database.FILE and path.is_file():
        yield from (path / session for session in database.sessions(path))
    elif path.is_file() or is_in_database(path):
        yield path
    elif (path / database.FILE).is_file() or (path / _STORAGE / "session").is_dir():
        yield from _find_stored(path)
    elif _is_storage(path):
        yield from sorted((path / "session").glob("*/ses*.json"))
    else:
        yield from (file for file in json_lines.walk(path) if file.name.endswith((".json", ".jsonl")))


def _find_stored(path: Path) -> Iterator[Path]:
    known: set[str] = set()
    if (path / database.FILE).is_file():
        known.update(database.sessions(path / database.FILE))
        yield from (path / database.FILE / session for session in sorted(known))
    for file in sorted((path / _STORAGE / "session").glob("*/ses*.json")):
        if file.stem not in known:
            yield file


def _is_storage(path: Path) -> bool:
    return (path / "session").is_dir() and (path / "message").is_dir()


def is_in_database(path: Path) -> bool:
    """Say whether a path names a session in a database."""
    return path.parent.name == database.FILE and path.parent.is_file()


def _storage_of(path: Path) -> Path | None:
    """Return the storage folder that a session's file stands in."""
    storage = path.parent.parent.parent
    return storage if path.parent.parent.name == "session" and (storage / "message").is_dir() else None


def stamp(path: Path) -> tuple[int, int]:
    """Return the size of a session and when it was last written; raises OSError."""
    if is_in_database(path):
        try:
            known = database.stamp(path.parent, path.name)
        except LedgerError as error:
            raise OSError(0, error.sentence(), str(path)) from error
        if known is None:
            raise FileNotFoundError(str(path))
        return known
    status = path.stat()
    size, written = status.st_size, status.st_mtime_ns
    storage = _storage_of(path)
    if storage is not None:
        for message in (storage / "message" / path.stem).glob("*.json"):
            for file in (message, *(storage / "part" / message.stem).glob("*.json")):
                status = file.stat()
                size, written = size + status.st_size, max(written, status.st_mtime_ns)
    return size, written


def load(path: Path) -> StoredSession | Skipped:
    """Return a session, its messages still to be read; Skipped where it is none.

    Raises:
        NotASession, LedgerError: it is not there, or cannot be read.
    """
    if is_in_database(path):
        return _load_rows(path.parent, path.name)
    raw = json_lines.read_document(path)
    if isinstance(raw, Skipped):
        return raw
    document = decoded_document(_exported.decode, raw)
    if isinstance(document, Skipped):
        return document
    storage = _storage_of(path)
    if storage is not None:
        return StoredSession(raw, _file_messages(storage, path.stem), _worktree(storage, path.parent.name))
    if first_byte(document.info) != b"{" or first_byte(document.messages) != b"[":
        return Skipped(0, len(raw), json_lines.UNKNOWN_TYPE)
    return StoredSession(document.info, _exported_messages(document.messages))


def _exported_messages(raw: msgspec.Raw) -> Iterator[StoredMessage]:
    for element in elements_of(raw):
        if first_byte(element) != b"{":
            yield StoredMessage("", Skipped(0, len(memoryview(element)), json_lines.NOT_A_RECORD), [])
            continue
        message = _message.decode(element)
        info = _checked(message.info)
        if isinstance(info, Skipped) and not info.bytes:  # it is not there: the message itself is none
            info = Skipped(0, len(memoryview(element)), info.reason)
        yield StoredMessage("", info, [StoredPart("", _checked(part)) for part in elements_of(message.parts)])


def _load_rows(file: Path, session: str) -> StoredSession | Skipped:
    row = database.read_session(file, session)
    if row is None:
        raise NotASession(f"{file} has no session {session}.", hint="Check the id.", path=str(file))
    info, worktree = row
    return StoredSession(info, _row_messages(file, session), worktree)


def _row_messages(file: Path, session: str) -> Iterator[StoredMessage]:
    for key, info, parts in database.read_messages(file, session):
        yield StoredMessage(key, _checked(info), [StoredPart(part, _checked(raw)) for part, raw in parts])


def _file_messages(storage: Path, session: str) -> Iterator[StoredMessage]:
    for file in sorted((storage / "message" / session).glob("*.json")):
        parts = sorted((storage / "part" / file.stem).glob("*.json"))
        yield StoredMessage(file.stem, _record(file), [StoredPart(part.stem, _record(part)) for part in parts])


def _record(file: Path) -> bytes | Skipped:
    raw = json_lines.read_document(file)
    checked = raw if isinstance(raw, Skipped) else _checked(raw)
    return checked if isinstance(checked, Skipped) else bytes(checked)


def _checked(raw: bytes | msgspec.Raw) -> bytes | msgspec.Raw | Skipped:
    """Return one record, repaired, or what is wrong with it."""
    size = len(memoryview(raw))
    if size > MAX_RECORD_BYTES:
        return Skipped(0, size, json_lines.TOO_LONG)
    if isinstance(raw, msgspec.Raw):
        return raw if first_byte(raw) == b"{" else Skipped(0, size, json_lines.NOT_A_RECORD)
    repaired = json_lines.repair(raw)
    found = decoded_document(_exported.decode, repaired)
    return found if isinstance(found, Skipped) else repaired


def _worktree(storage: Path, project: str) -> str:
    try:
        raw = _record(storage / "project" / f"{project}.json")
    except (NotASession, LedgerError):
        return ""
    return "" if isinstance(raw, Skipped) else word_of(msgspec.json.decode(raw, type=_Project).worktree)
