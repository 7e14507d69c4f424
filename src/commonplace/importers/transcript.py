"""Plain transcripts: JSON lines `{"session", "id"?, "time"?, "role", "name"?, "text", "cwd"?}`, one for each saying.

Any number of sessions may share a file, in any order of their lines; each becomes a thread. A line with a `name` is a
person speaking, whatever its role, except that the name on a tool's line is the tool's. A session's working
directory is that of its first line, because a thread begins before its second line is known.

Records are named by their `id`, else by their place in their session. A line that repeats another's id and text is that
line again; one that repeats only the id is another record, and its name says at which place it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.importers import items, json_lines
from commonplace.importers.converter import Converted, ConvertedRecord, Payload, SessionHead, thread_id_for
from commonplace.importers.items import Text
from commonplace.importers.json_values import decoded, is_blank, opening, text_of, time_of, word_of
from commonplace.protocol.memory_traces import is_memory_text, is_memory_tool
from commonplace.protocol.rollout import Origin, Skipped

SOURCE: Final = "transcript"
TOO_MANY_SESSIONS: Final = "too_many_sessions"
_MAX_SESSIONS: Final = 2**17
"""How many sessions of one file are told apart."""
_MAX_IDS: Final = 2**18
"""Ids that are remembered to find repeats; of later ones, each is taken to be new."""
_ROLES: Final = frozenset({"user", "assistant", "system", "tool"})


class _TranscriptRecord(msgspec.Struct, gc=False):
    session: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    time: msgspec.Raw = msgspec.Raw()
    role: msgspec.Raw = msgspec.Raw()
    name: msgspec.Raw = msgspec.Raw()
    text: msgspec.Raw = msgspec.Raw()
    cwd: msgspec.Raw = msgspec.Raw()


class _Session(msgspec.Struct, gc=False):
    """One thread while its lines come in."""

    thread_id: str
    time: str
    records: int = 0


_said = msgspec.json.Decoder(_TranscriptRecord)


def find(path: Path) -> Iterator[Path]:
    """Yield the transcripts at a path: the file itself, or the `.jsonl` files below a folder."""
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from (found for found in json_lines.walk(path) if found.name.endswith((".jsonl", ".jsonl.zst")))


def convert(path: Path) -> Converted:
    """Yield the threads of a transcript; see `converter`."""
    reader = _TranscriptReader(path)
    for found in json_lines.read_lines(path):
        if isinstance(found, Skipped):
            yield found
        else:
            yield from reader.see(*found)


class _TranscriptReader:
    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._sessions: dict[str, _Session] = {}
        self._seen: dict[int, int] = {}

    def see(self, offset: int, raw: bytes) -> Converted:
        said = decoded(_said.decode, offset, raw)
        if isinstance(said, Skipped):
            yield said
            return
        name, text, key = word_of(said.session), text_of(said.text), word_of(said.id)
        role = word_of(said.role).lower()
        if not name or text is None:
            yield Skipped(offset, len(raw), json_lines.NOT_A_RECORD)
        elif role not in _ROLES and not word_of(said.name):
            yield Skipped(offset, len(raw), json_lines.UNKNOWN_TYPE)
        elif is_blank(text):
            yield Skipped(offset, len(raw), json_lines.EMPTY)
        elif name not in self._sessions and len(self._sessions) >= _MAX_SESSIONS:
            yield Skipped(offset, len(raw), TOO_MANY_SESSIONS)
        else:
            session = self._sessions.get(name)
            if session is None:
                session = _Session(thread_id_for(SOURCE, name), time_of(said.time))
                self._sessions[name] = session
                yield self._head(name, session, word_of(said.cwd))
            session.records += 1
            session.time = time_of(said.time) or session.time
            record = self._record(name, key, text, session.records)
            if record is None:
                yield Skipped(offset, len(raw), json_lines.DUPLICATE)
                return
            origin = Origin(id=record, offset=offset)
            payloads = _payloads(role, word_of(said.name), text, origin)
            yield ConvertedRecord(session.thread_id, record, session.time, payloads)

    def _head(self, name: str, session: _Session, cwd: str) -> SessionHead:
        return SessionHead(
            source=SOURCE,
            thread_id=session.thread_id,
            session_id=name,
            started=session.time,
            path=self._path,
            cwd=cwd,
        )

    def _record(self, session: str, key: str, text: Text, place: int) -> str | None:
        """Return the name of a record, or None if it was there before."""
        if not key:
            return str(place)
        known, content = hash((session, key)), hash(text if isinstance(text, str) else bytes(text))
        if known in self._seen:
            return None if self._seen[known] == content else f"{key}#{place}"
        if len(self._seen) >= _MAX_IDS:
            return f"{key}#{place}"
        self._seen[known] = content
        return key


def _payloads(role: str, name: str, text: Text, origin: Origin) -> list[Payload]:
    recalled = is_memory_text(opening(text))
    if role == "tool":
        tool = name or "tool"
        noted = Origin(id=origin.id, offset=origin.offset, memory=recalled or is_memory_tool(tool))
        call_id = f"call_{origin.id}"
        # A transcript has no calls; without one, what the tool said would stand in no conversation.
        return [items.call(tool, "{}", call_id, noted), items.output(call_id, text, noted)]
    if name or role == "user":
        noted = Origin(id=origin.id, offset=origin.offset, memory=recalled, name=name or None)
        return [items.message("user", [("memory.injected" if recalled else items.USER, text)], noted)]
    if role == "system":
        noted = Origin(id=origin.id, offset=origin.offset, memory=recalled)
        return [items.message("developer", [(items.imported_kind("instructions"), text)], noted)]
    return [items.answer(text, origin)]
