"""One transcript of Claude Code as heads and pieces: every record in the order of the conversation.

Each record that says something becomes one piece. Sub-agents that old versions wrote into the same file become threads
of their own. A prompt that was typed on an earlier point of the conversation takes back what came after that point.
Where the conversation ends in a branch that had been taken back, that branch is said again at the end.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.importers import converter, items, json_lines, prompt_history
from commonplace.importers.claude_code import authorship, content, record_kinds, records
from commonplace.importers.claude_code.branches import Branches, HeldRecord, RecordOrder
from commonplace.importers.claude_code.locations import PROJECTS
from commonplace.importers.claude_code.queued_prompts import PromptQueue
from commonplace.importers.claude_code.records import (
    DROPPED,
    THREADED,
    ClaudeRecord,
    CompactMetadata,
    ContentBlock,
    Worktree,
)
from commonplace.importers.converter import Converted, ConvertedRecord, Payload, SessionHead
from commonplace.importers.items import SUMMARY, USER, Part, imported_kind
from commonplace.protocol.ids import is_uuid
from commonplace.protocol.rollout import Origin, Skipped
from commonplace.rollout.reader import open_session

SOURCE: Final = "claude-code"
_TITLES: Final = {"custom-title": 3, "ai-title": 2, "summary": 1}
"""Records that name a session; a name that a person chose stands over one that a model made."""
_ANSWER: Final = re.compile(rb'"id":"(msg_[\w-]{1,100})"')
_HEAD_BYTES: Final = 256 * 1024
"""How far into a file the first answer is searched for."""
_KEPT_VALUES: Final = 64
"""How many of the newest items a compaction can refer to."""
_KEPT_BYTES: Final = 65536
"""How many of the newest records a compaction can still keep, and how large each may be."""


class _Preserved(msgspec.Struct, gc=False):
    uuids: list[str] = []


class _Compaction(CompactMetadata, gc=False, rename="camel"):
    preserved_messages: _Preserved | None = None


class _Thread:
    """The state of one thread while its records are read."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.branches = Branches()
        self.calls = content.MemoryCalls()
        self.settings: tuple[str, str] = ("", "")
        self.last = ""
        """The record before."""
        self.session = ""
        """The session that it names."""
        self.caveats: dict[str, bool] = {}
        """Records of the program that nobody said, and whether something hangs on each already."""
        self.command = ""
        """The newest wrapper of a command: what hangs on it is the command's text."""
        self.boundary: _Compaction | None = None
        self.summaries: dict[str, list[Payload]] = {}
        """What each compaction made of the conversation: what it kept is not remembered for long."""
        self.places: dict[int, list[tuple[int, int]]] = {}
        """Where the records of each turn stand in the file: offset and size."""
        self.recent: OrderedDict[str, list[Any]] = OrderedDict()

    def keep(self, uuid: str, payloads: list[Payload]) -> None:
        self.recent[uuid] = [payload.value for payload in payloads if payload.type == "response_item"]
        if len(self.recent) > _KEPT_VALUES:
            self.recent.popitem(last=False)


def convert(path: Path) -> Converted:
    """Read one transcript."""
    return _Conversion(path).run()


class _Conversion:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.order = RecordOrder()
        self.threads: dict[str, _Thread] = {}
        self.side_of: dict[str, str] = {}
        """For records of sub-agents in this file: which of them."""
        self.session_id = ""
        self.is_agent = path.stem.startswith("agent-")
        self.main: _Thread | None = None
        self.title = (0, "")
        self.titles: list[Payload] = []
        self.side_files = path.with_suffix("") / "tool-results"
        self.has_side_files = self.side_files.is_dir()
        self.first_answer = _first_answer(path)
        self.queue = PromptQueue()
        self.made_from = ""
        self.leaf = ""
        """Where the person left the conversation, if nothing was said since."""
        self.history = prompt_history.beside(path, frozenset({PROJECTS}))

    def run(self) -> Converted:
        for line in json_lines.read_lines(self.path):
            record = line if isinstance(line, Skipped) else _decode(*line)
            if isinstance(record, HeldRecord):
                yield from self._see(record)
            else:
                yield record
        for held in self.order.finish():
            yield from self._emit(held)
        if self.main is not None:
            yield from self._end(self.main)

    def _end(self, thread: _Thread) -> Iterator[ConvertedRecord]:
        """Yield what makes the last turns those of the branch in which the conversation ends."""
        taken_back, again = thread.branches.end(self.leaf)
        if taken_back:
            yield ConvertedRecord(thread.thread_id, f"leaf:{self.leaf}", "", [items.rolled_back(taken_back)])
        for offset, size in (place for turn in again for place in thread.places.get(turn, ())):
            with open_session(self.path) as file:
                file.seek(offset)
                held = _decode(offset, file.read(size))
            if isinstance(held, HeldRecord):
                name = f"again:{held.record.uuid}"
                payloads, _ = self._build(thread, held.record, Origin(name, offset))
                payloads = thread.summaries.get(held.record.uuid, payloads)
                yield ConvertedRecord(thread.thread_id, name, "", payloads)

    def _see(self, held: HeldRecord) -> Iterator[SessionHead | ConvertedRecord | Skipped]:
        record = held.record
        match record.type:
            case kind if record.uuid and kind in THREADED:
                self.leaf = ""
                for each in self.order.see(held):
                    yield from self._emit(each)
            case kind if kind in _TITLES:
                yield from self._titled(record, held.offset)
            case "queue-operation":
                self.queue.see(record, held.offset)
            case "last-prompt":
                self.leaf = record.leaf_uuid
            case "worktree-state":
                self.made_from = self.made_from or records.part(record.worktree_session, Worktree).original_cwd
            case kind if kind not in DROPPED:
                yield Skipped(held.offset, held.size, json_lines.UNKNOWN_TYPE)
            case _:
                pass

    def _emit(self, held: HeldRecord) -> Iterator[SessionHead | ConvertedRecord | Skipped]:
        record = held.record
        thread, head = self._thread_of(held)
        if head is not None:
            yield head
            if thread is self.main and self.titles:
                yield ConvertedRecord(thread.thread_id, "title:0", head.started, self.titles)
        uuid, parent, counts = record.uuid, held.parent, True
        if thread is self.main and record.type == "assistant":
            yield from self._absorbed(thread)
        origin = Origin(uuid, held.offset)
        try:
            payloads, prompt = self._build(thread, record, origin)
        except (msgspec.DecodeError, RecursionError):
            yield Skipped(held.offset, held.size, "bad_item")
            payloads, prompt = [], False
        if prompt:
            # A prompt that hangs on nothing was rewound to before the first one; after `/clear` the session is another.
            is_typed, restarts = record.type == "user", record.session_id == thread.session
            taken_back = thread.branches.prompt(uuid, parent, restarts=restarts, goes_on=is_typed)
            if taken_back:
                payloads.insert(0, items.rolled_back(taken_back))
        elif parent and parent in thread.caveats:
            # Some versions hang every command of a person on one and the same caveat: no branch, just the next thing.
            thread.branches.follow(uuid, None if thread.caveats[parent] else parent)
            thread.caveats[parent] = True
        else:
            # A compaction may hang on an earlier point (what came after was summarised); it takes nothing back.
            is_compaction = record.is_compact_summary or record.subtype == "compact_boundary"
            is_begin = is_compaction or record_kinds.begins_session(record)
            restarts = not parent and not is_begin and record.session_id == thread.session
            counts = thread.branches.follow(
                uuid, None if record.subtype == "compact_boundary" else parent, restarts=restarts
            )
        thread.last, thread.session = uuid, record.session_id
        if any(payload.type == "compacted" for payload in payloads):
            thread.summaries[uuid] = payloads
        if payloads and thread is self.main:
            thread.places.setdefault(thread.branches.turn_of(uuid), []).append((held.offset, held.size))
        if payloads and counts:  # what comes late for a turn that was taken back is no part of the one that runs
            if held.size <= _KEPT_BYTES:
                thread.keep(uuid, payloads)
            yield ConvertedRecord(thread.thread_id, uuid, record.timestamp, payloads)

    def _absorbed(self, thread: _Thread) -> Iterator[ConvertedRecord]:
        """Yield prompts that went into the running turn and were noted nowhere else."""
        for queued in self.queue.undelivered():
            record = f"queue:{queued.offset}"
            thread.branches.steer(record, thread.last)
            noted = authorship.queued(Origin(record, queued.offset), self.session_id, queued.text, self.history)
            payload = items.message("user", [(USER, queued.text)], noted)
            yield ConvertedRecord(thread.thread_id, record, queued.time, [payload])

    def _build(self, thread: _Thread, record: ClaudeRecord, origin: Origin) -> tuple[list[Payload], bool]:
        """Return what a record says, and whether it begins a turn."""
        match record.type:
            case "user":
                return self._user(thread, record, origin)
            case "assistant" if not record_kinds.is_synthetic(record):
                return self._assistant(thread, record, origin), False
            case "attachment":
                payload, typed = content.attachment(record, origin)
                if typed and payload is not None:
                    self.queue.note_delivered(typed)
                    payload.origin = authorship.noted(origin, record, [(USER, typed)], self.history)
                return [payload] if payload is not None else [], bool(typed)
            case "system" if record.subtype == "compact_boundary":
                thread.boundary = records.part(record.compact_metadata, _Compaction)
            case _:
                pass
        return [], False

    def _user(self, thread: _Thread, record: ClaudeRecord, origin: Origin) -> tuple[list[Payload], bool]:
        found = records.blocks(record.message.content) if record.message is not None else []
        if any(block.type == "tool_result" for block in found):
            return self._results(thread, record, found, origin), False
        parts: list[Part] = []
        media: list[dict[str, Any]] = []
        for block in found:
            if block.type == "image":
                media.append(content.image(block))
            elif text := records.text_of(block.text):
                parts.extend(record_kinds.parts(record, text))
                self.queue.note_delivered(text)
        if thread.command and record.parent_uuid == thread.command and not record.prompt_source:
            parts = [_never_user(part) for part in parts]  # copies of a session lose the mark of a command's text
        if any(kind == imported_kind("slash_command") for kind, _ in parts):
            thread.command = record.uuid
        if parts and all(kind == imported_kind("injected") for kind, _ in parts):
            thread.caveats[record.uuid] = False
        if any(kind == SUMMARY for kind, _ in parts):
            summary = "\n".join(str(text) for _, text in parts)
            return [self._compacted(thread, summary)], False
        if not parts and not media:
            return [], False
        if not parts and record_kinds.of_record(record) in (None, USER):
            parts = [(USER, "[image]")]
        said = any(kind == USER for kind, _ in parts)
        memory = any(kind.startswith("memory.") for kind, _ in parts)
        noted = Origin(origin.id, origin.offset, memory=memory)
        if said:
            noted = authorship.noted(noted, record, parts, self.history)
        return [items.message("user", parts, noted, media)], said

    def _results(
        self, thread: _Thread, record: ClaudeRecord, content_blocks: list[ContentBlock], origin: Origin
    ) -> list[Payload]:
        """Return the outputs of tools, what a person said to them, and what the program put beside them."""
        folder = self.side_files if self.has_side_files else None
        made: list[Payload] = []
        parts: list[Part] = []
        for block in content_blocks:
            if block.type == "tool_result":
                refused = bool(content.refusal(record, block, thread.calls))
                made.append(content.output(block, origin, folder, thread.calls, refused=refused))
                if said := content.reply(record, block, thread.calls):
                    parts.append((imported_kind("reply"), said))
            elif text := records.text_of(block.text):
                parts.extend(_never_user(part) for part in record_kinds.by_text(text))
        return [*made, items.message("user", parts, origin)] if parts else made

    def _compacted(self, thread: _Thread, summary: str) -> Payload:
        boundary = thread.boundary or _Compaction()
        thread.boundary = None
        kept = boundary.preserved_messages.uuids if boundary.preserved_messages else []
        preserved = [value for uuid in kept for value in thread.recent.get(uuid, ())]
        made = items.compacted(summary, [items.summary_item(summary), *preserved])
        made.value["trigger"] = boundary.trigger or "unknown"
        return made

    def _assistant(self, thread: _Thread, record: ClaudeRecord, origin: Origin) -> list[Payload]:
        message = record.message
        if message is None:
            return []
        made = [
            payload
            for block in records.blocks(message.content)
            if (payload := content.answer(block, origin, thread.calls)) is not None
        ]
        settings = (message.model, record.cwd)
        if made and settings != thread.settings and message.model:
            thread.settings = settings
            made.insert(0, items.settings(*settings))
        return made

    def _titled(self, record: ClaudeRecord, offset: int) -> Iterator[ConvertedRecord]:
        rank = _TITLES[record.type]
        text = " ".join((record.custom_title or record.ai_title or record.summary).split())[:200]
        if not text or rank < self.title[0] or text == self.title[1]:
            return
        self.title = (rank, text)
        note = converter.title_note(text, chosen=record.type == "custom-title")
        if self.main is None:
            self.titles = [note]
        else:
            yield ConvertedRecord(self.main.thread_id, f"title:{offset}", "", [note])

    def _thread_of(self, held: HeldRecord) -> tuple[_Thread, SessionHead | None]:
        """Return the thread that a record belongs to, and its head if this is its first record."""
        record = held.record
        if not self.session_id:
            self.session_id = _session_id(self.path, record)
            self.is_agent = self.is_agent or (record.is_sidechain and bool(record.agent_id))
        if self.is_agent or not record.is_sidechain:
            key = ""
        else:
            key = record.agent_id or self.side_of.get(held.parent or "") or record.uuid
            self.side_of[record.uuid] = key
        thread = self.threads.get(key)
        if thread is not None:
            return thread, None
        head = self._head(record, key)
        thread = self.threads[key] = _Thread(head.thread_id)
        if not key:
            self.main = thread
        return thread, head

    def _head(self, record: ClaudeRecord, side: str) -> SessionHead:
        parent = None
        session, agent = self.session_id, None
        if self.is_agent:
            agent = record.agent_id or self.path.stem.removeprefix("agent-")
            parent = converter.thread_id_for(SOURCE, record.session_id or self.session_id)
            session = f"{record.session_id or self.session_id}/{agent}"
        elif side:
            agent = side
            parent = converter.thread_id_for(SOURCE, self.session_id)
            session = f"{self.session_id}/{side}"
        return SessionHead(
            source=SOURCE,
            thread_id=converter.thread_id_for(SOURCE, session),
            session_id=session,
            started=record.timestamp,
            path=str(self.path),
            cwd=record.cwd,
            made_from=self.made_from,
            version=record.version,
            branch=record.git_branch or None,
            parent=parent,
            agent_id=agent,
            entrypoint=record.entrypoint,
            provider="anthropic",
            first_record=record.uuid,
            first_answer=self.first_answer,
        )


def _first_answer(path: Path) -> str:
    """Return the id of the first answer near the beginning of a file: copies keep it even where they rename records."""
    with open_session(path) as file:
        found = _ANSWER.search(file.read(_HEAD_BYTES))
    return found[1].decode() if found else ""


def _never_user(part: Part) -> Part:
    return (imported_kind("injected"), part[1]) if part[0] in (USER, SUMMARY) else part


def _decode(offset: int, raw: bytes) -> HeldRecord | Skipped:
    try:
        found = records.decode(json_lines.repair(raw))
    except msgspec.DecodeError:
        return Skipped(offset, len(raw), json_lines.NOT_JSON)
    except RecursionError:
        return Skipped(offset, len(raw), "too_deep")
    return HeldRecord(found, offset, len(raw)) if found is not None else Skipped(offset, len(raw), "not_a_record")


def _session_id(path: Path, record: ClaudeRecord) -> str:
    """Return what the session is called: the file's name, unless somebody renamed the file."""
    stem = path.name.partition(".")[0]
    if is_uuid(stem.lower()) or not record.session_id:
        return stem
    return record.session_id
