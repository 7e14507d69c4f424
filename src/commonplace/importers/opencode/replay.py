"""An OpenCode session, message by message, in the order of the conversation.

* A compaction is an answer that is a summary (`summary: true`): from there on the model saw the summary, and what came
  after it.
* A session that was reverted notes from which message on; the turns stay until the next prompt, and a rollback follows
  them. With that prompt OpenCode removes them, and the ledger is written anew.
* A turn that the person stopped ends with an error of its own; other errors of requests are left out.
* A sub-agent is a session of its own that names its parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
from commonplace.importers.json_values import TooDense, first_byte, text_of, time_of, word_of
from commonplace.importers.opencode import messages, storage
from commonplace.importers.opencode.messages import MessageInfo, MessagePart, fields
from commonplace.importers.opencode.storage import StoredMessage, StoredPart
from commonplace.patterns import regex
from commonplace.protocol.rollout import Origin, Skipped

SOURCE: Final = "opencode"
_NONE: Final = msgspec.Raw()
_ID: Final = regex(r"(?:ses|msg|prt)_\w+")
"""What OpenCode's ids look like. A program that removed secrets from an export may have taken some for one."""
_DEFAULT_TITLES: Final = ("New session - ", "Child session - ")
"""How titles begin that OpenCode gives to a session before anything was said."""


class _SessionInfo(msgspec.Struct, gc=False):
    id: msgspec.Raw = _NONE
    parent_id: msgspec.Raw = msgspec.field(default=_NONE, name="parentID")
    slug: msgspec.Raw = _NONE
    directory: msgspec.Raw = _NONE
    title: msgspec.Raw = _NONE
    version: msgspec.Raw = _NONE
    time: msgspec.Raw = _NONE
    revert: msgspec.Raw = _NONE


def convert(path: Path) -> Converted:
    """Yield the thread of a session; see `converter`."""
    stored = storage.load(path)
    if isinstance(stored, Skipped):
        yield stored
        return
    info = msgspec.json.decode(stored.info, type=_SessionInfo)
    if not word_of(info.id):
        yield Skipped(0, len(memoryview(stored.info)), json_lines.NOT_A_RECORD)
        return
    yield from _SessionReplay(path, info, stored.worktree).run(stored.messages)


class _SessionReplay:
    def __init__(self, path: Path, info: _SessionInfo, worktree: str) -> None:
        self.path = path
        self.info = info
        self.cwd = word_of(info.directory)
        self.worktree = worktree
        created = word_of(fields(info.time).created)
        self.session = _known_id(info.id) or f"{created}-{word_of(info.slug)}"
        self.thread_id = thread_id_for(SOURCE, self.session)
        self.parent = word_of(info.parent_id)
        """Who started it; what cannot be an id still says that it is a sub-agent."""
        self.place = 0
        self.time = time_of(fields(info.time).created)
        self.revert = word_of(fields(info.revert).message_id)
        self.settings: tuple[str, str] | None = None
        self.call_ids: set[str] = set()
        self.is_reverted = False
        self.reverted_turns = 0

    def run(self, stored: Iterator[StoredMessage]) -> Converted:
        has_head = False
        for message in stored:
            try:
                pieces = list(self._message(message))
            except TooDense:
                pieces = [Skipped(0, sum(_size(part) for part in message.parts), json_lines.TOO_DENSE)]
            if not has_head and any(isinstance(piece, ConvertedRecord) for piece in pieces):
                has_head = True
                yield from self._opening(message)
            yield from pieces
        if self.reverted_turns:
            yield self._record(f"revert:{self.revert}", [items.rolled_back(self.reverted_turns)])

    def _opening(self, first: StoredMessage) -> Converted:
        provider = ""
        if not isinstance(first.info, Skipped):
            provider = messages.model_of(messages.decode_info(first.info))[0]
        yield SessionHead(
            source=SOURCE,
            thread_id=self.thread_id,
            session_id=self.session,
            started=time_of(fields(self.info.time).created) or self.time,
            path=str(self.path),
            cwd=self.cwd,
            made_from=self.worktree if self.worktree not in ("/", self.cwd) else "",
            version=word_of(self.info.version),
            parent=self._parent(),
            agent_id=self.session if self.parent else None,
            provider=provider,
        )
        title = word_of(self.info.title)
        if title and not title.startswith(_DEFAULT_TITLES):
            yield self._record(f"title:{title}", [title_note(title, chosen=False)])

    def _parent(self) -> str | None:
        if not self.parent:
            return None
        known = _known_id(self.info.parent_id)
        return thread_id_for(SOURCE, known) if known else UNKNOWN_PARENT

    def _record(self, key: str, payloads: list[Payload]) -> ConvertedRecord:
        return ConvertedRecord(self.thread_id, key, self.time, payloads)

    def _message(self, message: StoredMessage) -> Iterator[ConvertedRecord | Skipped]:
        if isinstance(message.info, Skipped):
            yield message.info
            return
        info = messages.decode_info(message.info)
        self.place += 1
        key = message.key or _known_id(info.id) or f"message {self.place}"
        parts: list[tuple[str, MessagePart]] = []
        for number, part in enumerate(message.parts):
            if isinstance(part.raw, Skipped):
                yield part.raw
            else:
                content = messages.decode_part(part.raw)
                parts.append((part.key or _known_id(content.id) or f"{key}.{number}", content))
        self.time = time_of(fields(info.time).created) or self.time
        self.is_reverted = self.is_reverted or (bool(self.revert) and key == self.revert)
        match word_of(info.role):
            case "user":
                yield from self._asked(key, info, [part for _, part in parts])
            case "assistant" if bytes(info.summary) == b"true":
                yield from self._compacted(key, parts)
            case "assistant":
                yield from self._answered(key, info, parts)
            case _:
                yield Skipped(0, len(memoryview(message.info)), json_lines.UNKNOWN_TYPE)

    def _asked(self, key: str, info: MessageInfo, parts: list[MessagePart]) -> Iterator[ConvertedRecord]:
        said = messages.user_message(parts, Origin(id=key), is_subagent=bool(self.parent))
        if said is None:
            return
        if self.is_reverted and messages.is_own(said):
            self.reverted_turns += 1
        yield self._record(key, [*self._settings(info), said])

    def _call_id(self, part: MessagePart, record: str) -> str:
        """Return the id of a call; its record's where the call has none, or another call's."""
        call_id = word_of(part.call_id)
        if not call_id or call_id in self.call_ids:
            return record
        self.call_ids.add(call_id)
        return call_id

    def _settings(self, info: MessageInfo) -> list[Payload]:
        """Return what a turn ran under, where that changed."""
        model, cwd = messages.model_of(info)[1], word_of(fields(info.path).cwd) or self.cwd
        if not model or self.settings == (model, cwd):
            return []
        self.settings = (model, cwd)
        return [items.settings(model, cwd)]

    def _compacted(self, key: str, parts: list[tuple[str, MessagePart]]) -> Iterator[ConvertedRecord]:
        texts = [text_of(part.text) for _, part in parts if word_of(part.type) == "text"]
        words = [text if isinstance(text, str) else msgspec.json.decode(text, type=str) for text in texts if text]
        summary = "\n".join(words).strip()
        if summary:
            yield self._record(key, [items.compacted(summary, [items.summary_item(summary)])])

    def _answered(self, key: str, info: MessageInfo, parts: list[tuple[str, MessagePart]]) -> Iterator[ConvertedRecord]:
        is_done = bool(word_of(fields(info.time).completed)) or first_byte(info.error) == b"{"
        for name, part in parts:
            times = fields(part.time)
            self.time = time_of(times.start) or self.time
            if word_of(part.type) == "tool":
                for payloads in messages.call(part, name, self._call_id(part, name)):
                    origin = payloads[0].origin
                    yield self._record(origin.id if origin is not None else name, payloads)
            else:
                # A part that is still being written is named by its length: when it grows, it is another record.
                ended = is_done or bool(word_of(times.end))
                record = name if ended else f"{name}@{len(memoryview(part.text))}"
                if (said := messages.spoken(part, Origin(id=record))) is not None:
                    yield self._record(record, [said])
        error = fields(info.error)
        if word_of(error.name) == messages.ABORTED:
            words = word_of(fields(error.data).message) or messages.ABORTED
            stopped = items.message("user", [(items.imported_kind("interrupt"), words)], Origin(id=f"{key}#aborted"))
            yield self._record(f"{key}#aborted", [stopped])


def _known_id(raw: msgspec.Raw) -> str:
    """Return an id; empty where something else stands in its place."""
    word = word_of(raw)
    return word if _ID.fullmatch(word) else ""


def _size(part: StoredPart) -> int:
    return part.raw.bytes if isinstance(part.raw, Skipped) else len(memoryview(part.raw))
