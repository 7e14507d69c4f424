"""A client of an app server: one that this program starts, or one that listens on a socket.

    async with client.start(["commonplace", "app-server"]) as server:
        thread = (await server.request(calls.THREAD_START, params.ThreadStartParams(cwd="."))).thread
        async for notice in server.turn(thread.id, "Why is the login test flaky?"):
            print(notice.method)

`request` takes any call of `calls` with its params and returns its result, typed. What the server tells arrives in
order at everyone who listens; what it asks is answered by the function given as `answer`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import anyio
import anyio.abc
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from commonplace import config
from commonplace.errors import AppServerError, BadInput
from commonplace.surfaces.app_server import addresses, calls, params, shapes
from commonplace.surfaces.app_server.calls import RpcMethod
from commonplace.version import __version__

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

__all__ = ["Client", "Notice", "Question", "calls", "connect", "params", "shapes", "start"]

P = TypeVar("P")
R = TypeVar("R")
_LAST_SECONDS: Final = 10.0
"""How long a server that was started may take to end after its input was closed."""


class Notice(msgspec.Struct, frozen=True):
    """Something that the server told."""

    method: str
    params: dict[str, Any] = {}


class Question(msgspec.Struct, frozen=True):
    """Something that the server asked."""

    method: str
    params: dict[str, Any] = {}


Answer = Callable[[Question], Awaitable[dict[str, Any]]]


class Messages(Protocol):
    """A way to a server and back, one message at a time."""

    async def send(self, message: bytes) -> None:
        """Send one (raises AppServerError: the server is gone)."""
        ...

    def receive(self) -> AsyncGenerator[bytes]:
        """Yield what comes, until the server is gone."""
        ...


class _Error(msgspec.Struct, frozen=True):
    code: int
    message: str
    data: Any = None


class _Message(msgspec.Struct, frozen=True):
    id: str | int | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: _Error | None = None


class _Waiting(msgspec.Struct):
    done: anyio.Event
    answer: _Message | None = None


async def _decline(question: Question) -> dict[str, Any]:
    """Answer no: nobody said what may be done."""
    return {"action": "decline"} if question.method.endswith("elicitation/request") else {"decision": "decline"}


class Client:
    """A connection with an app server, after the handshake."""

    def __init__(self, messages: Messages, answer: Answer | None = None) -> None:
        self.server = shapes.InitializeResult(user_agent="", codex_home="", platform_family="", platform_os="")
        """Who the server said it is."""
        self._messages = messages
        self._answer = answer or _decline
        self._numbers = itertools.count(1)
        self._waiting: dict[str | int, _Waiting] = {}
        self._listeners: list[MemoryObjectSendStream[Notice]] = []
        self._is_gone = False

    async def request(self, call: RpcMethod[P, R], given: P) -> R:
        """Ask for something and return the result.

        Raises:
            AppServerError: the server refused it, or is gone.
        """
        number = next(self._numbers)
        waiting = self._waiting[number] = _Waiting(anyio.Event())
        try:
            await self._send({"id": number, "method": call.name, "params": _given(given)})
            await waiting.done.wait()
        finally:
            del self._waiting[number]
        answered = waiting.answer
        if answered is None:
            raise _gone()
        if answered.error is not None:
            error = answered.error
            raise AppServerError(error.message, rpc_code=error.code, rpc_data=error.data)
        return msgspec.json.decode(answered.result, type=call.result)

    @contextmanager
    def notices(self) -> Generator[MemoryObjectReceiveStream[Notice]]:
        """Listen: the stream has everything that is told while the block lasts, and ends with the server."""
        send, receive = anyio.create_memory_object_stream[Notice](float("inf"))
        self._listeners.append(send)
        if self._is_gone:
            send.close()
        try:
            yield receive
        finally:
            self._listeners.remove(send)
            send.close()
            receive.close()

    async def turn(self, thread_id: str, text: str) -> AsyncGenerator[Notice]:
        """Start a turn and yield what is told of its thread, to the turn's end.

        Raises:
            AppServerError: it cannot be started, or the server is gone.
        """
        given = params.TurnStartParams(thread_id=thread_id, input=[params.TextInput(text=text)])
        with self.notices() as stream:
            turn = (await self.request(calls.TURN_START, given)).turn
            async for notice in stream:
                if notice.params.get("threadId") == thread_id:
                    yield notice
                if notice.method == "turn/completed" and notice.params["turn"]["id"] == turn.id:
                    return
        raise _gone()

    async def listen(self) -> None:
        """Take what the server says until it is gone; `start` and `connect` do that."""
        try:
            async with anyio.create_task_group() as tasks:
                async for line in self._messages.receive():
                    self._take(line, tasks)
                tasks.cancel_scope.cancel()
        finally:
            self._is_gone = True
            for waiting in self._waiting.values():
                waiting.done.set()
            for listener in self._listeners:
                listener.close()

    async def shake_hands(self, name: str, *, experimental: bool) -> None:
        """Say who this is (raises AppServerError)."""
        info = params.ClientInfo(name=name, version=__version__)
        capabilities = params.Capabilities(experimental_api=experimental)
        given = params.InitializeParams(client_info=info, capabilities=capabilities)
        self.server = await self.request(calls.INITIALIZE, given)
        await self._send({"method": "initialized"})

    def _take(self, line: bytes, tasks: anyio.abc.TaskGroup) -> None:
        try:
            message = msgspec.json.decode(line, type=_Message)
        except (msgspec.DecodeError, UnicodeError):
            return  # no message; the answer that is missing then is waited for like one that is late
        if message.method is None:
            if message.id is not None and (waiting := self._waiting.get(message.id)) is not None:
                waiting.answer = message
                waiting.done.set()
        elif message.id is not None:
            tasks.start_soon(self._reply, message.id, Question(message.method, message.params or {}))
        else:
            for listener in self._listeners:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it does not listen any more
                    listener.send_nowait(Notice(message.method, message.params or {}))

    async def _reply(self, number: str | int, question: Question) -> None:
        result = await self._answer(question)
        with suppress(AppServerError):  # it is gone
            await self._send({"id": number, "result": result})

    async def _send(self, message: dict[str, Any]) -> None:
        if self._is_gone:
            raise _gone()
        await self._messages.send(msgspec.json.encode(message))


def _given(value: Any) -> Any:
    """Return params as they are sent: what is None is left out."""
    fields = msgspec.to_builtins(value)
    return {name: each for name, each in fields.items() if each is not None}


def _gone() -> AppServerError:
    return AppServerError("The app server is gone.", hint="Look at what it said on stderr, and start it again.")


class _Pipes:
    """A server that this program started: a message a line."""

    def __init__(self, process: anyio.abc.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._out, self._in = process.stdin, process.stdout

    async def send(self, message: bytes) -> None:
        try:
            await self._out.send(message + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise _gone() from None

    async def receive(self) -> AsyncGenerator[bytes]:
        rest = bytearray()
        async for chunk in self._in:
            *lines, last = chunk.split(b"\n")
            for line in lines:
                yield bytes(rest + line)
                rest.clear()
            rest += last


@asynccontextmanager
async def start(
    command: Sequence[str | os.PathLike[str]],
    *,
    answer: Answer | None = None,
    name: str = "commonplace",
    experimental: bool = True,
    environment: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> AsyncGenerator[Client]:
    """Start a server that speaks on its stdin and stdout, and end it with the block.

    Args:
        command: The program with its arguments, `["commonplace", "app-server"]`.
        answer: Answers what the server asks; without it the answer is no.
        name: Who the client is.
        experimental: Whether it understands what is experimental.
        environment: All variables of the server, if not those of this process.
        cwd: The folder of the server, if not that of this process.

    Raises:
        AppServerError: it cannot be started, or refused the handshake.
    """
    try:
        process = await anyio.open_process([os.fspath(word) for word in command], env=environment, cwd=cwd, stderr=None)
    except OSError as error:
        raise AppServerError(f"{command[0]} cannot be started: {error.strerror}.", hint="Name the program.") from None
    async with process:
        try:
            async with _talking(Client(_Pipes(process), answer), name, experimental=experimental) as client:
                yield client
        finally:
            with anyio.CancelScope(shield=True):
                assert process.stdin is not None
                await process.stdin.aclose()
                with anyio.move_on_after(_LAST_SECONDS):
                    await process.wait()
                if process.returncode is None:
                    process.kill()


@asynccontextmanager
async def connect(
    address: str = "unix://",
    *,
    token: str | None = None,
    answer: Answer | None = None,
    name: str = "commonplace",
    experimental: bool = True,
) -> AsyncGenerator[Client]:
    """Connect with a server that listens on `unix://`, `unix://PATH` or `ws://127.0.0.1:PORT`.

    Args:
        address: Where it listens; `unix://` is the socket in the home folder.
        token: The token of a port; left out, it is read where a server of this home finds it.
        answer: Answers what the server asks; without it the answer is no.
        name: Who the client is.
        experimental: Whether it understands what is experimental.

    Raises:
        BadInput: the address is none.
        AppServerError: no server answers there, or it refused the handshake.
    """
    from websockets.exceptions import WebSocketException

    try:
        opened = await _open(address, token)
    except (OSError, WebSocketException) as error:
        hint = "Start one with: commonplace app-server --listen ADDRESS"
        raise AppServerError(f"No server takes us at {address}: {error}.", hint=hint) from None
    async with (
        opened as socket,
        _talking(Client(_Socket(socket), answer), name, experimental=experimental) as client,
    ):
        yield client


class _Socket:
    """A server on a socket: a message a frame."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(message, text=True)
        except ConnectionClosed:
            raise _gone() from None

    async def receive(self) -> AsyncGenerator[bytes]:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            async for message in self._socket:
                yield message.encode() if isinstance(message, str) else message


async def _open(address: str, token: str | None) -> ClientConnection:
    from websockets.asyncio.client import connect as connect_port
    from websockets.asyncio.client import unix_connect

    home = config.home_folder()
    place = addresses.parse(address, home)
    if place is None:
        raise BadInput(f"{address!r} is no address to connect with.", hint="Use start() for a server on stdio.")
    if isinstance(place, addresses.SocketFile):
        return await unix_connect(str(place.path), compression=None, max_size=None, ping_interval=None)
    shown = token or addresses.token(home, os.environ)
    return await connect_port(
        f"ws://127.0.0.1:{place.port}",
        additional_headers={"Authorization": f"Bearer {shown}"},
        compression=None,
        max_size=None,
        ping_interval=None,
        proxy=None,
    )


@asynccontextmanager
async def _talking(client: Client, name: str, *, experimental: bool) -> AsyncGenerator[Client]:
    problem: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.listen)
        try:
            await client.shake_hands(name, experimental=experimental)
            yield client
        except Exception as error:  # raised again below: the group would wrap it
            problem = error
        finally:
            tasks.cancel_scope.cancel()
    if problem is not None:
        raise problem
