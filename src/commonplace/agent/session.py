"""A session: one open thread, composed of small owners, each of which alone changes its part of the state.

    ledger      the write path: history, then file, then listeners        `SessionLedger`
    prompt      the items of the next request, and what the model knows   `PromptState`
    usage       tokens and rate limits                                    `SessionUsage`
    turns       the running turn, and inputs that wait                    `TurnQueue`
    approvals   questions to a person, and what was allowed               `ApprovalRequests`
    sandbox     what commands may do, and how they are confined           `SessionSandbox`
    snapshots   the working tree before a turn changes it                 `TurnSnapshots`
    hooks       the person's own commands                                 `SessionHooks`

`agent.turn` runs turns on a session, `agent.open_session` makes one. The session itself changes only which profile and
which model it has, and only between turns.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from commonplace.agent import events, stored_thread
from commonplace.agent.approvals.requests import ApprovalRequests, Decision
from commonplace.agent.hooks.session_hooks import SessionHooks, Start
from commonplace.agent.profile import Profile
from commonplace.agent.prompt_state import PromptState
from commonplace.agent.sandbox.session_sandbox import SessionSandbox
from commonplace.agent.session_environment import SessionEnvironment
from commonplace.agent.session_ledger import Listener, SessionLedger
from commonplace.agent.session_usage import SessionUsage
from commonplace.agent.tools.processes import Processes
from commonplace.agent.tools.registry import Registry, Tool
from commonplace.agent.turn_snapshots import TurnSnapshots
from commonplace.agent.turn_state import TurnQueue, TurnState
from commonplace.agent.user_input import UserInput
from commonplace.context import injected_messages, instructions
from commonplace.context.history import History
from commonplace.context.injected_messages import InjectedText
from commonplace.errors import BadInput, CommonplaceError, ToolError
from commonplace.models.base import Model
from commonplace.protocol.ids import new_id
from commonplace.rollout.recorder import Recorder

if TYPE_CHECKING:
    from commonplace.agent.servers.pool import Servers


class InitialState(msgspec.Struct, kw_only=True):
    """What a session starts from: nothing for a new thread, what the ledger says for an old one."""

    thread_id: str
    prompt: PromptState
    processes: Processes
    tasks: TaskGroup
    """Background tasks run in it until the session is closed."""
    recorder: Recorder | None = None
    """None: the session is ephemeral and leaves no file."""
    start: Start = "startup"
    """Why the session starts, for hooks."""


class Session:
    """One open thread. It belongs to one event loop; end it with `close`."""

    def __init__(
        self, profile: Profile, model: Model, tools: Registry, environment: SessionEnvironment, initial: InitialState
    ) -> None:
        self.thread_id = initial.thread_id
        self.profile = profile
        """The settings of the next turn; a running turn has its own."""
        self.model = model
        self.tools = tools
        self.environment = environment
        self.processes = initial.processes
        self.prompt = initial.prompt
        self.turns = TurnQueue()
        self.usage = SessionUsage(self.prompt.history)
        self.ledger = SessionLedger(self.thread_id, self.prompt, self.turns, initial.recorder, environment.now)
        self.approvals = ApprovalRequests(self.ledger.publish, self.thread_id, profile.allowed, profile.cwd)
        self.sandbox = SessionSandbox(environment.variables)
        self.snapshots = TurnSnapshots(self.ledger, environment.now)
        self.hooks = SessionHooks(self.ledger, profile, environment.variables, initial.start)
        self.instructions = (
            instructions.GlobalInstructions() if profile.bare else instructions.read_global(profile.home)
        )
        """The person's own standing instructions."""
        self._tasks = initial.tasks
        self._warnings: set[str] = set()
        self._servers: Servers | None = None

    @property
    def history(self) -> History:
        """The items that the next request carries."""
        return self.prompt.history

    @property
    def turn(self) -> TurnState | None:
        """The running turn."""
        return self.turns.running

    # --- For whoever uses the session.

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Pass every event to a function; return what ends that."""
        return self.ledger.listen(listener)

    def steer(self, given: UserInput, expected: str | None = None) -> str:
        """Put input into the running turn; return the turn's id (raises BadInput, as `TurnQueue.steer`)."""
        return self.turns.steer(given, expected)

    def queue(self, given: UserInput) -> None:
        """Run a turn with this input when the present one has ended."""
        self.turns.enqueue(given)

    def notify(self, text: InjectedText) -> None:
        """Tell the model something that starts no turn: at once, or before the next request of the running turn."""
        if self.turn is not None and not self.turn.is_ending:
            self.turn.notify(text)
        else:
            self.record_notices([text])

    def record_notices(self, texts: Iterable[InjectedText]) -> None:
        """Record texts that the model is told unasked."""
        for item in injected_messages.messages(texts):
            self.ledger.record(item)

    def warn_once(self, message: str) -> None:
        """Warn a person, unless this session has done so."""
        if message not in self._warnings:
            self._warnings.add(message)
            self.ledger.warn(message)

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question that was asked (raises BadInput: nobody asked it)."""
        self.approvals.decide(request_id, decision)

    async def interrupt(self) -> None:
        """End the running turn, if there is one; return when it has ended."""
        await self.turns.interrupt()

    async def change_model(self, model: Model) -> None:
        """Use another model from the next turn on; the one before is closed."""
        before, self.model = self.model, model
        await before.aclose()

    async def roll_back(self, turns: int) -> None:
        """Remove the last user turns from the history; the ledger keeps them.

        Raises:
            BadInput: a turn is running, or there is nothing to remove.
            WriteFailed: the ledger could not note it.
        """
        if self.turn is not None or turns < 1:
            raise BadInput("Nothing can be rolled back now.", hint="Wait for the turn's end; give a number above 0.")
        self.prompt.roll_back(turns)
        self.usage.estimate_anew(self.profile)
        self.ledger.note("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
        self.ledger.note("event_msg", self.usage.line())
        await self.ledger.end_turn()
        if self.ledger.path is not None:
            await self._recollect(self.ledger.path)

    async def _recollect(self, path: Path) -> None:
        """Read from the ledger what the model knows after a rollback; if that fails, it is told everything again."""
        with contextlib.suppress(CommonplaceError, OSError):
            stored = await anyio.to_thread.run_sync(stored_thread.read, path, [self.profile.home])
            self.prompt.recollect(stored.state)

    async def close(self) -> None:
        """End the running turn and everything that was started; give the thread up.

        Raises:
            WriteFailed: something could not be written.
        """
        await self.interrupt()
        with anyio.CancelScope(shield=True):
            if self._servers is not None:
                await self._servers.close()
            await self.processes.close()
            await self.model.aclose()
            await self.ledger.close()

    # --- For the loop.

    def start_turn(self, given: UserInput, profile: Profile | None = None) -> TurnState:
        """Begin the turn of an input, with another profile if one is given (raises BadInput: it cannot be used)."""
        turn = self.turns.start(new_id(self.environment.now()), profile or self.profile, given)
        if turn.profile.choice != self.profile.choice:
            self.usage.forget_refusal()
        if turn.profile.cwd != self.profile.cwd:
            self.approvals.allow(turn.profile.cwd, turn.profile.allowed)
            self.tools.update(self.environment.tools(turn.profile.cwd))
        self.profile = turn.profile
        return turn

    def note_external(self, source: str, **fields: Any) -> None:
        """Record that text written elsewhere comes in, since memory may have to keep away from this thread."""
        turn = self.turns.current
        self.ledger.note_own("external", turn_id=turn.id, source=source, **fields)
        if turn.mark_external():
            self.environment.external(self.thread_id)

    def offer(self, tools: Iterable[Tool]) -> None:
        """Offer more tools to the model (raises ValueError: a name is taken)."""
        for tool in tools:
            self.tools.add(tool)

    def withdraw(self, *names: str) -> None:
        """Offer tools no more."""
        self.tools.withdraw(*names)

    def _tell_server(self, server: str, status: events.ServerStatus, error: str | None) -> None:
        turn_id = "" if self.turn is None else self.turn.id
        told = events.ServerChanged(turn_id=turn_id, server=server, status=status, error=error)
        self.ledger.publish(told)

    async def offer_servers(self) -> None:
        """Offer the tools of the configured servers as they are now; servers that do not run are started.

        Raises:
            ToolError: a server that the person requires did not start.
        """
        profile = self.profile
        if not profile.servers:
            return
        if self._servers is None:
            from commonplace.agent.servers.pool import Servers  # slow to load, and most sessions have no servers

            variables, warn = self.environment.variables, self.ledger.warn
            self._servers = Servers(profile.servers, profile.cwd, variables, self._tasks, warn, self._tell_server)
        self.tools.replace(await self._servers.tools(), "mcp__")
        if missing := self._servers.missing():
            raise ToolError("server", f"the server {missing[0]} is required and did not start", hint="See the warning.")
