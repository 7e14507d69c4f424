"""A thread as clients list it: what it says of itself, and its turns with their items as a person saw them.

Items come from the `item_completed` events. Turns without them (older formats, imported sessions) show the messages
of the model's view instead. What was rolled back is left out, and so is context that was injected: only what a person
said begins a turn.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from commonplace.protocol import citations, events, items
from commonplace.protocol.ids import parse_time
from commonplace.protocol.rollout import GitInfo, Line, SessionMeta
from commonplace.protocol.turns import is_boundary
from commonplace.rollout import blobs, chain, thread_names
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, SkipLog, read_head
from commonplace.rollout.fold import LedgerFold
from commonplace.sessions.resolve import SessionFile
from commonplace.state.home import Home
from commonplace.state.thread_pages import ThreadRow

TurnOutcome = Literal["completed", "interrupted", "failed", "in_progress"]
_UNNAMED: Final = "turn-{}"


class StoredTurn(msgspec.Struct):
    """One turn of a thread."""

    id: str
    status: TurnOutcome = "in_progress"
    items: list[dict[str, Any]] = []
    """The items in the format of Codex's `item_completed`."""
    started_at: int | None = None
    completed_at: int | None = None
    duration_ms: int | None = None
    error: str | None = None
    error_code: str | None = None
    """The code of the error, where we wrote the file."""
    user_turns: int = 0
    """How many inputs of a person it holds, as a rollback counts them."""
    compacts: bool = False
    """The history was replaced by a shorter one in it, which a rollback leaves as it is."""


class ThreadDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread says of itself."""

    thread_id: str
    session_id: str
    path: Path
    cwd: str
    preview: str
    name: str | None
    provider: str
    created_at: int
    updated_at: int
    version: str
    source: Any
    thread_source: str | None
    originator: str
    forked_from: str | None
    parent: str | None
    agent_nickname: str | None
    agent_role: str | None
    git: GitInfo | None
    history_mode: str
    archived: bool


def describe(home: Home, target: SessionFile, row: ThreadRow | None) -> ThreadDescription:
    """Return what a thread's first line, its name and its row in the index say (raises NotASession, LedgerError)."""
    _, meta = read_head(target.path)
    changed = int(target.path.stat().st_mtime)
    return ThreadDescription(
        thread_id=meta.id,
        session_id=meta.session_id or meta.id,
        path=target.path,
        cwd=meta.cwd,
        preview=row.preview if row is not None else "",
        name=thread_names.read(home.path).get(meta.id),
        provider=meta.model_provider or "",
        created_at=_seconds(row.created_at if row is not None else meta.timestamp, changed),
        updated_at=_seconds(row.updated_at if row is not None else "", changed),
        version=meta.cli_version,
        source=meta.source,
        thread_source=meta.thread_source,
        originator=meta.originator,
        forked_from=meta.forked_from_id,
        parent=meta.parent_thread_id,
        agent_nickname=meta.agent_nickname,
        agent_role=meta.agent_role,
        git=meta.git,
        history_mode=meta.history_mode,
        archived=row.archived if row is not None else False,
    )


def _seconds(text: str, otherwise: int) -> int:
    moment: datetime | None = parse_time(text) if text else None
    return otherwise if moment is None else int(moment.timestamp())


def turns(ledger: Ledger, store: BlobStore) -> list[StoredTurn]:
    """Return the turns of a thread, oldest first (raises LedgerError)."""
    log = SkipLog()
    fold = _TurnFold(ledger.meta)
    for line in blobs.restored((line for _, line in chain.forward(ledger, log)), store, log.add, everything=True):
        fold.see(line)
    return fold.finish()


class _TurnEvent(msgspec.Struct):
    """The fields of the events that begin and end a turn."""

    turn_id: str | None = None
    started_at: int | None = None
    completed_at: int | None = None
    duration_ms: int | None = None
    error: Any = None


class _ItemEvent(msgspec.Struct):
    item: dict[str, Any]
    turn_id: str | None = None


class _TurnFold(LedgerFold):
    """Collects turns; `_plain` holds the messages of turns that have no items of their own."""

    def __init__(self, meta: SessionMeta) -> None:
        super().__init__()
        self._meta = meta
        self._turns: list[StoredTurn] = []
        self._plain: dict[str, list[dict[str, Any]]] = {}
        self._gone: set[str] = set()
        """Turns that were rolled back; a command that one of them started may end later."""
        self._is_open = False

    def finish(self) -> list[StoredTurn]:
        for turn in self._turns:
            if not turn.items:
                turn.items = self._plain.get(turn.id, [])
        return [turn for turn in self._turns if turn.items or turn.status != "in_progress"]

    def turn_started(self, line: Line) -> None:
        found = msgspec.json.decode(line.payload, type=_TurnEvent)
        self._begin(found.turn_id, found.started_at)

    def turn_ended(self, line: Line, *, aborted: bool) -> None:
        if not self._is_open:
            return
        found = msgspec.json.decode(line.payload, type=_TurnEvent)
        turn, self._is_open = self._turns[-1], False
        turn.completed_at, turn.duration_ms = found.completed_at, found.duration_ms
        turn.error, turn.error_code = _message(found.error), _code(found.error)
        turn.status = "interrupted" if aborted else "failed" if turn.error is not None else "completed"

    def rolled_back(self, count: int) -> None:
        while self._turns and count > 0:
            gone = self._turns.pop()
            self._gone.add(gone.id)
            count -= gone.user_turns
        self._is_open = False

    def compacted(self, line: Line) -> None:
        if self._turns:
            self._turns[-1].compacts = True

    def event(self, line: Line, kind: str) -> None:
        if kind == events.ITEM_COMPLETED:
            found = msgspec.json.decode(line.payload, type=_ItemEvent)
            if found.turn_id in self._gone:
                return
            self._current(found.turn_id).items.append(found.item)

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        if not isinstance(view, items.Message):
            return
        words = "\n".join(part.text for part in view.content if part.text)
        if is_boundary(view):
            if begins_turn and not self._is_open:
                self._begin(None, _seconds(line.timestamp or "", 0) or None)
                self._turns[-1].status, self._is_open = "completed", False
            turn = self._current(None)
            turn.user_turns += 1
            self._tell(turn, {"type": "UserMessage", "content": [{"type": "text", "text": words, "text_elements": []}]})
        elif view.role == "assistant" and self._turns:
            shown = citations.strip(words)[0]
            told: dict[str, Any] = {"type": "AgentMessage", "content": [{"type": "Text", "text": shown}]}
            self._tell(self._turns[-1], {**told, "phase": view.phase})

    def _tell(self, turn: StoredTurn, item: dict[str, Any]) -> None:
        told = self._plain.setdefault(turn.id, [])
        told.append({"id": f"{turn.id}-{len(told)}", **item})

    def _begin(self, turn_id: str | None, started_at: int | None) -> None:
        name = turn_id or _UNNAMED.format(len(self._turns) + 1)
        self._turns.append(StoredTurn(id=name, started_at=started_at))
        self._is_open = True

    def _current(self, turn_id: str | None) -> StoredTurn:
        """Return the turn with an id, else the newest."""
        if turn_id is not None:
            found = next((turn for turn in reversed(self._turns) if turn.id == turn_id), None)
            if found is not None:
                return found
        if not self._turns or turn_id is not None:
            self._begin(turn_id, None)
        return self._turns[-1]


def _code(error: Any) -> str | None:
    code: Any = error.get("code") if isinstance(error, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return code if isinstance(code, str) else None


def _message(error: Any) -> str | None:
    if isinstance(error, dict):
        text: Any = error.get("message")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return text if isinstance(text, str) else "The turn failed."
    return error if isinstance(error, str) else None
