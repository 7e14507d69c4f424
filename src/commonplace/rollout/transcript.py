"""A thread told in order: what the person said, what was called and how it went, where it was compacted.

One forward pass over the whole chain. What it collects is bounded: beyond `MAX_TEXT_BYTES` nothing more is kept.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from commonplace.patterns import regex
from commonplace.protocol import events, fragments, items, memory_traces, rollout
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import chain
from commonplace.rollout.chain import Ledger, SkipLog
from commonplace.rollout.fold import LedgerFold

MAX_TEXT_BYTES: Final = 256 * 2**20
"""How many bytes of texts a transcript holds."""
_ENTRY_COST: Final = 400
"""What keeping one call, outcome or mark counts for."""
_EXIT_CODE: Final = regex(r"(?:^|\n)(?:Exit code:|Process exited with code) (-?\d+)\n")
_FAILED: Final = regex(
    r"unsupported (?:custom tool )?call|(?:Wall time: [\d.]+ seconds\n)?aborted"
    r"|error\b|(?:[\w.-]+ ){1,3}error:|failed\b|err: ",
    re.IGNORECASE,
)
"""How the outputs of calls that could not run begin."""


class TranscriptCall(msgspec.Struct):
    """A tool call and whether it worked."""

    name: str
    ok: bool


class CompactionMark(msgspec.Struct, omit_defaults=True):
    """Where a thread was compacted; our own compactions carry a score."""

    turn: int
    time: str | None
    score: Any = None


class TranscriptItem(msgspec.Struct, omit_defaults=True):
    """One item of the record, with where and when."""

    turn: int
    time: str | None
    offset: int
    item: msgspec.Raw
    source_id: str | None = None
    """The record's id in the file that it was imported from."""
    kinds: list[str] | None = None
    """Whose words each part of a message holds, where its writer noted that."""
    from_memory: bool = False
    """It came out of a memory."""


class Transcript(msgspec.Struct):
    """What `sessions show` tells."""

    user_texts: list[str] = []
    calls: list[TranscriptCall] = []
    compactions: list[CompactionMark] = []
    items: list[TranscriptItem] = []
    turns: int = 0
    lines: int = 0
    ended: str | None = None
    """The time of the newest line."""


def read_transcript(ledger: Ledger, log: SkipLog, *, with_items: bool = False) -> Transcript:
    """Read a thread from its first line to its last (raises LedgerError)."""
    fold = _TranscriptFold(log, with_items=with_items)
    for _, line in chain.forward(ledger, log):
        fold.see(line)
    return fold.finish()


class _TranscriptFold(LedgerFold):
    def __init__(self, log: SkipLog, *, with_items: bool) -> None:
        super().__init__()
        self.log = log
        self.with_items = with_items
        self.found = Transcript()
        self._outcome: dict[str, bool] = {}
        self._answered: dict[str, bool] = {}
        self._call_ids: list[str | None] = []
        self._recalls: set[str] = set()
        """Calls that a memory answers."""
        self._held = 0

    def see(self, line: Line) -> None:
        self.found.lines += 1
        self.found.ended = line.timestamp or self.found.ended
        super().see(line)

    def damaged(self, line: Line) -> None:
        self.log.add(Skipped(line.offset, line.size, "bad_item"))

    def compacted(self, line: Line) -> None:
        rollout.compacted(line)
        if not line.is_repeat and self._room(_ENTRY_COST):
            self.found.compactions.append(CompactionMark(self.turn, line.timestamp))

    def finish(self) -> Transcript:
        for call, call_id in zip(self.found.calls, self._call_ids, strict=True):
            if call_id is not None:
                call.ok = self._outcome.get(call_id, self._answered.get(call_id, False))
        self.found.turns = self.turn
        return self.found

    def event(self, line: Line, kind: str) -> None:
        if kind == events.ITEM_COMPLETED:
            shown = events.event(line.payload).item
            if shown and shown.id and (ok := _shown_outcome(shown)) is not None and self._room(_ENTRY_COST):
                self._outcome[shown.id] = ok

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        if line.is_repeat:
            return
        origin = line.source()
        match view:
            case items.Message(role="user"):
                if (said := fragments.own_words(view)) and self._room(len(said)):
                    self.found.user_texts.append(said)
            case items.FunctionCall() | items.CustomToolCall():
                self._call(view.name, view.call_id)
                self._note_recall(view)
            case items.LocalShellCall():
                self._call("local_shell", view.call_id)
            case items.FunctionCallOutput() | items.CustomToolCallOutput():
                noted = origin.ok if origin is not None else None
                self._answer(view.call_id, ok=output_ok(view.output) if noted is None else noted)
            case items.ToolSearchOutput():
                self._answer(view.call_id, ok=view.status == "completed")
            case items.ToolSearchCall():
                self._call("tool_search", view.call_id)
            case items.WebSearchCall():
                self._call("web_search", None, ok=view.status != "failed")
            case items.ImageGenerationCall():
                self._call("image_generation", None, ok=view.status != "failed")
            case _:
                pass
        if self.with_items and self._room(line.size):
            item = msgspec.Raw(items.wire(line.payload))
            noted = view.internal_chat_message_metadata_passthrough if isinstance(view, items.Message) else None
            told = TranscriptItem(self.turn, line.timestamp, line.offset, item)
            told.source_id = (origin.id if origin is not None else "") or None
            told.kinds = noted.content_item_kinds if noted is not None else None
            told.from_memory = self._is_recalled(view) or (origin is not None and origin.memory)
            self.found.items.append(told)

    def _note_recall(self, call: items.FunctionCall | items.CustomToolCall) -> None:
        arguments = call.arguments if isinstance(call, items.FunctionCall) else call.input
        namespace = call.namespace if isinstance(call, items.FunctionCall) else None
        if memory_traces.is_memory_tool(call.name, namespace) or memory_traces.reads_memory(arguments):
            self._recalls.add(call.call_id)

    def _is_recalled(self, view: items.View) -> bool:
        """Say whether an item came out of a memory: what a memory's tool gave, or what was told of one."""
        match view:
            case items.FunctionCallOutput() | items.CustomToolCallOutput():
                return view.call_id in self._recalls
            case items.Message(role="developer" | "user"):
                return fragments.is_recalled(view)
            case _:
                return False

    def note(self, line: Line) -> None:
        note = msgspec.json.decode(line.payload, type=dict[str, Any])
        kind = note.get("kind")
        if kind == "retention" and self.found.compactions:
            self.found.compactions[-1].score = note.get("score")
        elif kind == "skipped":
            self.log.add(msgspec.convert(note, Skipped))

    def _call(self, name: str, call_id: str | None, *, ok: bool = False) -> None:
        if self._room(_ENTRY_COST):
            self.found.calls.append(TranscriptCall(name, ok))
            self._call_ids.append(call_id)

    def _answer(self, call_id: str | None, *, ok: bool) -> None:
        if call_id is not None and self._room(_ENTRY_COST):
            self._answered[call_id] = ok

    def _room(self, size: int) -> bool:
        self._held += size
        return self._held <= MAX_TEXT_BYTES


def _shown_outcome(item: events.TurnItem) -> bool | None:
    """Return how a call went, by what the client was shown of it."""
    if item.exit_code is not None:
        return item.exit_code == 0
    if item.status in ("failed", "declined"):
        return False
    return True if item.status == "completed" else None


class _ToolOutcome(msgspec.Struct):
    metadata: _ToolMetadata | None = None
    success: bool | None = None


class _ToolMetadata(msgspec.Struct):
    exit_code: int | None = None


_old_output = msgspec.json.Decoder(_ToolOutcome)


def output_ok(output: str | list[items.Content]) -> bool:
    """Say whether a tool's output tells of success: by its exit code, else by how it begins."""
    text = output if isinstance(output, str) else "\n".join(part.text for part in output if part.text)
    head = text[:2000]
    if head.startswith("{"):
        try:
            old = _old_output.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return True
        code = old.metadata.exit_code if old.metadata else None
        return code in (None, 0) and old.success is not False
    if found := _EXIT_CODE.search(head.partition("\nOutput:")[0] + "\n"):
        return found[1] == "0"
    return not _FAILED.match(head)
