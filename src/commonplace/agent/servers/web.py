"""A client for servers behind an address: it reads only so much of an answer, and only for so long.

The SDK's transport reads JSON answers whole, asks again for streams that end as often as a server likes, leaves
requests open that nobody waits for any more, and falls over as a whole when one of them fails. So every request goes
through here: what fails becomes an answer that says so; no answer is compressed, larger or slower than it may be; there
is no standing stream for what a server would like to say; and streams are taken up again only so often.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client

from commonplace.agent.servers.life import Life
from commonplace.agent.servers.messages import Inbox, Item, Outbox
from commonplace.agent.servers.pipes import MOST_LINE
from commonplace.agent.servers.values import Address, Config

MOST_ANSWER: Final = MOST_LINE
"""Bytes of a JSON answer, and of one event of a stream."""
MOST_STREAM: Final = 4 * MOST_LINE
"""Bytes of one stream of events."""
MOST_VALUES: Final = 1_000_000
"""Values in one answer, counted by their separators."""
MOST_RESUMED: Final = 64
"""How often streams are taken up again in one life of a server."""
NOTICE_SECONDS: Final = 10.0
"""How long a server has to take what wants no answer."""
CLOSE_SECONDS: Final = 1.0
_SLACK_SECONDS: Final = 1.0


class Refused(httpx2.StreamError):
    """An answer was not read to its end."""


class _Sent(msgspec.Struct):
    id: Any = None
    method: str | None = None


class Client(httpx2.AsyncClient):
    """Sends the requests of the SDK's transport."""

    def __init__(self, config: Config, headers: Mapping[str, str], life: Life) -> None:
        super().__init__(
            headers={**headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(max(config.call_seconds, config.start_seconds) + _SLACK_SECONDS),
            limits=httpx2.Limits(max_connections=32, max_keepalive_connections=4),
        )
        self._config = config
        self._life = life
        self._resumed = 0

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; whatever goes wrong is an answer too."""
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
        """Return how long a request may take, with its answer."""
        longest = max(self._config.call_seconds, self._config.start_seconds) + _SLACK_SECONDS
        if method == "DELETE":
            return CLOSE_SECONDS
        if method == "POST":
            sent = msgspec.json.decode(content, type=_Sent)
            return longest if sent.method is not None and sent.id is not None else min(NOTICE_SECONDS, longest)
        return longest

    def _unusable(self, request: httpx2.Request, response: httpx2.Response) -> str | None:
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            return "its answer is compressed, which was not asked for"
        if response.status_code == 404 and "mcp-session-id" in request.headers and request.method != "DELETE":
            self._life.end("it does not know the session any more")
        if response.status_code >= 400 and not _is_json(response):
            return f"it answered with HTTP status {response.status_code}"
        return None


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("application/json")


def _failure(request: httpx2.Request, status: int, reason: str) -> httpx2.Response:
    """Return an answer that says what went wrong, in the form in which the SDK takes it for the server's word."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": reason}}
    return httpx2.Response(status, json=error, request=request)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, up to a bound and a point in time."""

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
                raise Refused(f"it sent more than {self._most} bytes, or more than {MOST_VALUES} values, in one answer")
            yield chunk

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        try:
            with anyio.CancelScope(deadline=self._deadline):
                return await anext(chunks, None)
        except (httpx2.HTTPError, OSError) as error:
            raise Refused(f"its answer broke off: {type(error).__name__}") from None
        raise Refused("its answer did not end in time")

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def connected(
    config: Config, place: Address, headers: Mapping[str, str], life: Life
) -> AsyncGenerator[tuple[Inbox, Outbox]]:
    """Connect to a server behind an address; yield what the session reads from and writes to."""
    outbox = Outbox(life)
    async with (
        Client(config, headers, life) as client,
        streamable_http_client(place.url, http_client=client, max_sse_event_size=MOST_ANSWER) as (read, write),
        anyio.create_task_group() as tasks,
    ):

        async def next_item() -> Item:
            return await read.receive()

        async def forward() -> None:
            try:
                async for message in outbox.waiting:
                    await write.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                life.end("its connection broke")

        tasks.start_soon(forward)
        try:
            yield Inbox(next_item, outbox, life), outbox
        finally:
            outbox.close()
            tasks.cancel_scope.cancel()
