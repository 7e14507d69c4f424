"""A session: one thread that is open, and the only way anything gets into it.

`record` is the write path: an item goes into the history, then into the ledger; `show` tells what a person sees, into
the ledger and then to whoever listens. Nothing else writes. Turns are run by `run`, one at a time, in the task of
whoever calls it (`agent.turn` is the loop); while one runs, input can be steered into it, and `interrupt` ends it.

Invariants: what a listener is told about an item was recorded before; a turn that began is ended by exactly one of
completed, failed and aborted, in the ledger and for listeners, whatever happens inside it; a session that cannot write
says so and keeps what it could not write for the next try.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec

from commonplace.agent import approving, events, lines, told
from commonplace.agent.approving import Approvals
from commonplace.agent.begun import Begun
from commonplace.agent.current import Turn
from commonplace.agent.hooks.points import Points
from commonplace.agent.input import Input
from commonplace.agent.outside import Outside
from commonplace.agent.profile import Profile
from commonplace.agent.skills import Skill
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.registry import Registry
from commonplace.context import additional, injected_messages
from commonplace.context.history_items import Entry
from commonplace.context.progress import Manifest
from commonplace.errors import BadInput, CommonplaceError, ModelError, ToolError
from commonplace.models.base import Limit, Model
from commonplace.models.retries import Pace
from commonplace.protocol import items
from commonplace.protocol.ids import uuid7
from commonplace.protocol.rollout import OWN_TYPE, TurnContext

if TYPE_CHECKING:
    from commonplace.agent.sandbox import Level, Policy
    from commonplace.agent.servers.pool import Servers
    from commonplace.context.digest.tally import Tally

Listener = Callable[[events.Event], None]
_PASSTHROUGH: Final = items.PASSTHROUGH.encode()


class Session:
    """One open thread. Made by `agent.opening`; belongs to one event loop; end it with `close`."""

    def __init__(
        self, thread_id: str, profile: Profile, model: Model, tools: Registry, outside: Outside, begun: Begun
    ) -> None:
        self.thread_id = thread_id
        self.profile = profile
        self.model = model
        self.tools = tools
        self.outside = outside
        self.history = begun.history
        self.window = begun.window
        self.reference: TurnContext | None = begun.reference
        self.baseline: Mapping[str, Any] | None = begun.baseline
        self.previous_model = begun.previous_model
        self.held = injected_messages.held(entry.view for entry in self.history.entries)
        """The injected texts that the history holds, kept up to date by `record`."""
        self.recorder = begun.recorder
        self.processes: Processes = begun.processes
        self.standing = told.standing(profile)
        self.limits: tuple[Limit, ...] = ()
        self.approvals = Approvals(self.tell, thread_id)
        self.approvals.prefixes.update(profile.allowed)
        self.level: Level | None = None
        """How well commands can be confined here, once one was."""
        self.hooks = Points(self, begun.start)
        self.skills: Sequence[Skill] = ()
        self.keeps_snapshots = True
        self.servers: Servers | None = None
        self._tasks = begun.tasks
        self.manifest = Manifest()
        self.pace = Pace()
        self.refused_at: int | None = None
        """The estimate of a request that the server had no room for."""
        self.turn: Turn | None = None
        self._tally: Callable[[], Tally] | None = begun.tally
        self._counted: Tally | None = None
        self._listeners: list[Listener] = []
        self._queue: deque[Input] = deque()
        self._context = additional.Remembered()
        self._idle = anyio.Event()
        self._idle.set()

    @property
    def policy(self) -> Policy:
        """What commands may do."""
        from commonplace.agent import sandbox

        profile = self.profile
        return sandbox.of_session(
            profile.sandbox,
            profile.cwd,
            home=profile.home,
            environment=self.outside.environment,
            roots=profile.roots,
            network=profile.network,
        )

    async def offer_servers(self) -> None:
        """Offer the tools of configured servers as they are now; those that do not run are started.

        Raises:
            ToolError: a server that the person requires is not there.
        """
        if not self.profile.servers:
            return
        from commonplace.agent.servers.pool import Servers

        if self.servers is None:
            profile = self.profile
            self.servers = Servers(profile.servers, profile.cwd, self.outside.environment, self._tasks, self.warn)
        self.tools.replace(await self.servers.tools(), "mcp__")
        if missing := self.servers.missing():
            raise ToolError("server", f"the server {missing[0]} is required and did not start", hint="See the warning.")

    # --- The write path.

    def record(self, item: Mapping[str, Any] | bytes, metadata: Mapping[str, Any] | None = None) -> Entry | None:
        """Put an item into the history and the ledger; None if it is of a kind that no history holds."""
        turn_id = self.turn.id if self.turn is not None else None
        raw = _with_turn(item if isinstance(item, bytes) else msgspec.json.encode(item), turn_id)
        noted = b"" if metadata is None else msgspec.json.encode(metadata)
        entry = self.history.record(raw, noted, self.profile.policy)
        if entry is not None:
            self.held.update(injected_messages.held([entry.view]))
            self.manifest.see(entry.raw, entry.view)
            if self._counted is not None:
                self._counted.see(entry.view)
            self.note("response_item", msgspec.Raw(raw), metadata)
        return entry

    def note(self, line_type: str, payload: Any, metadata: Mapping[str, Any] | None = None) -> None:
        """Put a line into the ledger that is no item; an ephemeral session has none."""
        if self.recorder is not None:
            self.recorder.record(line_type, payload, metadata)

    def own(self, kind: str, **fields: Any) -> None:
        """Put a line of our own into the ledger."""
        self.note(OWN_TYPE, {"kind": kind, **fields})

    def external(self, source: str, **fields: Any) -> None:
        """Note that something comes in from outside, which memory may have to keep away from."""
        turn = self._running()
        self.own("external", turn_id=turn.id, source=source, **fields)
        if not turn.is_external:
            turn.is_external = True
            self.outside.external(self.thread_id)

    def show(self, item: events.Item, began: datetime | None = None) -> None:
        """Tell what a person sees of something that is finished."""
        turn, now = self._running(), self.outside.now()
        self.note("event_msg", lines.item_completed(self.thread_id, turn.id, item, now, began or now))
        self.tell(events.ItemCompleted(turn_id=turn.id, item=item))

    def tell(self, event: events.Event) -> None:
        """Pass an event on; it is not recorded."""
        for listener in [*self._listeners]:
            listener(event)

    def warn(self, message: str) -> None:
        """Tell something that stops nothing."""
        self.tell(events.Warned(turn_id=self.turn.id if self.turn else "", message=message))

    async def flush(self) -> None:
        """Return when everything so far is in the file (raises WriteFailed)."""
        if self.recorder is not None:
            await self.recorder.flush()

    def replace_history(self, replacement: Sequence[bytes]) -> None:
        """Put a compaction's items in place of everything; whoever calls it writes the line."""
        self.history.replace(replacement)
        self.held = injected_messages.held(entry.view for entry in self.history.entries)

    # --- What others ask for.

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have every event passed to a function; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def run(self, given: Input, profile: Profile | None = None) -> events.End:
        """Run a turn, and then those that were queued meanwhile; return how the last one ended.

        Raises:
            BadInput: a turn is running, or the input cannot be used.
        """
        from commonplace.agent import turn as loop

        if self.turn is not None:
            raise BadInput("A turn is running.", hint="Steer it, queue the input, or interrupt it first.")
        self._context, context = additional.start(self._context, given.context, [])
        if profile is not None:
            self.refused_at = self.refused_at if profile.choice == self.profile.choice else None
            self.profile = profile
        self._idle = anyio.Event()
        try:
            end = await loop.run(self, Turn(self._new_id(), given, context))
            while self._queue and not isinstance(end, events.TurnAborted):
                queued = self._queue.popleft()
                self._context, context = additional.start(self._context, queued.context, [])
                end = await loop.run(self, Turn(self._new_id(), queued, context))
            return end
        finally:
            self._idle.set()

    def steer(self, given: Input, expected: str | None = None) -> str:
        """Put input into the running turn, before its next request; return the turn's id.

        Raises:
            BadInput: no turn is running, it is another one or only compacts, there is nothing to say, or it wants
                another schema.
        """
        turn = self.turn
        if turn is None or turn.ending:
            raise BadInput("There is no active turn to steer.", hint="Start one.", reason="no_active_turn")
        if expected is not None and expected != turn.id:
            raise BadInput(
                f"Expected active turn id {expected} but found {turn.id}",
                hint="",
                reason="expected_turn_mismatch",
                expected=expected,
                actual=turn.id,
            )
        if not turn.steerable:
            raise BadInput(
                "The running turn compacts and takes nothing in.",
                hint="Wait for its end.",
                reason="active_turn_not_steerable",
                kind="compact",
            )
        if given.parts and given.schema is not None and given.schema != turn.given.schema:
            raise BadInput(
                "The running turn answers by another schema.",
                hint="Start a turn of its own.",
                reason="active_turn_output_schema_mismatch",
            )
        self._context, context = additional.steer(self._context, given.context, [*given.parts])
        turn.pending.append((context[: len(context) - len(given.parts)], given))
        return turn.id

    def queue(self, given: Input) -> None:
        """Run a turn with this input when the present one has ended."""
        self._queue.append(given)

    def decide(self, request_id: str, decision: approving.Decision) -> None:
        """Answer a question that was asked (raises BadInput: nobody asked it)."""
        self.approvals.decide(request_id, decision)

    async def interrupt(self) -> None:
        """End the running turn, if there is one; return when it has ended."""
        if self.turn is not None:
            self.turn.interrupt()
        self._queue.clear()
        await self._idle.wait()

    async def compact(self) -> events.End:
        """Shorten the history now, as a turn of its own (raises BadInput: a turn is running)."""
        from commonplace.agent import turn as loop

        if self.turn is not None:
            raise BadInput("A turn is running.", hint="Wait for its end, or interrupt it.")
        self._idle = anyio.Event()
        try:
            return await loop.run_compaction(self, Turn(self._new_id(), Input(), [], steerable=False))
        finally:
            self._idle.set()

    async def roll_back(self, turns: int) -> None:
        """Take back the last user turns; the ledger keeps them.

        Raises:
            BadInput: a turn is running, or there is nothing to take back.
            WriteFailed: the ledger could not note it.
        """
        if self.turn is not None or turns < 1:
            raise BadInput("Nothing can be rolled back now.", hint="Wait for the turn's end; give a number above 0.")
        self.history.drop_last_user_turns(turns)
        self.reference = None  # what those turns were told is gone with them
        self.held = injected_messages.held(entry.view for entry in self.history.entries)
        if self._counted is not None:
            self._counted.roll_back(turns)
        self.history.recompute_usage(self.profile.base, self.profile.window.effective)
        self.note("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
        self.note("event_msg", lines.token_count(self.history.info, self.limits))
        if self.recorder is not None:
            await self.recorder.end_turn()
            await self._recollect(self.recorder.path)

    async def _recollect(self, path: Path) -> None:
        """Read from the ledger what the model knows after a rollback; if that fails, it is told everything again."""
        from commonplace.agent import opening

        with contextlib.suppress(CommonplaceError, OSError):
            state = (await anyio.to_thread.run_sync(opening.look, path, [self.profile.home])).state
            self.reference, self.baseline = state.reference, state.world_state
            self.previous_model = state.previous.model if state.previous else None

    async def close(self) -> None:
        """End the running turn and everything that was started; give the thread up.

        Raises:
            WriteFailed: something could not be written.
        """
        await self.interrupt()
        with anyio.CancelScope(shield=True):
            if self.servers is not None:
                await self.servers.close()
            await self.processes.__aexit__(None, None, None)
            await self.model.aclose()
            if self.recorder is not None:
                try:
                    await self.recorder.close()
                except CommonplaceError:
                    self.recorder.abandon()
                    raise

    def estimate(self) -> None:
        """Count an answer of a server that does not count; without that a history would never be full."""
        if self.history.estimate(self.profile.base) > self.history.used():
            self.history.recompute_usage(self.profile.base, self.profile.window.effective)

    def note_refusal(self) -> None:
        """Note that the server had no room for a request: from now on, less is asked of it."""
        self.refused_at = self.history.estimate(self.profile.base)
        window = self.profile.window.effective
        if window is not None:
            self.history.mark_full(window)

    async def pause(self, attempt: int, error: ModelError) -> None:
        """Wait before an answer is asked for again."""
        await self.pace.sleep(self.pace.delay(attempt) if error.retry_after is None else error.retry_after)

    async def count(self, turn: Turn) -> None:
        """Count what of the memory a turn used; that is never worth an error."""
        try:
            for citation in turn.cited:
                receipt = await self.outside.cited(citation)
                if receipt is not None:
                    self.own("citation", turn_id=turn.id, receipt=msgspec.to_builtins(receipt))
            if turn.retrieved:
                self.own("retrieved", turn_id=turn.id, found=msgspec.to_builtins(turn.retrieved))
                await self.outside.retrieved(turn.retrieved)
        except (CommonplaceError, OSError) as error:
            self.warn(f"What memory was used for could not be counted: {error}")

    def tally(self) -> Tally:
        """Return what was counted of the thread so far; of a resumed one, counted now from its file."""
        if self._counted is None:
            from commonplace.context.digest.tally import Tally

            self._counted = self._tally() if self._tally is not None else Tally(str(self.profile.cwd))
            if self._tally is None:
                for entry in self.history.entries:
                    self._counted.see(entry.view)
        return self._counted

    def _running(self) -> Turn:
        assert self.turn is not None, "only a turn shows something"
        return self.turn

    def _new_id(self) -> str:
        return uuid7(int(self.outside.now().timestamp() * 1000), secrets.token_bytes(10))


def _with_turn(raw: bytes, turn_id: str | None) -> bytes:
    """Note beside an item's own fields to which turn it belongs; the item itself stays as it is."""
    if turn_id is None or _PASSTHROUGH in raw:
        return raw if turn_id is None else _merged(raw, turn_id)
    noted = b'"%s":{"turn_id":"%s"}' % (_PASSTHROUGH, turn_id.encode())
    body = raw.rstrip()[:-1].rstrip()
    return body + (b"" if body.endswith(b"{") else b",") + noted + b"}"


def _merged(raw: bytes, turn_id: str) -> bytes:
    fields = msgspec.json.decode(raw, type=dict[str, Any])
    noted = fields.get(items.PASSTHROUGH)
    if not isinstance(noted, dict) or "turn_id" in noted:
        return raw
    return msgspec.json.encode({**fields, items.PASSTHROUGH: {"turn_id": turn_id, **noted}})
