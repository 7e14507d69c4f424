"""The running turn, and the inputs that wait for a turn of their own.

`TurnState` is one turn from its start to its end; `TurnQueue` holds the one that runs. Everybody reads their fields;
only their methods change them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anyio

from commonplace.agent import events
from commonplace.agent.profile import Profile
from commonplace.agent.tools.memory_reads import MemoryRead
from commonplace.agent.user_input import UserInput
from commonplace.context import additional
from commonplace.context.injected_messages import InjectedText
from commonplace.errors import BadInput
from commonplace.protocol.citations import Citation

ClientContext = Sequence[Mapping[str, Any]]
"""Items that tell what a client knows about the moment; they are recorded before the person's words."""


class TurnState:
    """One turn.

    Invariants: its profile and first input never change; once interrupted or stopped it stays so, and the first reason
    to stop counts; an input that was steered in is taken out once, in the order in which it came.
    """

    def __init__(
        self, turn_id: str, profile: Profile, given: UserInput, context: ClientContext, *, steerable: bool = True
    ) -> None:
        self.id = turn_id
        self.profile = profile
        """The settings that the whole turn runs under."""
        self.given = given
        self.context = context
        self.steerable = steerable
        """Whether more input can be steered in; a turn that only compacts takes none."""
        self.scope = anyio.CancelScope()
        """Everything that the turn does runs inside it."""
        self.interrupted = False
        self.is_ending = False
        """The loop is over; no more input can be steered in."""
        self.stopped: str | None = None
        """Why a hook or a tool ended the turn; None while it goes on."""
        self.message: str | None = None
        """The model's last message."""
        self.first_token: float | None = None
        """When the first text arrived, on the monotonic clock."""
        self.plan: events.Plan | None = None
        self.memory_reads: list[MemoryRead] = []
        """The memories that commands read; they are counted when the turn is over."""
        self.citations: list[Citation] = []
        self.is_external = False
        """Whether text that was written elsewhere (the web, a server) came in."""
        self.end_refusals = 0
        """How often hooks kept the turn from ending."""
        self._notices: list[InjectedText] = []
        self._steered: deque[tuple[ClientContext, UserInput]] = deque()
        self._compacted_for_room = False
        self._is_rerouted = False

    # --- Stopping it.

    def interrupt(self) -> None:
        """Cancel whatever the turn is doing."""
        self.interrupted = True
        self.scope.cancel()

    def mark_cancelled(self) -> None:
        """Note that the task around the turn was cancelled; its end is then recorded as an interrupt."""
        self.interrupted = True

    def stop(self, reason: str) -> bool:
        """Let the turn end after what it is doing; return whether this is the first reason."""
        is_first = self.stopped is None
        if is_first:
            self.stopped = reason
        return is_first

    def begin_ending(self) -> None:
        """Take no more input from now on."""
        self.is_ending = True

    def refuse_end(self) -> int:
        """Count that hooks kept the turn from ending; return how often they have."""
        self.end_refusals += 1
        return self.end_refusals

    # --- Input that comes while it runs.

    @property
    def steered_inputs(self) -> int:
        """How many inputs were steered in and are not taken out yet."""
        return len(self._steered)

    def steer(self, context: ClientContext, given: UserInput) -> None:
        """Keep an input until the loop takes it, before its next request."""
        self._steered.append((context, given))

    def next_steered(self) -> tuple[ClientContext, UserInput]:
        """Take out the oldest input that was steered in (raises IndexError: there is none)."""
        return self._steered.popleft()

    def notify(self, text: InjectedText) -> None:
        """Keep a text that the model is told with its next request, or with the end of the turn."""
        self._notices.append(text)

    def take_notices(self) -> list[InjectedText]:
        """Take out the texts that the model is to be told."""
        notices, self._notices = self._notices, []
        return notices

    # --- What happened in it.

    def note_message(self, text: str) -> None:
        """Keep the model's newest message."""
        self.message = text

    def note_first_token(self, moment: float) -> None:
        """Note when the first text arrived, on the monotonic clock."""
        self.first_token = moment

    def show_plan(self, plan: events.Plan) -> None:
        """Keep the newest plan."""
        self.plan = plan

    def add_memory_reads(self, reads: Iterable[MemoryRead]) -> None:
        """Keep which memories a command read."""
        self.memory_reads.extend(reads)

    def add_citation(self, citation: Citation) -> None:
        """Keep what an answer cites."""
        self.citations.append(citation)

    def mark_external(self) -> bool:
        """Note that text from elsewhere came in; return whether it is the first of this turn."""
        is_first = not self.is_external
        self.is_external = True
        return is_first

    def note_rerouted(self) -> bool:
        """Note that another model answers; return whether that was not told in this turn."""
        is_first = not self._is_rerouted
        self._is_rerouted = True
        return is_first

    def compact_for_room(self) -> bool:
        """Note that the server refused a request as too long; return False if it did so since the last answer."""
        is_first = not self._compacted_for_room
        self._compacted_for_room = True
        return is_first

    def note_answer(self) -> None:
        """Note that the server answered: a later request may be refused as too long once more."""
        self._compacted_for_room = False


class TurnQueue:
    """The turn that runs, and the inputs whose turns come after it.

    Invariants: at most one turn runs; `interrupt` returns only when no turn runs; what a client told with its inputs is
    told to the model once while it stays the same.
    """

    def __init__(self) -> None:
        self.running: TurnState | None = None
        self._waiting: deque[UserInput] = deque()
        self._client_context = additional.LastGivenContext()
        self._idle = anyio.Event()
        self._idle.set()

    @property
    def current(self) -> TurnState:
        """The turn that runs; whoever asks for it runs inside one."""
        assert self.running is not None, "no turn is running"
        return self.running

    @contextmanager
    def occupied(self, hint: str) -> Generator[None]:
        """Run turns in this block, one after the other (raises BadInput: one is running already)."""
        if self.running is not None:
            raise BadInput("A turn is running.", hint=hint)
        self._idle = anyio.Event()
        try:
            yield
        finally:
            self._idle.set()

    def start(self, turn_id: str, profile: Profile, given: UserInput) -> TurnState:
        """Begin the turn of an input (raises BadInput: its additional context cannot be used)."""
        said = additional.external(given.external.told() if given.external else {})
        self._client_context, context = additional.start(self._client_context, given.context, said)
        self.running = TurnState(turn_id, profile, given, context)
        return self.running

    def start_compaction(self, turn_id: str, profile: Profile) -> TurnState:
        """Begin a turn that only compacts."""
        self.running = TurnState(turn_id, profile, UserInput(), [], steerable=False)
        return self.running

    def finish(self) -> None:
        """Note that the running turn has ended."""
        self.running = None

    def enqueue(self, given: UserInput) -> None:
        """Keep an input for a turn of its own."""
        self._waiting.append(given)

    def next_input(self) -> UserInput | None:
        """Take out the oldest input that waits for a turn; None if none does."""
        return self._waiting.popleft() if self._waiting else None

    def steer(self, given: UserInput, expected: str | None = None) -> str:
        """Put input into the running turn, before its next request; return the turn's id.

        Raises:
            BadInput: no turn is running, it is another one or only compacts, there is nothing to say, or the input
                wants another schema.
        """
        turn = self.running
        if turn is None or turn.is_ending:
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
        said = [*additional.external(given.external.told() if given.external else {}), *given.parts]
        self._client_context, context = additional.steer(self._client_context, given.context, said)
        turn.steer(context[: len(context) - len(given.parts)], given)
        return turn.id

    async def until_idle(self) -> None:
        """Return when no turn runs."""
        await self._idle.wait()

    async def interrupt(self) -> None:
        """End the running turn, if there is one, and drop the inputs that wait; return when no turn runs."""
        if self.running is not None:
            self.running.interrupt()
        self._waiting.clear()
        await self._idle.wait()
