"""One pass over a thread's own file for what listings show, without building what they do not.

A survey can go on where an earlier one stopped, so that a file which grew costs only what was added. Of a large file a
`glance` reads head and tail alone: everything but the counts, which stay unknown until somebody asks for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import events, external_content, fragments, items, rollout, turns
from commonplace.protocol.rollout import Line, SessionMeta, Skipped
from commonplace.redact import redact
from commonplace.rollout import chain, reader
from commonplace.rollout.blobs import is_name
from commonplace.rollout.fold import LedgerFold, kind_of

PREVIEW_CHARS: Final = 500
"""How many characters of the first message a listing shows."""
_BEHIND: Final = 4096
"""So many characters behind the first words are redacted with them."""
_GLANCE_RECORDS: Final = 200
"""How many records a glance reads from the front."""
_GLANCE_BYTES: Final = 4 * 2**20
"""How many bytes a glance reads from each end."""
_TOLD_CWD: Final = regex(rb'<cwd>([^<]+)</cwd>|Current working directory: ([^<"\\]+)')
"""Files of 2025 say where they were only in the context that the model was told."""


class Survey(msgspec.Struct):
    """What a listing knows about one session file."""

    meta: SessionMeta
    offset: int = 0
    """Everything before this byte has been seen."""
    preview: str = ""
    model: str | None = None
    title: str | None = None
    """What the agent that a session was imported from called it."""
    memory_mode: str | None = None
    updated_at: str | None = None
    tokens: int | None = None
    turns: int = 0
    turn_state: int = 0
    """Where the count of turns stands (see `TurnCounter.state`)."""
    external_at: str | None = None
    """When the session last got something from outside, in what was read of it."""
    skipped: int = 0
    blobs: set[str] = set()
    complete: bool = True
    """False after a glance: counts, blobs and what came from outside are not known."""


class Surveyor(LedgerFold):
    """Feeds lines into a survey."""

    def __init__(self, survey: Survey) -> None:
        super().__init__(survey.turns)
        self.survey = survey
        self.counter.state = survey.turn_state
        self._token_count: msgspec.Raw | None = None

    def run(self, records: Iterable[reader.Record]) -> None:
        """Take in records, oldest first."""
        survey = self.survey
        for record in records:
            if isinstance(record, Skipped):
                if record.reason != "torn":  # it may still be completed: it is looked at again when it has its newline
                    survey.skipped += 1
                    survey.offset = record.offset + record.bytes + 1
                continue
            survey.offset = record.offset + record.size + 1
            survey.updated_at = record.timestamp or survey.updated_at
            if record.blob:
                survey.blobs.update(ref.sha256 for ref in record.blobs() if is_name(ref.sha256))
            self.see(record)
        self.finish()

    def finish(self) -> None:
        """Decode what only its newest value matters of."""
        survey = self.survey
        survey.turns, survey.turn_state = self.counter.turns, self.counter.state
        if self._token_count is not None:
            survey.tokens = tokens_of(self._token_count)
            self._token_count = None

    def damaged(self, line: Line) -> None:
        self.survey.skipped += 1

    def other(self, line: Line) -> None:
        if line.type == "turn_context":
            self.survey.model = rollout.turn_context(line).model or self.survey.model
        elif line.type == "session_meta":
            meta = rollout.session_meta(line)
            if meta.id == self.survey.meta.id and meta.memory_mode:
                self.survey.memory_mode = meta.memory_mode

    def note(self, line: Line) -> None:
        self.survey.title = _title(line.payload) or self.survey.title
        if external_content.is_note(line.payload):
            self.survey.external_at = line.timestamp or ""

    def event(self, line: Line, kind: str) -> None:
        if kind == events.TOKEN_COUNT and b'"total_token_usage"' in bytes(line.payload):
            self._token_count = line.payload

    def wants_item(self, line: Line) -> bool:
        """Say whether an item must be decoded: most are calls and outputs, and only a few words can mark a turn's
        boundary.
        """
        raw = bytes(line.payload)
        if _is_external(raw):
            self.survey.external_at = line.timestamp or ""
        return b'"user"' in raw or b"agent_message" in raw or b"trigger_turn" in raw

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        if not turns.is_boundary(view) and not self.survey.meta.cwd:
            raw = bytes(line.payload)
            if found := _TOLD_CWD.search(raw):
                self.survey.meta.cwd = msgspec.json.decode(b'"' + (found[1] or found[2]) + b'"')
        if not self.survey.preview and isinstance(view, items.Message):
            # Redacted before it is cut: a part of a secret would not show itself.
            self.survey.preview = redact(fragments.own_words(view)[: PREVIEW_CHARS + _BEHIND])[:PREVIEW_CHARS]


def _is_external(raw: bytes) -> bool:
    try:
        return external_content.is_external(kind_of(raw), raw)
    except (msgspec.DecodeError, RecursionError):  # whether the line can be used is not for this to say
        return False


class _TitleLine(msgspec.Struct):
    kind: str = ""
    title: str | None = None


_note = msgspec.json.Decoder(_TitleLine)


def _title(payload: msgspec.Raw) -> str | None:
    note = _note.decode(payload)
    return note.title if note.kind == "title" else None


def tokens_of(payload: msgspec.Raw) -> int | None:
    """Return the thread's total in a `token_count` event."""
    try:
        info = events.event(payload).info
    except (msgspec.DecodeError, RecursionError):
        return None
    return info.total_token_usage.total_tokens if info and info.total_token_usage else None


def survey(path: Path, start: Survey | None = None) -> Survey:
    """Read a file to its end, from where an earlier survey stopped.

    Raises:
        NotASession, LedgerError: the file cannot be used.
    """
    if start is not None:
        Surveyor(start).run(reader.forward(path, start=start.offset))
        return start
    records = reader.forward(path)
    head, meta = chain.head_of(records, path)
    found = Survey(meta)
    Surveyor(found).run(itertools.chain((head,), records))
    return found


def glance(path: Path) -> Survey:
    """Read a large plain file's head and tail only, a compressed one whole (raises NotASession, LedgerError)."""
    if reader.is_compressed(path):
        return survey(path)
    found = Survey(chain.read_head(path)[1])
    surveyor = Surveyor(found)
    for count, record in enumerate(reader.forward(path)):
        if count >= _GLANCE_RECORDS or record.offset > _GLANCE_BYTES or found.preview:
            break
        surveyor.run((record,))
    _look_at_end(path, found)
    found.turns, found.turn_state, found.offset, found.complete = 0, 0, 0, False
    found.skipped, found.external_at = 0, None
    found.blobs.clear()
    return found


def _look_at_end(path: Path, result: Survey) -> None:
    """Take what is newest from the file's end: the first value met there is the one that counts."""
    meter = reader.Meter()
    end = Survey(result.meta)
    for record in reader.backward(path, meter=meter):
        if meter.bytes_read > _GLANCE_BYTES or (end.model and end.tokens is not None):
            break
        if isinstance(record, Skipped):
            continue
        end.updated_at = end.updated_at or record.timestamp
        try:
            if record.type == "turn_context":
                end.model = end.model or rollout.turn_context(record).model
            elif record.type == rollout.OWN_TYPE:
                end.title = end.title or _title(record.payload)
            elif record.type == "session_meta":
                meta = rollout.session_meta(record)
                end.memory_mode = end.memory_mode or (meta.memory_mode if meta.id == result.meta.id else None)
            elif record.type == "event_msg" and end.tokens is None and kind_of(record.payload) == events.TOKEN_COUNT:
                end.tokens = tokens_of(record.payload)
        except (msgspec.DecodeError, RecursionError):
            continue
    result.updated_at = end.updated_at or result.updated_at
    result.model = end.model or result.model
    result.title = end.title or result.title
    result.memory_mode = end.memory_mode or result.memory_mode
    result.tokens = result.tokens if end.tokens is None else end.tokens
