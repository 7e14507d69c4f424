"""One client: the handshake, its requests in order, its queues, and requests that the server makes of it.

No transport is known here: lines come in with `take`, encoded messages go out through a function. Invariants:

- requests about one thread are worked on in the order in which they came; others run beside each other;
- a request is answered exactly once, unless the client is gone: then what it asked for is cancelled;
- at most `QUEUE` requests are open; the next is refused as overloaded. While as many messages wait to be written,
  nothing is read, and a client that takes nothing for too long is given up;
- what is no message is logged, and answered where it has an id.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from commonplace.errors import CommonplaceError
from commonplace.surfaces.app_server import messages
from commonplace.surfaces.app_server.messages import (
    INTERNAL,
    OVERLOADED,
    ClientNotification,
    ClientRequest,
    ClientResponse,
    Id,
    Malformed,
    RpcError,
    invalid,
)

QUEUE: Final = 128
"""Requests of one client that may be open at the same time."""


EXPERIMENTAL: Final = frozenset({"thread/settings/updated", "rawResponseItem/completed", "item/plan/delta"})
"""Notifications for clients with the capability `experimentalApi`."""


class Reply(msgspec.Struct, frozen=True):
    """The result of a request, and what is done once it was sent."""

    result: Any
    then: Callable[[], None] | None = None


class Handlers(Protocol):
    """What answers requests."""

    def prepare(self, client: Connection, request: ClientRequest) -> Callable[[], Awaitable[Reply]]:
        """Return what works on a request (raises RpcError: it cannot be worked on)."""
        ...

    def gone(self, client: Connection) -> None:
        """Note that a client went away."""
        ...


class Outgoing(Protocol):
    """The way to the client."""

    def send(self, message: bytes) -> None:
        """Put a message on its way; never waits."""
        ...

    async def drained(self) -> None:
        """Return when there is room for more."""
        ...


class ConnectedClient(msgspec.Struct, frozen=True):
    """Who the client said it is."""

    name: str
    version: str
    title: str | None = None
    experimental: bool = False
    muted: frozenset[str] = frozenset()
    """The notifications that it does not want."""


class Connection:
    """One client of the server."""

    def __init__(self, handlers: Handlers, outgoing: Outgoing, tasks: TaskGroup, log: Callable[[str], None]) -> None:
        self.client: ConnectedClient | None = None
        self._handlers = handlers
        self._outgoing = outgoing
        self._tasks = tasks
        self._log = log
        self._open = 0
        self._answered = anyio.Event()
        self._lanes: dict[str, list[_Job]] = {}
        """Requests of each thread that wait; a thread without a lane has none that runs."""
        self._numbers = itertools.count()
        self._asked: dict[Id, _Question] = {}
        self._jobs: set[_Job] = set()
        """Requests that are being worked on."""
        self._is_gone = False

    # --- From the client.

    async def take(self, line: bytes | str) -> None:
        """Take a message of the client; return when there is room for another."""
        await self._outgoing.drained()
        message = messages.parse(line)
        match message:
            case ClientRequest():
                self._request(message)
            case ClientResponse():
                self._response(message)
            case ClientNotification():
                if message.method != "initialized":
                    self._log(f"A notification {message.method[:100]!r} was ignored.")
            case Malformed():
                self.refuse(message)
        await anyio.lowlevel.checkpoint()

    def refuse(self, message: Malformed) -> None:
        """Log what is no message, and answer it where it has an id."""
        self._log(f"A message was ignored: {message.problem}.")
        if message.id is not None:
            self._fail(message.id, invalid(f"Invalid request: {message.problem}"))

    def _request(self, request: ClientRequest) -> None:
        if self._open >= QUEUE:
            self._fail(request.id, RpcError(OVERLOADED, "Server overloaded; retry later."))
            return
        try:
            work, lane = self._handlers.prepare(self, request), thread_of(request)
        except RpcError as error:
            self._fail(request.id, error)
            return
        except Exception as error:  # a bug must not end the server
            self._bug(request.id, error)
            return
        self._open += 1
        job = _Job(request.id, work)
        if lane is None:
            self._tasks.start_soon(self._run, job)
        elif lane in self._lanes:
            self._lanes[lane].append(job)
        else:
            self._lanes[lane] = [job]
            self._tasks.start_soon(self._run_lane, lane)

    def _response(self, response: ClientResponse) -> None:
        question = self._asked.pop(response.id, None)
        if question is None:
            self._log(f"An answer to nothing that was asked was ignored: {str(response.id)[:100]!r}.")
            return
        question.result = response.result if response.error is None else None
        question.answered.set()

    async def _run_lane(self, lane: str) -> None:
        try:
            while waiting := self._lanes[lane]:
                await self._run(waiting.pop(0))
        finally:
            del self._lanes[lane]

    async def _run(self, job: _Job) -> None:
        if self._is_gone:
            return
        job.scope = anyio.CancelScope()
        self._jobs.add(job)
        try:
            with job.scope:
                await self._work(job)
        finally:
            self._jobs.discard(job)
            self._open -= 1
            self._answered.set()

    async def _work(self, job: _Job) -> None:
        try:
            reply = await job.work()
        except RpcError as error:
            self._fail(job.id, error)
        except CommonplaceError as error:
            self._fail(job.id, invalid(error.sentence()))
        except (OSError, UnicodeError) as error:
            self._fail(job.id, invalid(f"It cannot be done: {error}"))
        except Exception as error:  # a bug must not take the other requests with it
            self._bug(job.id, error)
        else:
            self._send(messages.response(job.id, reply.result))
            if reply.then is not None:
                reply.then()

    # --- To the client.

    def notify(self, method: str, params: Any) -> None:
        """Tell the client something, unless it is not ready, does not want to know, or would not understand."""
        client = self.client
        if client is None or method in client.muted or (method in EXPERIMENTAL and not client.experimental):
            return
        self._send({"method": method, "params": params})

    async def ask(self, method: str, params: Any, sent: Callable[[Id], None] | None = None) -> Any:
        """Ask the client something; return its answer, None if it went away or answered with an error.

        `sent` gets the id of the request. Whoever no longer wants to know cancels the call.
        """
        if self._is_gone:
            return None
        question = _Question(anyio.Event())
        name = next(self._numbers)
        self._asked[name] = question
        try:
            self._send({"method": method, "id": name, "params": params})
            if sent is not None:
                sent(name)
            await question.answered.wait()
        finally:
            self._asked.pop(name, None)
        return question.result

    async def settled(self) -> None:
        """Return when every request that came is answered."""
        while self._open:
            self._answered = anyio.Event()
            await self._answered.wait()

    def close(self) -> None:
        """Note that the client is gone: its requests are cancelled, and what was asked of it has no answer."""
        if self._is_gone:
            return
        self._is_gone = True
        for job in [*self._jobs]:
            if job.scope is not None:
                job.scope.cancel()
        for waiting in self._lanes.values():
            waiting.clear()
        for question in self._asked.values():
            question.answered.set()
        self._handlers.gone(self)

    def _bug(self, request_id: Id, error: Exception) -> None:
        self._log(f"A request failed: {type(error).__name__}: {error}")
        self._fail(request_id, RpcError(INTERNAL, f"Internal error: {type(error).__name__}: {error}"))

    def _fail(self, request_id: Id, error: RpcError) -> None:
        self._send(messages.failure(request_id, error))

    def _send(self, message: dict[str, Any]) -> None:
        if not self._is_gone:
            self._outgoing.send(messages.encode(message))


class _Job:
    """A request that is worked on, or waits for that."""

    def __init__(self, request_id: Id, work: Callable[[], Awaitable[Reply]]) -> None:
        self.id = request_id
        self.work = work
        self.scope: anyio.CancelScope | None = None


class _Question(msgspec.Struct):
    """A request of ours that waits for its answer."""

    answered: anyio.Event
    result: Any = None


class _Named(msgspec.Struct, rename="camel"):
    thread_id: str


def thread_of(request: ClientRequest) -> str | None:
    """Return the thread that a request is about; None if it is about none."""
    if request.params is None:
        return None
    try:
        return msgspec.json.decode(request.params, type=_Named).thread_id
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
