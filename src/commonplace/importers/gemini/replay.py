"""Playing a Gemini session: what its lines did, in the order in which they did it.

A log is read twice. The first pass notes what each line is and where the last version of each message stands, and
nothing else, so that a log of any length fits; the second takes each message where it first appeared, as it was last
written. A message of the model is one record, each of its calls and each output another: a call's output arrives as a
new version of the message, and what was imported before must not change by that.

* `$rewindTo` undoes the turns from a message on. They stay in the ledger, and a rollback follows them.
* `$set.messages` is what the model now sees. With a snapshot in it, it is a compaction; without one it changes nothing,
  except that messages which stand nowhere else are taken from it. After a compaction all its messages have new ids, so
  copies are told by their text, as often as it occurs.
* The old form is one document; its messages are the versions that count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.importers import items, json_lines
from commonplace.importers.converter import (
    UNKNOWN_PARENT,
    Converted,
    ConvertedRecord,
    Payload,
    SessionHead,
    thread_id_for,
    title_note,
)
from commonplace.importers.gemini import locations as places
from commonplace.importers.gemini import records
from commonplace.importers.gemini.log import TOO_MANY_RECORDS, Log, LogEvent, RecordPosition, object_of
from commonplace.importers.gemini.records import GeminiCall, GeminiMessage, GeminiRecord
from commonplace.importers.items import Text
from commonplace.importers.json_values import TooDense, elements_of, joined, time_of, word_of
from commonplace.protocol.rollout import Origin, Skipped
from commonplace.rollout.reader import open_session

SOURCE: Final = "gemini"
_MAX_MET: Final = 2**17
"""Ids, texts and calls that are remembered; of more, the oldest are forgotten, and might appear twice."""


class _Live(msgspec.Struct, gc=False):
    """A message that the model sees."""

    key: str
    is_turn: bool
    content: int


def convert(path: Path) -> Converted:
    """Yield the thread of a session file; see `converter`."""
    log = Log()
    if path.name.endswith(".json"):
        raw = json_lines.read_document(path)
        if isinstance(raw, Skipped):
            yield raw
            return
        problem = log.document(raw)
        if problem is not None:
            yield problem
            return
        yield from _Player(path, log, raw).play()
        return
    for found in json_lines.read_lines(path):
        if log.is_full:
            offset = found.offset if isinstance(found, Skipped) else found[0]
            log.skip(Skipped(offset, max(0, path.stat().st_size - offset), TOO_MANY_RECORDS))
            break
        log.skip(found) if isinstance(found, Skipped) else log.see(*found)
    yield from _Player(path, log, None).play()


class _Player:
    """The second pass."""

    def __init__(self, path: Path, log: Log, document: bytes | None) -> None:
        self.path = path
        self.log = log
        self.parent = places.parent_session(path)
        self.is_subagent = self.parent is not None or log.kind == "subagent"
        self.session = log.session or path.name.removesuffix(".jsonl").removesuffix(".json")
        self.thread_id = thread_id_for(SOURCE, self.session)
        self.time = log.started
        self.model = ""
        self.cwd = places.project_root(path) or log.workspace
        self.begun = False
        self.document = document
        self.held: tuple[int, list[msgspec.Raw]] = (-1, [])
        """The list that messages were last taken from: its line, and its elements."""
        self.descriptor = -1
        self.live: list[_Live] = []
        """What the model sees."""
        self.met: dict[int, int] = {}
        """Ids of messages that were met, in a line or in a list."""
        self.texts: dict[int, int] = {}
        """How often each content was met."""
        self.snapshots: dict[int, int] = {}
        self.calls: dict[int, int] = {}
        """Calls that were met: 1 if only the call was, 2 if its output was too."""

    def play(self) -> Converted:
        with open_session(self.path) as file:
            self.descriptor = file.fileno()
            for event in self.log.events:
                yield from self._event(event)

    def _event(self, event: LogEvent) -> Converted:
        at = event.at
        if event.kind == "skipped":
            yield Skipped(at.offset, at.size, event.key)
        elif event.kind == "title":
            yield from self._pieces(f"title@{at.offset}", [title_note(event.key, chosen=False)])
        elif event.kind == "rewind":
            yield from self._rewind(event)
        elif event.kind == "list":
            yield from self._list(at)
        else:
            record = self._load(self.log.last[event.key])
            if record is None:
                yield Skipped(at.offset, at.size, json_lines.NOT_JSON)
            else:
                try:
                    message = records.read(record, self._origin(event.key, at), subagent=self.is_subagent)
                except TooDense:
                    yield Skipped(at.offset, at.size, json_lines.TOO_DENSE)
                    return
                yield from self._message(event.key, record, message, at)

    def _load(self, at: RecordPosition) -> GeminiRecord | None:
        """Return a record as it stands in the file; None if the file is no longer what it was."""
        try:
            if at.place < 0:
                return records.decode(self._raw(at))
            if self.held[0] != at.offset:
                self.held = (at.offset, elements_of(records.decode(self._raw(at)).messages))
            raw = self.held[1][at.place]
            return object_of(raw)
        except (msgspec.DecodeError, RecursionError, IndexError):
            return None

    def _raw(self, at: RecordPosition) -> bytes:
        if self.document is not None:
            return self.document
        self.held = (-1, [])  # never two long lines at once
        return json_lines.repair(os.pread(self.descriptor, at.size, at.offset))

    def _origin(self, key: str, at: RecordPosition) -> Origin:
        return Origin(id=key, offset=at.offset if self.document is None else None)

    def _message(self, key: str, record: GeminiRecord, message: GeminiMessage | None, at: RecordPosition) -> Converted:
        """Play a message in its last version; `at` is where its first stands, which never changes."""
        if message is None:
            yield Skipped(at.offset, at.size if at.place < 0 else 0, json_lines.UNKNOWN_TYPE)
            return
        self.time = time_of(record.timestamp) or self.time
        content, listed = _content(record, message.texts), hash(key) in self.met
        if not listed:
            self.live.append(_Live(key, message.is_turn, content))
            _count(self.texts, content)
        _count(self.met, hash(key))
        # What a list already had is not said again; calls that came later are told by their own ids.
        yield from self._emit(key, message, word_of(record.model), with_text=not listed)

    def _emit(self, key: str, message: GeminiMessage, model: str, *, with_text: bool) -> Converted:
        said = list(message.said) if with_text else []
        if model and model != self.model and (said or message.calls):
            self.model = model
            said.insert(0, items.settings(model, self.cwd))
        yield from self._pieces(key, said)
        for call in message.calls:
            yield from self._call(key, call)

    def _call(self, key: str, call: GeminiCall) -> Converted:
        known = self.calls.get(hash(call.id), 0)
        self.time = max(self.time, call.time) if self.time else call.time
        if call.call is not None and known == 0:
            yield from self._pieces(f"{key}/{call.id}", [call.call])
        if call.output is not None and known < 2:
            yield from self._pieces(f"{key}/{call.id}/output", [call.output])
        _count(self.calls, hash(call.id), (2 if call.output is not None else max(known, 1)) - known)

    def _rewind(self, event: LogEvent) -> Converted:
        place = next((n for n in range(len(self.live) - 1, -1, -1) if self.live[n].key == event.key), 0)
        turns = sum(message.is_turn for message in self.live[place:])
        del self.live[place:]
        if turns:
            yield from self._pieces(f"rewind@{event.at.offset}", [items.rolled_back(turns)])

    def _list(self, at: RecordPosition) -> Converted:
        """Play `$set.messages`."""
        try:
            elements = elements_of(records.decode(records.decode(self._raw(at)).update).messages)
        except (msgspec.DecodeError, RecursionError):
            yield Skipped(at.offset, at.size, json_lines.NOT_JSON)
            return
        places = {message.content: n for n, message in enumerate(self.live)}
        met: dict[int, int] = {}
        replacement: list[dict[str, Any]] = []
        live: list[_Live] = []
        summary: Text | None = None
        is_reply = False
        for place, raw in enumerate(elements):
            record = object_of(raw)
            key = word_of(record.id) or f"@{at.offset}/{place}"
            try:
                message = records.read(record, self._origin(key, at), subagent=self.is_subagent)
            except TooDense:
                yield Skipped(at.offset, 0, json_lines.TOO_DENSE)
                continue
            if message is None:
                continue
            content = _content(record, message.texts)
            met[content] = met.get(content, 0) + 1
            replacement += _values(message)
            live.append(_Live(key, message.is_turn, content))
            is_reply, followed = message.snapshot is not None, is_reply
            if message.snapshot is not None:
                # Every later list begins with the same snapshot again.
                summary = message.snapshot if content not in self.snapshots else summary
                _count(self.snapshots, content)
            elif hash(key) not in self.met and not (followed and word_of(record.type) == "gemini"):
                if met[content] > self.texts.get(content, 0):
                    _count(self.texts, content)
                    self.live.append(live[-1])
                    self.time = time_of(record.timestamp) or self.time
                    yield from self._emit(key, message, word_of(record.model), with_text=True)
                else:  # a copy under a new name, by which a rewind may call it
                    if content in places:
                        self.live[places[content]].key = key
                    yield from self._emit(key, message, "", with_text=False)
            _count(self.met, hash(key))
        if summary is not None:
            self.live = live
            text = summary if isinstance(summary, str) else msgspec.json.decode(summary, type=str)
            yield from self._pieces(f"compacted@{at.offset}", [items.compacted(text, replacement)])

    def _pieces(self, record: str, payloads: list[Payload]) -> Iterator[SessionHead | ConvertedRecord]:
        if not payloads:
            return
        if not self.begun:
            self.begun = True
            yield self._head()
        for payload in payloads:  # by this a ledger knows again what it has
            if payload.origin is not None and payload.origin.id != record:
                payload.origin = msgspec.structs.replace(payload.origin, id=record)
        yield ConvertedRecord(self.thread_id, record, self.time, payloads)

    def _head(self) -> SessionHead:
        parent = thread_id_for(SOURCE, self.parent) if self.parent is not None else None
        return SessionHead(
            source=SOURCE,
            thread_id=self.thread_id,
            session_id=self.session,
            started=self.log.started or self.time,
            path=str(self.path),
            cwd=self.cwd,
            parent=parent or (UNKNOWN_PARENT if self.is_subagent else None),
            agent_id=self.session if self.is_subagent else None,
            entrypoint=self.log.kind,
            provider="google",
            first_record=self.log.first,
        )


def _count(known: dict[int, int], key: int, by: int = 1) -> None:
    known[key] = known.get(key, 0) + by
    if len(known) > _MAX_MET:
        known.pop(next(iter(known)))


def _content(record: GeminiRecord, texts: list[Text]) -> int:
    """Return what tells a message's content from others, in this process; how it is cut into parts does not."""
    whole = joined(texts)
    return hash((word_of(record.type), whole.strip() if isinstance(whole, str) else bytes(whole)))


def _values(message: GeminiMessage) -> list[dict[str, Any]]:
    """Return a message's items, as a replaced history holds them."""
    if message.snapshot is not None:
        return [items.summary_item(message.snapshot)]
    calls = [payload for call in message.calls for payload in (call.call, call.output) if payload is not None]
    return [payload.value for payload in (*message.said, *calls)]
