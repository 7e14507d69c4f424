"""What passes between a server and the SDK's session: answers in, requests out, and nothing else.

A session that got everything would start a task for each notification and each request of the server, as many as it
likes to send. So notifications end here (that the tools changed is noted), requests of the server are refused here, and
what is no message is dropped. All of that is paced: a server that floods us is read slowly and stands in its own way.

Sending never waits. What a server does not take is kept up to a bound; a server that lets it grow beyond is given up.
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

from commonplace.agent.servers.life import Life
from commonplace.agent.servers.pipes import LineTooLong

MOST_WAITING: Final = 256
"""Messages that wait for a server to take them."""
MOST_VALUES: Final = 100_000
"""Values in one message: as objects they take many times the bytes that they take on the wire."""
MOST_ENTRIES: Final = 4_096
"""Entries of a list of tools or of parts that are looked at: each wrong one costs several mistakes to note."""
_USELESS: Final = 256
_USELESS_BYTES: Final = 2**20
_PAUSE_SECONDS: Final = 0.01
"""How long nothing is read after so many messages, or bytes, that nobody asked for."""
_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

Item = SessionMessage | Exception


class Useless(Exception):
    """Something came that is no message; `size` says how much."""

    def __init__(self, size: int) -> None:
        super().__init__("no message")
        self.size = size


def decode(line: bytes) -> Item:
    """Return the message that a line is, or what is wrong with it."""
    if _values(line) > MOST_VALUES:
        return _refused(line)
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return Useless(len(line))


class _Envelope(msgspec.Struct):
    """What of a message tells whether it is an answer, and to what; its values are passed over."""

    id: int | str | None = None
    method: str | None = None


def _refused(line: bytes) -> Item:
    """Return an error in place of an answer that holds too much, so that nobody waits for it."""
    try:
        found = msgspec.json.decode(line, type=_Envelope)
    except (ValueError, RecursionError):
        return Useless(len(line))
    if found.id is None or found.method is not None:
        return Useless(len(line))
    error = ErrorData(code=INVALID_REQUEST, message=f"it sent more than {MOST_VALUES} values in one answer")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=found.id, error=error))


def _values(line: bytes) -> int:
    """Return at least how many values a line of JSON holds; exactly only if there may be too many."""
    most = line.count(b",") + line.count(b"[") + line.count(b"{")
    if most <= MOST_VALUES:
        return most
    bare = _TEXT.sub(b"", line)
    return bare.count(b",") + bare.count(b"[") + bare.count(b"{")


class Outbox:
    """What is sent to a server; the session writes to it."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._send, self.waiting = anyio.create_memory_object_stream[SessionMessage](MOST_WAITING)

    async def send(self, item: SessionMessage, /) -> None:
        """Send without waiting (raises BrokenResourceError: the server takes nothing any more)."""
        try:
            self._send.send_nowait(item)
        except anyio.WouldBlock:
            self._life.end("it does not read what it is sent", polite=False)
            raise anyio.BrokenResourceError from None

    def answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        """Answer a request of the server, if it reads what it is sent."""
        if self._send.statistics().current_buffer_used < MOST_WAITING // 2:
            try:
                self._send.send_nowait(SessionMessage(message))
            except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    def close(self) -> None:
        """Send no more, and forget what waits."""
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
    """What a server answers; the session reads from it."""

    def __init__(self, next_item: Callable[[], Awaitable[Item]], outbox: Outbox, life: Life) -> None:
        self._next_item = next_item
        self._outbox = outbox
        self._life = life
        self._useless = 0
        self._bytes = 0

    async def receive(self) -> Item:
        """Return the next answer (raises EndOfStream: none will come)."""
        while True:
            try:
                item = await self._next_item()
            except LineTooLong as error:
                self._life.end(str(error), polite=False)
                raise anyio.EndOfStream from None
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._life.end("it ended the connection")
                raise anyio.EndOfStream from None
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError):
                if isinstance(item.message, JSONRPCResponse):
                    _shorten(item.message.result)
                return item
            await self._take(item)

    async def _take(self, item: Item) -> None:
        """Deal with what nobody asked for, and slow down if there is much of it."""
        self._useless += 1
        if isinstance(item, Useless):
            self._bytes += item.size
        elif isinstance(item, SessionMessage):
            match item.message:
                case JSONRPCNotification(method="notifications/tools/list_changed"):
                    self._life.changed = True
                case JSONRPCRequest() as request:
                    self._outbox.answer(refusal(request))
                case _:
                    pass
        if self._useless >= _USELESS or self._bytes >= _USELESS_BYTES:
            self._useless = self._bytes = 0
            await anyio.sleep(_PAUSE_SECONDS)

    async def aclose(self) -> None:
        """Nothing is read from now on."""

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
    """Return the answer to what a server asks of us: we are there, and that is all."""
    if request.method == "ping":
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result={})
    text = "This client answers no requests: no sampling, no elicitation, no roots."
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=METHOD_NOT_FOUND, message=text))
