"""A model behind HTTP: one POST, answered by server-sent events.

An `Api` says how a request is written and how events are read; everything about the connection is here and the same
for all: headers and key, time-outs, errors in our words, repetition, closing. An `Api` and its readers are pure, so
what is tested without a socket is what runs over one.

Invariants: nothing is connected before the first request; the environment's proxies are used only if asked for; a
cancelled or closed stream closes its connection; no error and no `repr` has the key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec

from commonplace.errors import BadAnswer, BadSetting, CommonplaceError, ModelError, ModelUnavailable, StreamBroken
from commonplace.models import error_mapping
from commonplace.models.base import Event, ModelNamed, RateLimits, Request, Retrying
from commonplace.models.connections import (
    Answer,
    CannotSend,
    ConnectionProblem,
    Connections,
    Interrupted,
    connections_to,
)
from commonplace.models.error_mapping import Server
from commonplace.models.rate_limits import snapshot
from commonplace.models.retries import RetryPolicy
from commonplace.models.sse import Decoder, ServerEvent
from commonplace.version import __version__

MAX_ERROR_BYTES: Final = 64 * 1024
"""How much of an error's body is read."""
_MODEL_HEADER: Final = "openai-model"
"""Where servers of OpenAI say which model answers."""
_MOST_OF_NAME: Final = 200
"""Characters of such a name that are kept."""


class Reader(Protocol):
    """Reads the events of one answer."""

    finished: bool
    """The answer is complete: `Completed` was among the events."""

    def feed(self, event: ServerEvent) -> Iterable[Event]:
        """Return what an event means.

        Raises:
            StreamFailed: the server says in the stream that it failed.
            BadAnswer: the event does not follow the API.
        """
        ...

    def end(self) -> Iterable[Event]:
        """Return what the end of the stream still completes."""
        ...


class Api(Protocol):
    """How one kind of server is spoken to."""

    path: str

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the headers that carry the key and the API's version."""
        ...

    def body(self, request: Request) -> bytes:
        """Return the JSON of a request."""
        ...

    def reader(self, request: Request) -> Reader:
        """Return a reader for the answer to this request."""
        ...


class StreamFailed(Exception):
    """A server reported a failure in the middle of a stream; raised by a reader and caught by its model."""

    def __init__(self, value: Any) -> None:
        super().__init__("the server failed")
        self.value = value


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a server and how it is reached."""

    provider: str
    base_url: str
    """Up to and with the version, as in `http://127.0.0.1:8000/v1`."""
    key: str | None = None
    key_variable: str | None = None
    headers: Mapping[str, str] = {}
    trust_env: bool = False
    """Use the proxies that the environment names."""

    def __repr__(self) -> str:
        return f"Endpoint({self.provider!r}, {self.server().host!r})"

    def server(self) -> Server:
        """Return what may be said about it."""
        parts = urlsplit(self.base_url)
        secrets = [text for text in (self.key, parts.password, *self.headers.values()) if text and len(text) >= 8]
        return Server(self.provider, parts.netloc.rpartition("@")[2], self.key_variable, tuple(secrets))


class HttpModel:
    """A `Model` over one endpoint. Belongs to one event loop; its connections are kept for the next request."""

    def __init__(self, endpoint: Endpoint, api: Api, pace: RetryPolicy | None = None) -> None:
        self._endpoint = endpoint
        self._api = api
        self._pace = pace or RetryPolicy()
        self._server = endpoint.server()
        self._connections: Connections | None = None

    def __repr__(self) -> str:
        return f"HttpModel({self._endpoint!r})"

    async def __aenter__(self) -> HttpModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close idle connections; the model can be used again."""
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.aclose()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of one answer; a failure that may pass is tried again while nothing was given out.

        Raises:
            ModelError: there is no answer, or no more of it.
        """
        attempt = 1
        while True:
            given = False
            try:
                async with aclosing(self._once(request)) as events:
                    async for event in events:
                        given = given or not isinstance(event, RateLimits | ModelNamed)
                        yield event
            except ModelError as error:
                delay = None if given else self._pace.wait_before(attempt, error)
                if delay is None:
                    raise
                again = Retrying(attempt, self._pace.retries, delay, error.message)
            else:
                return
            yield again
            await self._pace.sleep(delay)
            attempt += 1

    async def _once(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of one attempt; a problem with the connection becomes a problem with the model."""
        try:
            async with aclosing(self._exchange(request)) as events:
                async for event in events:
                    yield event
        except (ConnectionProblem, TimeoutError) as error:
            problem = _explained(self._server, error)
        else:
            return
        raise problem  # here and not above: the context of what was caught holds the request, and so the key

    async def _exchange(self, request: Request) -> AsyncGenerator[Event, None]:
        reader = self._api.reader(request)
        answer = await self._send(request)
        try:
            if limits := snapshot(answer.headers, self._pace.wall()):
                yield limits
            await self._check(answer)
            if named := answer.headers.get(_MODEL_HEADER):
                yield ModelNamed(named[:_MOST_OF_NAME])
            async with aclosing(answer.chunks()) as chunks:
                async with aclosing(self._server_events(chunks)) as server_events:
                    async for server_event in server_events:
                        for event in self._read(reader, server_event):
                            yield event
                        if reader.finished:
                            break
                for event in () if reader.finished else reader.end():
                    yield event
                if not reader.finished:
                    raise _broken(self._server, "The answer of {} ended before it was complete.")
                await self._linger(chunks)
        finally:
            await _closed(answer)

    def _read(self, reader: Reader, event: ServerEvent) -> Iterable[Event]:
        try:
            return list(reader.feed(event))
        except StreamFailed as failed:
            problem = error_mapping.failure(self._server, error_mapping.of_value(failed.value))
        except (msgspec.DecodeError, RecursionError) as error:
            problem = BadAnswer(
                f"{self._server.provider} sent something that its API does not have: {error}.",
                hint=f"Check `api` of [providers.{self._server.provider}], or try again.",
                provider=self._server.provider,
                event=event.name,
            )
        raise problem

    async def _send(self, request: Request) -> Answer:
        import anyio

        own = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "accept-encoding": "identity",  # a compressed stream is a delayed one
            "user-agent": f"commonplace/{__version__}",
            **{name.lower(): value for name, value in self._endpoint.headers.items()},
            **self._api.headers(self._endpoint.key),
        }
        extra = {name.lower(): value for name, value in request.headers.items()}
        headers = {name.encode("ascii", "replace"): _header(value) for name, value in {**extra, **own}.items()}
        if self._connections is None:
            self._connections = connections_to(self._endpoint.base_url, trust_env=self._endpoint.trust_env)
        url = self._endpoint.base_url.rstrip("/") + self._api.path
        with anyio.fail_after(self._pace.idle):
            return await self._connections.send("POST", url, headers, self._api.body(request))

    async def _check(self, answer: Answer) -> None:
        """Raise what an answer means that is not a stream of events."""
        media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.status == 200 and media not in ("application/json", "text/html"):
            return
        body = b""
        async with aclosing(answer.chunks()) as chunks, aclosing(self._within(chunks, None)) as timely:
            async for chunk in timely:
                body += chunk
                if len(body) > MAX_ERROR_BYTES:
                    break
        said = error_mapping.of_body(answer.status, body, answer.headers, self._pace.wall())
        if answer.status == 200 and not (said.code or said.kind or b'"error"' in body):
            raise BadAnswer(
                f"{self._server.provider} at {self._server.host} answered with {media}, not with a stream of events.",
                hint=f"Check `base_url` and `api` of [providers.{self._server.provider}].",
                provider=self._server.provider,
            )
        status = said.status if answer.status != 200 else None
        raise error_mapping.failure(self._server, msgspec.structs.replace(said, status=status))

    async def _server_events(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[ServerEvent, None]:
        decoder = Decoder()
        async with aclosing(self._within(chunks, decoder)) as timely:
            async for chunk in timely:
                for event in decoder.feed(chunk):
                    yield event

    async def _within(self, chunks: AsyncIterator[bytes], decoder: Decoder | None) -> AsyncGenerator[bytes, None]:
        """Pass chunks on; raise TimeoutError when no whole line has come for the idle time.

        Only our own waiting counts: a caller may take as long as it likes between two events.
        """
        import anyio

        clock, lines, waited = self._pace.clock, 0, 0.0
        while True:
            if decoder is not None and decoder.lines != lines:
                lines, waited = decoder.lines, 0.0
            if waited >= self._pace.idle:
                raise TimeoutError
            began = clock()
            with anyio.fail_after(self._pace.idle - waited):
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
            waited += clock() - began
            yield chunk

    async def _linger(self, chunks: AsyncIterator[bytes]) -> None:
        import anyio

        with anyio.move_on_after(self._pace.linger):
            async for _ in chunks:
                pass


def _header(value: str) -> bytes:
    """Return a value that a header can carry: one line, and what is not ASCII in UTF-8."""
    return "".join(character if character.isprintable() else " " for character in value).encode("utf-8", "replace")


def _broken(server: Server, sentence: str) -> StreamBroken:
    return StreamBroken(sentence.format(server.provider), hint="Try again.", provider=server.provider)


async def _closed(answer: Answer) -> None:
    """Close an answer also when the task that reads it is cancelled."""
    import anyio

    with anyio.CancelScope(shield=True):
        await answer.aclose()


def _explained(server: Server, error: ConnectionProblem | TimeoutError) -> CommonplaceError:
    """Return what a problem with the connection means."""
    if isinstance(error, CannotSend):
        return BadSetting(
            f"`base_url` or a header of [providers.{server.provider}] cannot be used.",
            hint="Use an address such as http://127.0.0.1:8000/v1.",
        )
    if isinstance(error, TimeoutError):
        return _broken(server, "Nothing came from {} for too long.")
    if isinstance(error, Interrupted):
        return _broken(server, "The connection to {} was closed before the answer was complete.")
    return ModelUnavailable(
        f"{server.provider} at {server.host} cannot be reached ({error}).",
        hint="Check that it runs and that this machine can reach it.",
        provider=server.provider,
    )
