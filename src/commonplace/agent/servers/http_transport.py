"""An HTTP client for servers behind a URL: every answer is bounded in size and time.

The SDK's transport reads JSON answers whole, resumes broken streams as often as a server likes, leaves requests open
that nobody waits for, and fails as a whole when one request fails. So every request goes through this client: a failure
becomes an answer that says so; an answer that is compressed, too large or too slow is refused; the standing stream for
a server's own messages is refused; and streams are resumed only a few times.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client

from commonplace.agent.servers.config import ServerAddress, ServerConfig
from commonplace.agent.servers.connection_state import ConnectionState
from commonplace.agent.servers.messages import Inbox, Item, Outbox
from commonplace.agent.servers.stdio_transport import MOST_LINE

MOST_ANSWER: Final = MOST_LINE
"""Bytes of a JSON answer, and of one event of a stream."""
MOST_STREAM: Final = 4 * MOST_LINE
"""Bytes of one stream of events."""
MOST_VALUES: Final = 1_000_000
"""Values in one answer, counted by their separators."""
MOST_RESUMED: Final = 64
"""How often streams are resumed in one connection."""
NOTICE_SECONDS: Final = 10.0
"""How long a server has to accept a message without an answer."""
CLOSE_SECONDS: Final = 1.0
"""How many seconds closing a connection may take."""
_SLACK_SECONDS: Final = 1.0
"""How much longer than the longest call a request may take."""


class AnswerRefused(httpx2.StreamError):
    """An answer was refused, or not read to its end."""


class _SentMessage(msgspec.Struct):
    id: Any = None
    method: str | None = None


class BoundedClient(httpx2.AsyncClient):
    """Sends the requests of the SDK's transport, within bounds."""

    def __init__(self, config: ServerConfig, headers: Mapping[str, str], state: ConnectionState) -> None:
        super().__init__(
            headers={**headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(max(config.call_seconds, config.start_seconds) + _SLACK_SECONDS),
            limits=httpx2.Limits(max_connections=32, max_keepalive_connections=4),
        )
        self._config = config
        self._connection = state
        self._resumed = 0

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; an error becomes an answer that says what went wrong."""
        refused = self._refused(request)
        if refused is not None:
            return _failure(request, 405, refused)
        deadline = anyio.current_time() + self._seconds(request.method, await request.aread())
        response: httpx2.Response | None = None
        try:
            with anyio.CancelScope(deadline=deadline):
                response = await super().send(request, **options)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError) as error:
            return _failure(request, 502, f"it cannot be reached: {type(error).__name__}: {str(error)[:300]}")
        if response is None:
            return _failure(request, 504, "it did not answer in time")
        reason = self._unusable(request, response)
        if reason is not None:
            await response.aclose()
            return _failure(request, 502, reason)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        streamed = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = _Bounded(response.stream, MOST_STREAM if streamed else MOST_ANSWER, deadline)
        return response

    def _refused(self, request: httpx2.Request) -> str | None:
        if request.method != "GET":
            return None
        if "last-event-id" not in request.headers:
            return "no standing stream is wanted"
        self._resumed += 1
        return "its streams broke off too often" if self._resumed > MOST_RESUMED else None

    def _seconds(self, method: str, content: bytes) -> float:
        """Return how many seconds a request and its answer may take."""
        longest = max(self._config.call_seconds, self._config.start_seconds) + _SLACK_SECONDS
        if method == "DELETE":
            return CLOSE_SECONDS
        if method == "POST":
            sent = msgspec.json.decode(content, type=_SentMessage)
            return longest if sent.method is not None and sent.id is not None else min(NOTICE_SECONDS, longest)
        return longest

    def _unusable(self, request: httpx2.Request, response: httpx2.Response) -> str | None:
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            return "its answer is compressed, which was not asked for"
        if response.status_code == 404 and "mcp-session-id" in request.headers and request.method != "DELETE":
            self._connection.end("it does not know the session any more")
        if response.status_code >= 400 and not _is_json(response):
            return f"it answered with HTTP status {response.status_code}"
        return None


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("application/json")


def _failure(request: httpx2.Request, status: int, reason: str) -> httpx2.Response:
    """Return an answer that says what went wrong, as a JSON-RPC error that the SDK passes on."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": reason}}
    return httpx2.Response(status, json=error, request=request)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, bounded in size and time."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int, deadline: float) -> None:
        self._stream = stream
        self._most = most
        self._deadline = deadline

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = values = 0
        chunks = aiter(self._stream)
        while True:
            chunk = await self._next(chunks)
            if chunk is None:
                return
            size += len(chunk)
            values += chunk.count(b",") + chunk.count(b"[") + chunk.count(b"{")
            if size > self._most or values > MOST_VALUES:
                raise AnswerRefused(
                    f"it sent more than {self._most} bytes, or more than {MOST_VALUES} values, in one answer"
                )
            yield chunk

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        try:
            with anyio.CancelScope(deadline=self._deadline):
                return await anext(chunks, None)
        except (httpx2.HTTPError, OSError) as error:
            raise AnswerRefused(f"its answer broke off: {type(error).__name__}") from None
        raise AnswerRefused("its answer did not end in time")

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def connect(
    config: ServerConfig, place: ServerAddress, headers: Mapping[str, str], state: ConnectionState
) -> AsyncGenerator[tuple[Inbox, Outbox]]:
    """Connect to a server behind an address; yield what the session reads from and writes to."""
    outbox = Outbox(state)
    async with (
        BoundedClient(config, headers, state) as client,
        streamable_http_client(place.url, http_client=client, max_sse_event_size=MOST_ANSWER) as (read, write),
        anyio.create_task_group() as tasks,
    ):

        async def next_item() -> Item:
            return await read.receive()

        tasks.start_soon(outbox.forward, write.send, "its connection broke")
        try:
            yield Inbox(next_item, outbox, state), outbox
        finally:
            outbox.close()
            tasks.cancel_scope.cancel()
