"""The messages between a server and the SDK's session: only answers come in, only requests go out.

The SDK's session starts a task for each notification and each request of a server, however many it sends. So
notifications end here (a change of the tools is noted), requests of the server are refused here, and what is no message
is dropped. All of that is slowed down: a server that floods us blocks only itself.

Sending never waits. Messages that a server does not read are kept up to a bound; beyond it the connection is ended.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, cast

import anyio
import msgspec
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from commonplace.agent.servers.connection_state import ConnectionState
from commonplace.agent.servers.stdio_transport import LineTooLong
from commonplace.patterns import regex

MOST_WAITING: Final = 256
"""Messages that wait for a server to take them."""
MOST_VALUES: Final = 100_000
"""Values in one message: as Python objects they take many times their bytes on the wire."""
MOST_ENTRIES: Final = 4_096
"""Entries of a list that are validated: each invalid one costs several validation errors."""
_USELESS: Final = 256
"""After this many unwanted messages, reading pauses."""
_USELESS_BYTES: Final = 2**20
"""After this many bytes of unwanted messages, reading pauses."""
_PAUSE_SECONDS: Final = 0.01
"""How long nothing is read after that many unwanted messages, or bytes of them."""
_TEXT: Final = regex(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?', re.DOTALL)

Item = SessionMessage | Exception


class Useless(Exception):
    """A line that is no message; `size` is its length."""

    def __init__(self, size: int) -> None:
        super().__init__("no message")
        self.size = size


def decode(line: bytes) -> Item:
    """Return the message of a line, or the error that makes it useless."""
    if _values(line) > MOST_VALUES:
        return _refused(line)
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return Useless(len(line))


class _Envelope(msgspec.Struct):
    """The fields that say whether a message is an answer, and to which request."""

    id: int | str | None = None
    method: str | None = None


def _refused(line: bytes) -> Item:
    """Return an error in place of an answer that is too large, so that its caller does not wait."""
    try:
        found = msgspec.json.decode(line, type=_Envelope)
    except (ValueError, RecursionError):
        return Useless(len(line))
    if found.id is None or found.method is not None:
        return Useless(len(line))
    error = ErrorData(code=INVALID_REQUEST, message=f"it sent more than {MOST_VALUES} values in one answer")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=found.id, error=error))


def _values(line: bytes) -> int:
    """Return about how many values a line of JSON holds; texts are left out only if there may be too many."""
    most = line.count(b",") + line.count(b"[") + line.count(b"{")
    if most <= MOST_VALUES:
        return most
    bare = _TEXT.sub(b"", line)
    return bare.count(b",") + bare.count(b"[") + bare.count(b"{")


class Outbox:
    """The messages to a server; the SDK's session writes to it."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._send, self.waiting = anyio.create_memory_object_stream[SessionMessage](MOST_WAITING)

    async def send(self, item: SessionMessage, /) -> None:
        """Send without waiting (raises BrokenResourceError: the server does not read)."""
        try:
            self._send.send_nowait(item)
        except anyio.WouldBlock:
            self._state.end("it does not read what it is sent", polite=False)
            raise anyio.BrokenResourceError from None

    async def forward(self, write: Callable[[SessionMessage], Awaitable[None]], broken: str) -> None:
        """Write the messages to the server until it takes no more; then end the connection, for the reason `broken`."""
        try:
            async for message in self.waiting:
                await write(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._state.end(broken)

    def answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        """Answer a request of the server, unless too many messages wait already."""
        if self._send.statistics().current_buffer_used < MOST_WAITING // 2:
            try:
                self._send.send_nowait(SessionMessage(message))
            except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    def close(self) -> None:
        """Send no more, and drop what waits."""
        self._send.close()
        self.waiting.close()

    async def aclose(self) -> None:
        """Send no more."""
        self._send.close()

    async def __aenter__(self) -> Outbox:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._send.close()


class Inbox:
    """The answers of a server; the SDK's session reads from it."""

    def __init__(self, next_item: Callable[[], Awaitable[Item]], outbox: Outbox, state: ConnectionState) -> None:
        self._next_item = next_item
        self._outbox = outbox
        self._state = state
        self._useless = 0
        self._bytes = 0

    async def receive(self) -> Item:
        """Return the next answer (raises EndOfStream: none will come)."""
        while True:
            try:
                item = await self._next_item()
            except LineTooLong as error:
                self._state.end(str(error), polite=False)
                raise anyio.EndOfStream from None
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._state.end("it ended the connection")
                raise anyio.EndOfStream from None
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError):
                if isinstance(item.message, JSONRPCResponse):
                    _shorten(item.message.result)
                return item
            await self._take(item)

    async def _take(self, item: Item) -> None:
        """Handle an unwanted message, and slow down if there are many."""
        self._useless += 1
        if isinstance(item, Useless):
            self._bytes += item.size
        elif isinstance(item, SessionMessage):
            match item.message:
                case JSONRPCNotification(method="notifications/tools/list_changed"):
                    self._state.changed = True
                case JSONRPCRequest() as request:
                    self._outbox.answer(refusal(request))
                case _:
                    pass
        if self._useless >= _USELESS or self._bytes >= _USELESS_BYTES:
            self._useless = self._bytes = 0
            await anyio.sleep(_PAUSE_SECONDS)

    async def aclose(self) -> None:
        """Do nothing: the transport is closed elsewhere."""

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Inbox:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        return


def _shorten(result: dict[str, Any]) -> None:
    for value in result.values():
        if isinstance(value, list):
            del cast("list[Any]", value)[MOST_ENTRIES:]


def refusal(request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
    """Return the answer to a request of a server: a ping is answered, everything else is refused."""
    if request.method == "ping":
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result={})
    text = "This client answers no requests: no sampling, no elicitation, no roots."
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=METHOD_NOT_FOUND, message=text))
