"""The first pass over a Gemini session: what each line did, and where the last version of each message stands.

Only names and places are kept, so that a log of any length fits; a log of more events than can be held is cut there,
and says so.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.importers import json_lines
from commonplace.importers.converter import TORN
from commonplace.importers.gemini import records
from commonplace.importers.gemini.records import GeminiRecord
from commonplace.importers.json_values import (
    MANY,
    TooDense,
    elements_of,
    first_byte,
    is_dense,
    opening,
    time_of,
    word_of,
)
from commonplace.patterns import regex
from commonplace.protocol.rollout import Origin, Skipped

TOO_MANY_RECORDS: Final = "too_many_records"
_MAX_EVENTS: Final = 2**17
"""How many events of one file are held."""
_MAX_NAMES: Final = 2**24
"""Most characters of ids and titles together: real ones are short, and there is a limit to how many may be long."""
_LOOKED_AT: Final = 8
"""The first messages, among which the program tells the model its working directory."""
_WORKSPACE: Final = regex(
    r"(?:\*\*Workspace Directories:\*\*[^\S\n]*\n\s*- |working in the directory: "
    r"|working in the following directories:[^\S\n]*\n\s*- )(/[^\n]+)"
)


class RecordPosition(msgspec.Struct, gc=False, frozen=True):
    """The position of a record: its line, and for a message in a list its index there."""

    offset: int
    size: int
    place: int = -1


class LogEvent(msgspec.Struct, gc=False):
    """The effect of a line. `key` is the id of a message, the target of a rewind, a title, or the reason of a skip."""

    kind: str
    at: RecordPosition
    key: str = ""


class Log:
    """The first pass: what happened, and where the last version of each message stands."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []
        self.last: dict[str, RecordPosition] = {}
        self.session = self.started = self.kind = self.workspace = self.first = ""
        self._names = 0

    @property
    def is_full(self) -> bool:
        """Whether no more events can be held."""
        return len(self.events) >= _MAX_EVENTS or self._names > _MAX_NAMES

    def skip(self, skipped: Skipped) -> None:
        """Note a stretch that cannot be used."""
        self._note("skipped", RecordPosition(skipped.offset, skipped.bytes), skipped.reason)

    def _note(self, kind: str, at: RecordPosition, key: str = "") -> None:
        self.events.append(LogEvent(kind, at, key))
        self._names += len(key)

    def see(self, offset: int, raw: bytes) -> None:
        """Note what a line is."""
        at = RecordPosition(offset, len(raw))
        raw = json_lines.repair(raw)
        try:
            if is_dense(raw):
                self._note("skipped", at, json_lines.TOO_DENSE)
                return
            record = records.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            reason = json_lines.NOT_A_RECORD if isinstance(error, msgspec.ValidationError) else json_lines.NOT_JSON
            self._note("skipped", at, reason)
            return
        try:
            self._sort(record, at)
        except TooDense:
            self._note("skipped", at, json_lines.TOO_DENSE)

    def _sort(self, record: GeminiRecord, at: RecordPosition) -> None:
        if first_byte(record.rewind) == b'"':
            self._note("rewind", at, word_of(record.rewind))
        elif word_of(record.id):
            self._message(record, at)
        elif first_byte(record.update) == b"{":
            self._update(record, at)
        elif word_of(record.session_id):
            self.header(record, at)
        else:
            self._note("skipped", at, json_lines.UNKNOWN_TYPE)

    def header(self, record: GeminiRecord, at: RecordPosition) -> None:
        """Note what a session says about itself, and the messages that stand with that."""
        self._metadata(record, at)
        for place, raw in enumerate(elements_of(record.messages)):
            if self.is_full:
                self.skip(Skipped(at.offset, 0, TOO_MANY_RECORDS))
                break
            self._message(object_of(raw), RecordPosition(at.offset, at.size, place))

    def _metadata(self, record: GeminiRecord, at: RecordPosition) -> None:
        self.session = self.session or word_of(record.session_id)
        self.started = self.started or time_of(record.start_time)
        self.kind = self.kind or word_of(record.kind)
        folders = [word_of(raw) for raw in elements_of(record.directories, MANY)[:1]]
        self.workspace = self.workspace or next((folder for folder in folders if folder.startswith("/")), "")
        if word_of(record.summary).strip():
            self._note("title", at, word_of(record.summary).strip())

    def _message(self, record: GeminiRecord, at: RecordPosition) -> None:
        key = word_of(record.id) or f"@{at.offset}/{at.place}"
        if key not in self.last:
            self._note("message", at, key)
        self.last[key] = at
        self.first = self.first or key
        self._look(record)

    def _update(self, record: GeminiRecord, at: RecordPosition) -> None:
        update = records.decode(record.update)
        self._metadata(update, at)
        if first_byte(update.messages) == b"[":
            elements = elements_of(update.messages, MANY)
            self._note("list", at)
            for raw in elements[:_LOOKED_AT]:
                listed = object_of(raw)
                self.first = self.first or word_of(listed.id)
                self._look(listed)

    def _look(self, record: GeminiRecord) -> None:
        """Look for the working directory that the program told the model."""
        if not self.workspace and len(self.last) <= _LOOKED_AT and word_of(record.type) == "user":
            try:
                message = records.read(record, Origin())
            except TooDense:
                return
            texts = [opening(text, 2**16) for text in message.texts] if message else []
            found = (_WORKSPACE.search(text) for text in texts if text.lstrip().startswith("<session_context>"))
            self.workspace = next((match[1].strip() for match in found if match), "")

    def document(self, raw: bytes) -> Skipped | None:
        """Note the messages of a document, or return what is wrong with it."""
        if not raw.strip():
            return None
        try:
            if is_dense(raw):
                return Skipped(0, len(raw), json_lines.TOO_DENSE)
            self.header(records.decode(raw), RecordPosition(0, len(raw)))
        except TooDense:
            return Skipped(0, len(raw), json_lines.TOO_DENSE)
        except (msgspec.DecodeError, RecursionError) as error:
            if isinstance(error, msgspec.ValidationError):
                return Skipped(0, len(raw), json_lines.NOT_A_RECORD)
            # The program writes a document anew on every change: one that breaks off may be whole a moment later.
            return Skipped(0, len(raw), TORN if "truncated" in str(error) else json_lines.NOT_JSON)
        return None


def object_of(raw: msgspec.Raw) -> GeminiRecord:
    """Return a message of a list; an empty one for what is no object."""
    return records.decode(raw) if first_byte(raw) == b"{" else GeminiRecord()
