"""Reconstruction: the newest lines of a ledger become the state of the session. A pure function of the lines.

Two passes. The first goes from the newest line backwards and cuts the past into turns, until it has met the newest
checkpoint that still counts and the settings of the last user turn. The second replays the lines after that checkpoint,
oldest first, into a history.

A rollback undoes the turns before it. What it does to a compaction follows Codex 0.166: one that carries its resume
metadata stands, and the rollback drops turns from what it left; an older one inside an undone turn is undone with it,
and the history is rebuilt from what stood before. Where no turn events follow the checkpoint before it, a compaction
cannot be told to belong to a turn; there it stands too.

Invariants: the result does not depend on how much older text the file has; lines that cannot be used are reported and
change nothing; nothing is held beyond `LIVE_BYTES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from commonplace.context import world_state as world
from commonplace.context.history import History
from commonplace.protocol import events, ids, items, rollout, turns
from commonplace.protocol.rollout import Compacted, Line, PreviousSettings, SessionMeta, Skipped, TurnContext
from commonplace.rollout.checkpoint import LIVE_BYTES, SLACK_BYTES


class WindowIdentity(msgspec.Struct, frozen=True):
    """Identity of the current context window."""

    number: int
    first_id: str | None = None
    previous_id: str | None = None
    id: str | None = None


class Reconstruction(msgspec.Struct):
    """A session as it stood at its last line."""

    history: History
    window: WindowIdentity
    turns: int
    """User turns that the lines since the checkpoint belong to, after rollbacks."""
    previous: PreviousSettings | None
    """What the last user turn ran with."""
    reference: TurnContext | None
    """The context that the model was last told in full; None means that the next turn tells it again."""
    world_state: dict[str, Any] | None
    checkpoint: Line | None
    skipped: list[Skipped]
    """Lines that are JSON but not what their type says."""

    @property
    def last_id(self) -> str | None:
        """The id of the newest item that has one."""
        return next((entry.view.id for entry in reversed(self.history.entries) if entry.view.id), None)


class _Segment(msgspec.Struct):
    """One turn as seen from its end, while its beginning is not reached yet."""

    turn_id: str | None = None
    is_user_turn: bool = False
    previous: PreviousSettings | None = None
    noted: PreviousSettings | None = None
    """The settings of the last user turn, as a compaction in this one noted them."""
    reference: TurnContext | None = None
    reference_cleared: bool = False
    worlds: list[Line] = []
    window: WindowIdentity | None = None

    def compatible(self, turn_id: str | None) -> bool:
        return self.turn_id is None or turn_id is None or self.turn_id == turn_id


class _Scan:
    """The backward pass."""

    def __init__(self, history_mode: str) -> None:
        self.history_mode = history_mode
        self.segment: _Segment | None = None
        self.pending_rollback = 0
        self.saw_turn_events = False
        self.kept: list[Line] = []
        self.undone: set[int] = set()
        """Places in `kept` of compactions that a rollback undid."""
        self.base: Line | None = None
        self.compactions = 0
        self.saw_unnumbered = False
        self.window: WindowIdentity | None = None
        self.previous: PreviousSettings | None = None
        self.reference: TurnContext | None = None
        self.reference_known = False
        self.worlds: list[Line] = []
        self.skipped: list[Skipped] = []
        self.turns = 0
        self.counting = True
        """Until the turn that holds the checkpoint is closed, turns belong to the live window."""
        self.held = 0
        self.beyond = 0
        self.searched = 0
        """How far before an undone compaction no turn event was met: past the slack, there are none."""

    def run(self, newest_first: Iterable[Line]) -> None:
        for line in newest_first:
            if self.base is not None:
                self.beyond += line.size
                if self.beyond > SLACK_BYTES:
                    break
            try:
                self._see(line)
            except (msgspec.DecodeError, RecursionError):
                if self.base is None:
                    self.skipped.append(Skipped(line.offset, line.size, "bad_item"))
            if self.undone and not self.saw_turn_events:
                self.searched += line.size
                if self.searched > SLACK_BYTES:
                    self._reinstate()
            if self.base is None and self.held > LIVE_BYTES:
                self.skipped.append(Skipped(0, line.offset, "beyond_bound"))
                break
            if self.base is not None and self.previous and self.reference_known and self.window:
                break
        self._finalise()
        self._reinstate()

    def _keep(self, line: Line) -> None:
        if self.base is None:
            self.kept.append(line)
            self.held += line.size

    def _open(self) -> _Segment:
        if self.segment is None:
            self.segment = _Segment()
        return self.segment

    def _see(self, line: Line) -> None:
        match line.type:
            case "response_item":
                is_boundary = turns.is_boundary(items.view(line.payload))
                self._open().is_user_turn |= is_boundary
                self._keep(line)
            case "event_msg":
                self._event(line, events.event(line.payload))
            case "compacted":
                self._compacted(line, rollout.compacted(line))
            case "turn_context":
                self._turn_context(rollout.turn_context(line))
            case "world_state":
                self._open().worlds.append(line)
            case "inter_agent_communication":
                self._open().is_user_turn = True
                self._keep(line)
            case _:
                pass

    def _event(self, line: Line, event: events.Event) -> None:
        if event.type in events.TURN_STARTED:
            self.saw_turn_events = True
            if self.segment is not None and self.segment.compatible(event.turn_id):
                self._finalise()
        elif event.type in events.TURN_COMPLETE:
            self.saw_turn_events = True
            segment = self._open()
            segment.turn_id = segment.turn_id or event.turn_id
        elif event.type == events.TURN_ABORTED:
            self.saw_turn_events = True
            if self.segment is not None or event.turn_id:
                segment = self._open()
                segment.turn_id = segment.turn_id or event.turn_id
        elif event.type == events.ROLLED_BACK:
            self.pending_rollback += max(0, event.num_turns)
            self._keep(line)
        elif event.type == events.USER_MESSAGE:
            self._open().is_user_turn = True

    def _compacted(self, line: Line, compaction: Compacted) -> None:
        segment = self._open()
        segment.worlds.append(line)
        self.compactions += 1
        self.saw_unnumbered |= compaction.number() is None
        segment.window = segment.window or _window(compaction)
        if segment.reference is None:
            segment.reference_cleared = True
        if segment.noted is None and compaction.resume_metadata and self.base is None:
            segment.noted = compaction.resume_metadata.previous_turn_settings
        if self.base is not None:
            return
        if compaction.replacement_history is None:
            self._keep(line)
        elif self.pending_rollback and not compaction.is_final(self.history_mode):
            self.undone.add(len(self.kept))
            self._keep(line)
        else:
            self.window = self.window or segment.window
            self._start_from(line, compaction)
            self._reinstate()

    def _start_from(self, line: Line, compaction: Compacted) -> None:
        """Make a compaction the checkpoint; its window stands with it, even if a rollback undoes its turn."""
        self.base = line
        self.window = self.window or _window(compaction)

    def _reinstate(self) -> None:
        """Start from the newest compaction if no turn event follows it: then no compaction was part of an
        undone turn.
        """
        if self.undone and not self.saw_turn_events:
            newest = min(self.undone)
            line, self.kept = self.kept[newest], self.kept[:newest]
            self.undone.clear()
            self._start_from(line, rollout.compacted(line))

    def _turn_context(self, context: TurnContext) -> None:
        segment = self._open()
        segment.turn_id = segment.turn_id or context.turn_id
        if not segment.compatible(context.turn_id):
            return
        segment.previous = PreviousSettings(context.model, context.comp_hash, context.collaboration_mode)
        if segment.reference is None and not segment.reference_cleared:
            segment.reference = context

    def _finalise(self) -> None:
        """Close the open turn: it counts, unless a later rollback undid it."""
        segment, self.segment = self.segment, None
        if segment is None:
            return
        if self.pending_rollback > 0:
            self.pending_rollback -= segment.is_user_turn
            return
        self.turns += segment.is_user_turn and self.counting
        self.counting = self.base is None
        self.worlds.extend(segment.worlds)
        self.window = self.window or segment.window
        if self.previous is None:
            self.previous = (segment.previous if segment.is_user_turn else None) or segment.noted
        if not self.reference_known:
            if segment.reference is not None and segment.is_user_turn:
                self.reference, self.reference_known = segment.reference, True
            elif segment.reference_cleared:
                self.reference_known = True


def reconstruct(newest_first: Iterable[Line], meta: SessionMeta) -> Reconstruction:
    """Rebuild a session from its lines, newest first; stops pulling them as soon as it knows enough."""
    scan = _Scan(meta.history_mode)
    scan.run(newest_first)
    replay = _Replay(scan)
    history = replay.run()
    return Reconstruction(
        history=history,
        window=_current_window(scan, meta),
        turns=scan.turns if scan.saw_turn_events else replay.counter.turns,
        previous=scan.previous,
        reference=None if replay.context_lost else scan.reference,
        world_state=_world_state(scan.worlds),
        checkpoint=scan.base,
        skipped=scan.skipped,
    )


class _Replay:
    """The forward pass."""

    def __init__(self, scan: _Scan) -> None:
        self.scan = scan
        self.history = History()
        self.counter = turns.TurnCounter()
        self.context_lost = False

    def run(self) -> History:
        if self.scan.base is not None:
            self._replace(self.scan.base)
        kept = self.scan.kept
        for place in range(len(kept) - 1, -1, -1):
            if place not in self.scan.undone:
                self._apply(kept[place])
            kept[place] = None  # type: ignore[call-overload]  # frees each line once it is replayed
        return self.history

    def _apply(self, line: Line) -> None:
        if line.type == "response_item":
            entry = self.history.record(line.payload, line.metadata)
            if entry is not None and turns.is_boundary(entry.view):
                self.counter.boundary()
        elif line.type == "inter_agent_communication":
            self.history.record(_as_agent_message(line.payload))
            self.counter.boundary()
        elif line.type == "compacted":
            found = rollout.compacted(line)
            if found.replacement_history is not None:
                self._replace(line)
            else:
                self.history.compact_without_replacement(found.message)
                self.context_lost = True
        else:
            count = events.event(line.payload).num_turns
            self.context_lost |= self.history.drop_last_user_turns(count)
            self.counter.rolled_back(count)

    def _replace(self, line: Line) -> None:
        damaged = self.history.replace(rollout.compacted(line).replacement_history or ())
        if damaged:
            self.scan.skipped.append(Skipped(line.offset, line.size, "bad_item"))


def _as_agent_message(payload: msgspec.Raw) -> bytes:
    """Turn mail in the older line format into the item that it is today."""
    mail: dict[str, Any] = msgspec.json.decode(payload)
    content: list[dict[str, Any]] = [{"type": "input_text", "text": str(mail.get("content", ""))}]
    if mail.get("encrypted_content"):
        content = [{"type": "encrypted_content", "encrypted_content": mail["encrypted_content"]}]
    item = {
        "type": "agent_message",
        "author": mail["author"],
        "recipient": mail["recipient"],
        "content": content,
    }
    return msgspec.json.encode({**item, **({"id": mail["id"]} if mail.get("id") else {})})


def _window(compaction: Compacted) -> WindowIdentity | None:
    """Return the window that begins with a compaction, or None where it has no number."""
    number = compaction.number()
    if number is None:
        return None
    window_id = compaction.window_id if isinstance(compaction.window_id, str) else None
    known = (
        text if text and ids.is_uuid(text) else None
        for text in (compaction.first_window_id, compaction.previous_window_id)
    )
    first, previous = known
    return WindowIdentity(number, first, previous, window_id if window_id and ids.is_uuid(window_id) else None)


def _current_window(scan: _Scan, meta: SessionMeta) -> WindowIdentity:
    if scan.window is not None:
        return scan.window
    if meta.context_window is not None and not scan.saw_unnumbered:
        first = meta.context_window.window_id
        return WindowIdentity(0, first, None, first)
    return WindowIdentity(scan.compactions)


def _world_state(newest_first: list[Line]) -> dict[str, Any] | None:
    """Replay snapshots and patches, oldest first; a compaction forgets what was known."""
    state: dict[str, Any] | None = None
    for line in reversed(newest_first):
        if line.type == "compacted":
            state = None
            continue
        try:
            found = rollout.world_state(line)
        except msgspec.DecodeError:
            continue
        if found.full:
            state = found.state
        elif state is not None:
            state = world.apply(state, found.state)
    return state
