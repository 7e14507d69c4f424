"""One open thread: its turns run beside the requests, its events go to every client that is subscribed.

Notifications of a turn wait until the request that began it was answered, and a turn is told as completed only when the
next one can begin: a client may act on each message at once. A question goes to all clients; the first answer counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import anyio
import msgspec

from commonplace.agent import events
from commonplace.agent.approvals.requests import Decision
from commonplace.agent.thread import Thread
from commonplace.agent.user_input import UserInput
from commonplace.app.book import Book
from commonplace.config.sources import FILE
from commonplace.errors import BadInput, CommonplaceError
from commonplace.surfaces.app_server import items
from commonplace.surfaces.app_server.connection import Connection, Reply
from commonplace.surfaces.app_server.messages import Id, RpcError, invalid
from commonplace.surfaces.app_server.read_state import ReadState
from commonplace.surfaces.app_server.shapes import (
    ActiveStatus,
    Empty,
    ThreadStatus,
    TurnResult,
    TurnSteerResult,
    WireTurn,
)
from commonplace.surfaces.app_server.turn_events import Notice, TurnEvents

Json = dict[str, Any]
_DECISIONS: Final[dict[str, Decision]] = {
    "accept": "approved",
    "acceptForSession": "approved_for_session",
    "acceptWithExecpolicyAmendment": "approved_always",
    "decline": "denied",
    "cancel": "abort",
}


class _Start(msgspec.Struct):
    """A turn that is about to begin: its id, or why it does not."""

    known: anyio.Event
    turn_id: str = ""
    problem: CommonplaceError | None = None


class ServedThread:
    """A thread that is open in this server."""

    def __init__(self, book: Book, thread: Thread, log: Callable[[str], None]) -> None:
        self.thread = thread
        self.subscribers: list[Connection] = []
        self.subscriptions = 0
        """How often a client asked to be told."""
        self._book = book
        self._log = log
        self._events = TurnEvents(
            thread.id,
            book.settings.now,
            book.home / FILE,
            lambda: thread.profile.cwd,
            lambda: thread.path is not None,
        )
        self._held: list[Notice] | None = None
        """Notifications that wait for the answer to the request that caused them."""
        self._end: events.End | None = None
        self._start: _Start | None = None
        self._idle = anyio.Event()
        self._idle.set()
        self._questions: dict[str, anyio.CancelScope] = {}
        thread.listen(self._hear)

    @property
    def id(self) -> str:
        """The thread's id."""
        return self.thread.id

    @property
    def status(self) -> ThreadStatus:
        """Whether a turn runs, and what it waits for."""
        if self._idle.is_set():
            return self._events.rest
        return ActiveStatus(active_flags=["waitingOnApproval"] if self._questions else [])

    @property
    def running(self) -> WireTurn | None:
        """The turn that runs."""
        return self._events.turn

    @property
    def read(self) -> ReadState:
        """What a person has not seen of it."""
        return self._events.read

    def subscribe(self, client: Connection) -> None:
        """Tell a client of everything that happens from now on."""
        self.subscriptions += 1
        if client not in self.subscribers:
            self.subscribers.append(client)

    def unsubscribe(self, client: Connection) -> bool:
        """Tell a client no more; return whether it was told before."""
        if client not in self.subscribers:
            return False
        self.subscribers.remove(client)
        return True

    def was_interrupted(self, turn_id: str) -> bool:
        """Return whether a turn was the last one, and was interrupted."""
        return isinstance(self._end, events.TurnAborted) and self._end.turn_id == turn_id

    def tell_raw_items(self) -> None:
        """Tell clients of every item from now on, as it is recorded."""

        def hear(turn_id: str, raw: bytes) -> None:
            told = {"threadId": self.id, "turnId": turn_id, "item": msgspec.Raw(raw)}
            self._notify(("rawResponseItem/completed", told))

        self.thread.session.ledger.watch(hear)

    async def wait_idle(self) -> None:
        """Return when no turn runs."""
        await self._idle.wait()

    # --- What clients ask for.

    async def start_turn(self, given: UserInput, change: Callable[[], None]) -> Reply:
        """Start a turn, or steer the one that runs (raises RpcError, CommonplaceError)."""
        if self._events.turn is not None and self.thread.session.turn is not None:
            try:
                turn_id = self.thread.steer(given)
            except BadInput as error:
                if error.data.get("reason") != "no_active_turn":  # else it is just ending
                    raise steer_error(error) from None
            else:
                change()
                return Reply(TurnResult(turn=WireTurn(id=turn_id, items_view="notLoaded")))
        await self._idle.wait()
        change()

        async def run() -> None:
            await self.thread.turn(given)

        turn_id = await self._begin(run)
        return Reply(TurnResult(turn=WireTurn(id=turn_id, items_view="notLoaded")), self._release)

    async def start_compaction(self) -> Reply:
        """Start to shorten the history, as a turn of its own (raises RpcError: a turn is running)."""
        if not self._idle.is_set() and self._events.turn is not None and self._end is None:
            raise invalid("A turn is running; wait for its end, or interrupt it.")
        await self._idle.wait()

        async def run() -> None:
            await self.thread.compact()

        await self._begin(run)
        return Reply(Empty(), self._release)

    def steer(self, given: UserInput, expected: str) -> Reply:
        """Put input into the running turn (raises RpcError)."""
        try:
            return Reply(TurnSteerResult(turn_id=self.thread.steer(given, expected=expected)))
        except BadInput as error:
            raise steer_error(error) from None

    async def interrupt(self, turn_id: str) -> Reply:
        """End the running turn (raises RpcError: it is another one, or none)."""
        running = self.thread.session.turn
        if running is None and not turn_id:
            return Reply(Empty())  # nothing is starting either
        if running is None:
            raise invalid("no active turn to interrupt")
        if turn_id and turn_id != running.id:
            raise invalid(f"expected active turn id {turn_id} but found {running.id}")
        await self.thread.interrupt()
        return Reply(Empty())

    async def close(self) -> None:
        """Interrupt what runs and give the thread up."""
        await self._book.release(self.thread)
        await self._idle.wait()

    # --- Running a turn.

    async def _begin(self, work: Callable[[], Awaitable[None]]) -> str:
        """Run work that begins a turn beside this request; return the turn's id (raises CommonplaceError)."""
        start = self._start = _Start(anyio.Event())
        self._held, self._end, self._idle = [], None, anyio.Event()
        self._book.tasks.start_soon(self._run, work, start)
        try:
            await start.known.wait()
        except BaseException:
            self._release()
            raise
        if start.problem is not None:
            self._release()
            raise start.problem
        return start.turn_id

    async def _run(self, work: Callable[[], Awaitable[None]], start: _Start) -> None:
        try:
            await work()
        except CommonplaceError as error:
            start.problem = error
        except Exception as error:  # a bug must not end the server
            self._log(f"A turn failed: {type(error).__name__}: {error}")
            start.problem = CommonplaceError(f"Internal error: {error}")
        finally:
            self._start = None
            for scope in [*self._questions.values()]:
                scope.cancel()
            if self._end is not None:
                self._tell(self._end)
            self._idle.set()
            start.known.set()

    def _hear(self, event: events.Event) -> None:
        if isinstance(event, events.TurnStarted) and self._start is not None:
            self._start.turn_id = event.turn_id
            self._tell(event)
            self._start.known.set()
        elif isinstance(event, events.TurnStarted):
            self._begun_elsewhere(event)
        elif isinstance(event, events.TurnCompleted | events.TurnFailed | events.TurnAborted):
            self._end = event
        elif isinstance(event, events.Asked):
            if event.thread_id == self.id:  # else it is a sub-agent's, whose own thread asks it
                self._book.tasks.start_soon(self._ask, event)
        else:
            self._tell(event)

    def _begun_elsewhere(self, event: events.TurnStarted) -> None:
        """Tell of a turn that no client began: a sub-agent was given a task."""
        if self._end is not None and not self._idle.is_set():
            self._tell(self._end)
        self._end, self._idle = None, anyio.Event()
        self._tell(event)
        self._book.tasks.start_soon(self._settle, event.turn_id, self._idle)

    async def _settle(self, turn_id: str, idle: anyio.Event) -> None:
        """Tell how such a turn ended, once the next can begin."""
        await self.thread.session.turns.until_idle()
        for scope in [*self._questions.values()]:
            scope.cancel()
        if self._idle is idle and self._end is not None and self._end.turn_id == turn_id:
            self._tell(self._end)
        idle.set()

    def _tell(self, event: events.Event) -> None:
        for notice in self._events.of(event):
            self._notify(notice)

    def tell(self, method: str, params: Json) -> None:
        """Tell whoever listens something about this thread."""
        self._notify((method, {"threadId": self.id, **params}))

    def _notify(self, notice: Notice) -> None:
        if self._held is not None:
            self._held.append(notice)
            return
        for client in self.subscribers:
            client.notify(*notice)

    def _release(self) -> None:
        """Send what waited for an answer."""
        held, self._held = self._held or [], None
        for notice in held:
            self._notify(notice)

    # --- Questions.

    async def _ask(self, event: events.Asked) -> None:
        """Ask the clients, and pass the first answer on; without any client the answer is no."""
        answers: list[Any] = []
        method, params = question(event, self._events.now_ms())
        scope = self._questions[event.request_id] = anyio.CancelScope()

        def resolved(request_id: Id) -> None:
            self._notify(("serverRequest/resolved", {"threadId": self.id, "requestId": request_id}))

        async def one(client: Connection) -> None:
            asked: list[Id] = []
            try:
                answer = await client.ask(method, params, asked.append)
                if answer is not None:
                    answers.append(answer)
                    scope.cancel()
            finally:
                for request_id in asked:
                    resolved(request_id)

        self._notify(self._events.status(ActiveStatus(active_flags=["waitingOnApproval"])))
        try:
            with scope:
                async with anyio.create_task_group() as group:
                    for client in [*self.subscribers]:
                        group.start_soon(one, client)
        finally:
            del self._questions[event.request_id]
        if self._events.turn is not None and self._end is None:
            self._notify(self._events.status(ActiveStatus()))
        with contextlib.suppress(BadInput):  # the turn ended meanwhile
            self.thread.decide(event.request_id, decision(answers[0] if answers else None))


def question(event: events.Asked, now_ms: int) -> tuple[str, Json]:
    """Return the request that asks a client whether something may be done."""
    programs = f"with {', '.join(event.programs)}" if event.programs else None  # the request has no field for them
    reason = "; ".join(text for text in (programs, event.problem, event.reason) if text) or None
    where: Json = {
        "threadId": event.thread_id,
        "turnId": event.turn_id,
        "itemId": event.item_id,
        "startedAtMs": now_ms,
        "reason": reason,
    }
    if event.kind == "change":
        return "item/fileChange/requestApproval", {**where, "grantRoot": None}
    if event.kind == "run":
        command = [*event.command]
        return "item/commandExecution/requestApproval", {
            **where,
            "kind": "command",
            "environmentId": "local",
            "command": items.command_text(command),
            "cwd": event.cwd,
            "commandActions": items.actions(command),
            "availableDecisions": ["accept", "acceptForSession", "decline", "cancel"],
        }
    _, server, tool, *arguments = event.command
    return "mcpServer/elicitation/request", {
        "threadId": event.thread_id,
        "turnId": event.turn_id,
        "serverName": server,
        "mode": "form",
        "message": f"Allow the call of {tool}: {', '.join(arguments)}?" + (f" {reason}" if reason else ""),
        "requestedSchema": {"type": "object", "properties": {}},
    }


def decision(answer: Any) -> Decision:
    """Return what a client's answer means; what cannot be understood means no."""
    fields = cast("Json", answer) if isinstance(answer, dict) else {}
    told: Any = fields.get("decision", fields.get("action"))
    if isinstance(told, dict):
        told = next(iter(cast("Json", told)), None)
    return _DECISIONS.get(told, "denied") if isinstance(told, str) else "denied"


def steer_error(error: BadInput) -> RpcError:
    """Return why input was not steered, in words that clients look for."""
    match error.data.get("reason"):
        case "no_active_turn":
            return invalid("no active turn to steer")
        case "expected_turn_mismatch":
            return invalid(f"expected active turn id `{error.data['expected']}` but found `{error.data['actual']}`")
        case "empty_input":
            return invalid("input must not be empty")
        case "active_turn_not_steerable":
            kind = {"activeTurnNotSteerable": {"turnKind": error.data.get("kind")}}
            message = f"cannot steer a {error.data.get('kind')} turn"
            return invalid(message, {"message": message, "codexErrorInfo": kind, "additionalDetails": None})
        case _:
            return invalid(error.sentence())
