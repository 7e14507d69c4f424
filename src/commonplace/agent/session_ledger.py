"""The only write path of a session: an item goes into the history, then into the ledger's file, then to listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.agent import events, ledger_lines
from commonplace.agent.prompt_state import PromptState
from commonplace.agent.turn_state import TurnQueue
from commonplace.context.history_items import HistoryEntry
from commonplace.context.truncate import OUTPUT_POLICY
from commonplace.errors import CommonplaceError
from commonplace.protocol import items
from commonplace.protocol.rollout import OWN_TYPE
from commonplace.rollout.recorder import Recorder

Listener = Callable[[events.Event], None]
_PASSTHROUGH: Final = items.PASSTHROUGH.encode()


class SessionLedger:
    """Records what happens in a session and tells it to listeners.

    Invariants: what a listener is told about a finished item was recorded before; every item is recorded with the id of
    the turn that it belongs to; lines that could not be written are kept for the next try, and `flush` says so. An
    ephemeral session has no recorder: it keeps its history, tells its listeners and writes nothing.
    """

    def __init__(
        self,
        thread_id: str,
        prompt: PromptState,
        turns: TurnQueue,
        recorder: Recorder | None,
        now: Callable[[], datetime],
    ) -> None:
        self.thread_id = thread_id
        self.recorder = recorder
        self._prompt = prompt
        self._turns = turns
        self._now = now
        self._listeners: list[Listener] = []
        self._watchers: list[Callable[[str, bytes], None]] = []

    @property
    def path(self) -> Path | None:
        """The thread's file; None for an ephemeral session."""
        return self.recorder.path if self.recorder is not None else None

    # --- Writing.

    def record(self, item: Mapping[str, Any] | bytes, metadata: Mapping[str, Any] | None = None) -> HistoryEntry | None:
        """Put an item into the history and the file; None if it is of a kind that no history holds."""
        turn = self._turns.running
        raw = _with_turn(item if isinstance(item, bytes) else msgspec.json.encode(item), turn.id if turn else None)
        encoded = b"" if metadata is None else msgspec.json.encode(metadata)
        entry = self._prompt.add(raw, encoded, turn.profile.policy if turn else OUTPUT_POLICY)
        if entry is not None:
            self.note("response_item", msgspec.Raw(raw), metadata)
            for watcher in self._watchers:
                watcher(turn.id if turn else "", raw)
        return entry

    def note(self, line_type: str, payload: Any, metadata: Mapping[str, Any] | None = None) -> None:
        """Put a line into the file that is no item."""
        if self.recorder is not None:
            self.recorder.record(line_type, payload, metadata)

    def note_own(self, kind: str, **fields: Any) -> None:
        """Put a line into the file of a kind that only this program writes."""
        self.note(OWN_TYPE, {"kind": kind, **fields})

    def complete(self, item: events.Item, began: datetime | None = None, turn_id: str | None = None) -> None:
        """Record a finished item as a person sees it, and tell listeners of it; it is one of the running turn, or
        of the turn that is given.
        """
        turn_id, now = turn_id or self._turns.current.id, self._now()
        self.note("event_msg", ledger_lines.item_completed(self.thread_id, turn_id, item, now, began or now))
        self.publish(events.ItemCompleted(turn_id=turn_id, item=item))

    # --- Telling.

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Pass every event to a function; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def watch(self, watcher: Callable[[str, bytes], None]) -> None:
        """Pass the turn and the bytes of every item that is recorded to a function."""
        self._watchers.append(watcher)

    def publish(self, event: events.Event) -> None:
        """Pass an event to all listeners; it is not recorded."""
        for listener in [*self._listeners]:
            listener(event)

    def warn(self, message: str) -> None:
        """Tell listeners of a problem that stops nothing."""
        turn = self._turns.running
        self.publish(events.Warned(turn_id=turn.id if turn else "", message=message))

    # --- Barriers.

    async def flush(self) -> None:
        """Return when everything so far is in the file (raises WriteFailed)."""
        if self.recorder is not None:
            await self.recorder.flush()

    async def persist(self) -> None:
        """Make the file, if it is not there yet, and write everything so far into it (raises WriteFailed)."""
        if self.recorder is not None:
            await self.recorder.persist()

    async def end_turn(self) -> None:
        """Write everything so far as safely as the settings ask for at the end of a turn (raises WriteFailed)."""
        if self.recorder is not None:
            await self.recorder.end_turn()

    async def close(self) -> None:
        """Write everything and give the file up; it is given up also where that fails (raises WriteFailed)."""
        if self.recorder is not None:
            try:
                await self.recorder.close()
            except CommonplaceError:
                self.recorder.abandon()
                raise


def _with_turn(raw: bytes, turn_id: str | None) -> bytes:
    """Return an item with the id of its turn beside its own fields; the fields themselves keep their bytes."""
    if turn_id is None or _PASSTHROUGH in raw:
        return raw if turn_id is None else _merged(raw, turn_id)
    noted = b'"%s":{"turn_id":"%s"}' % (_PASSTHROUGH, turn_id.encode())
    body = raw.rstrip()[:-1].rstrip()
    return body + (b"" if body.endswith(b"{") else b",") + noted + b"}"


def _merged(raw: bytes, turn_id: str) -> bytes:
    """Return an item that has such a field already, with the id added to it."""
    fields = msgspec.json.decode(raw, type=dict[str, Any])
    noted = fields.get(items.PASSTHROUGH)
    if not isinstance(noted, dict) or "turn_id" in noted:
        return raw
    return msgspec.json.encode({**fields, items.PASSTHROUGH: {"turn_id": turn_id, **noted}})
