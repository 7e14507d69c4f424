"""The way to a model's server: a plain connection of our own, or httpx2 where TLS, a proxy or an odd address needs it.

httpx2 takes longer to import than all the rest of a request to a model on this machine, which needs HTTP/1.1 and
nothing else. h11 knows the protocol; here are the sockets. Both ways fail with the same errors, and neither follows
redirects, keeps cookies or takes compressed answers.
"""

from __future__ import annotations

import select
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from commonplace.patterns import regex

if TYPE_CHECKING:
    import h11
    import httpx2
    from anyio.abc import SocketStream

    _Idle = tuple[SocketStream, h11.Connection]

CONNECT_SECONDS: Final = 30.0
"""How many seconds a connection may take."""
_MAX_HEAD_BYTES: Final = 100 * 1024
"""How long the status line and the headers of an answer may be; the same as in httpx2."""
_CHUNK_BYTES: Final = 64 * 1024
_MAX_IDLE: Final = 4
"""How many connections are kept for later requests: as many as agents usually ask at once."""
_PLAIN: Final = regex(r"http://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9/._~%:=&?,+-]*)?")


class ConnectionProblem(Exception):
    """A request did not get its whole answer; the message names the cause in a word."""


class CannotSend(ConnectionProblem):
    """The address or a header cannot be used."""


class NotReached(ConnectionProblem):
    """There is no connection to the server."""


class Interrupted(ConnectionProblem):
    """The connection ended, or spoke no HTTP, before the answer was complete."""


class Answer(Protocol):
    """An answer whose head has come; the body comes in chunks."""

    @property
    def status(self) -> int:
        """The status of HTTP."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are in lower case."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body.

        Raises:
            Interrupted: the body is not complete.
        """
        ...

    async def aclose(self) -> None:
        """Give the connection back, or close it if the answer was not read to its end."""
        ...


class Connections(Protocol):
    """The connections to servers. Belongs to one event loop."""

    async def send(self, method: str, url: str, headers: Mapping[bytes, bytes], content: bytes) -> Answer:
        """Send a request and return the answer as soon as its head has come.

        Raises:
            CannotSend: the address or a header cannot be used.
            NotReached: there is no connection to the server.
            Interrupted: the connection ended before the answer began.
        """
        ...

    async def aclose(self) -> None:
        """Close idle connections."""
        ...


def connections_to(base_url: str, *, trust_env: bool) -> Connections:
    """Return the way to the server at an address.

    Args:
        base_url: an address; those that are requested begin with it.
        trust_env: whether the proxies that the environment names are used.
    """
    if not trust_env and _PLAIN.fullmatch(base_url):
        return _PlainConnections()
    return _LibraryConnections(is_plain=base_url.startswith("http://"), trust_env=trust_env)


class _PlainConnections:
    """Connections without TLS to one server."""

    def __init__(self) -> None:
        self._idle: list[_Idle] = []

    async def send(self, method: str, url: str, headers: Mapping[bytes, bytes], content: bytes) -> _PlainAnswer:
        import h11

        parts = urlsplit(url)
        own = {b"host": parts.netloc.encode(), **headers}
        if content:
            own[b"content-length"] = str(len(content)).encode()
        try:
            host, port = parts.hostname or "", 80 if parts.port is None else parts.port
            target = url.partition(parts.netloc)[2] or "/"
            request = h11.Request(method=method, target=target, headers=list(own.items()))
        except (ValueError, h11.LocalProtocolError) as error:
            raise CannotSend(type(error).__name__) from None
        stream, protocol = await self._kept() or (await _connected(host, port), _new_protocol())
        answer = _PlainAnswer(stream, protocol, self._idle)
        try:
            await answer.begin(request, content)
        except BaseException:
            await answer.aclose()
            raise
        return answer

    async def _kept(self) -> _Idle | None:
        """Return a connection that is still open, if there is one."""
        while self._idle:
            stream, protocol = self._idle.pop()
            if not _is_readable(stream):  # a server that says something unasked says goodbye
                return stream, protocol
            await _close(stream)
        return None

    async def aclose(self) -> None:
        while self._idle:
            await _close(self._idle.pop()[0])


class _PlainAnswer:
    """An answer over a plain connection."""

    def __init__(self, stream: SocketStream, protocol: h11.Connection, idle: list[_Idle]) -> None:
        """Take a connection, and the list that it goes to when the answer is read."""
        self._stream: SocketStream | None = stream
        self._protocol = protocol
        self._idle = idle
        self.status = 0
        self.headers: Mapping[str, str] = {}

    async def begin(self, request: h11.Request, content: bytes) -> None:
        """Send a request and read the head of its answer."""
        import anyio
        import h11

        assert self._stream is not None
        parts = [request, *([h11.Data(data=content)] if content else []), h11.EndOfMessage()]
        with _told():
            data = b"".join(self._protocol.send(part) or b"" for part in parts)
            with suppress(anyio.BrokenResourceError):  # a server may refuse what it has not read to its end
                await self._stream.send(data)
            head = await self._event()
            while isinstance(head, h11.InformationalResponse):
                head = await self._event()
        if not isinstance(head, h11.Response):
            raise Interrupted("NoResponse")
        self.status = head.status_code
        headers: dict[str, str] = {}
        for name, value in head.headers:
            key, said = name.decode("ascii"), value.decode("utf-8", "replace")
            headers[key] = f"{headers[key]}, {said}" if key in headers else said
        self.headers = headers

    async def _event(self) -> Any:
        """Return the next event of the protocol."""
        import anyio
        import h11

        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            if self._stream is None:
                raise Interrupted("Closed")
            try:
                data = await self._stream.receive(_CHUNK_BYTES)
            except anyio.EndOfStream:
                data = b""
            self._protocol.receive_data(data)
        return event

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        import h11

        while True:
            with _told():
                event = await self._event()
            if not isinstance(event, h11.Data):
                return
            yield bytes(event.data)

    async def aclose(self) -> None:
        import h11

        stream, self._stream = self._stream, None
        if stream is None:
            return
        with suppress(h11.ProtocolError):  # the answer was not read to its end, or the server closes
            self._protocol.start_next_cycle()
            if self._protocol.trailing_data == (b"", False) and len(self._idle) < _MAX_IDLE:
                self._idle.append((stream, self._protocol))
                return
        await _close(stream)


class _LibraryConnections:
    """Connections of httpx2: TLS with the system's certificates, proxies, any address."""

    def __init__(self, *, is_plain: bool, trust_env: bool) -> None:
        import httpx2

        # Certificates cost 50 ms to load and a plain address has none.
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            trust_env=trust_env,
            verify=not is_plain,
            follow_redirects=False,
        )

    async def send(self, method: str, url: str, headers: Mapping[bytes, bytes], content: bytes) -> _LibraryAnswer:
        try:
            _ = urlsplit(url).port  # httpx2 does not look whether there can be such a port
        except ValueError as error:
            raise CannotSend(type(error).__name__) from None
        with _translated():
            request = self._client.build_request(method, url, content=content, headers=dict(headers))
            return _LibraryAnswer(await self._client.send(request, stream=True))

    async def aclose(self) -> None:
        await self._client.aclose()


class _LibraryAnswer:
    """An answer that httpx2 reads."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        raw = self._response.aiter_raw()
        try:
            while True:
                with _translated():
                    chunk = await anext(raw, None)
                if chunk is None:
                    return
                yield chunk
        finally:
            if isinstance(raw, AsyncGenerator):
                await raw.aclose()

    async def aclose(self) -> None:
        await self._response.aclose()


def _new_protocol() -> h11.Connection:
    import h11

    return h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)


async def _connected(host: str, port: int) -> SocketStream:
    import anyio

    try:
        with anyio.fail_after(CONNECT_SECONDS):
            return await anyio.connect_tcp(host, port)
    except TimeoutError:
        raise NotReached("ConnectTimeout") from None
    except OSError:
        raise NotReached("ConnectError") from None


def _is_readable(stream: SocketStream) -> bool:
    """Say whether a connection has something to read: data, or its end."""
    from anyio.abc import SocketAttribute

    poll = select.poll()
    poll.register(stream.extra_attributes[SocketAttribute.raw_socket](), select.POLLIN)
    return bool(poll.poll(0))


async def _close(stream: SocketStream) -> None:
    """Close a connection also when the task that asks for it is cancelled."""
    import anyio

    with anyio.CancelScope(shield=True):
        await stream.aclose()


@contextmanager
def _told() -> Generator[None]:
    """Tell what goes wrong on a plain connection in our own words."""
    import anyio
    import h11

    try:
        yield
    except h11.LocalProtocolError as error:
        raise CannotSend(type(error).__name__) from None
    except (h11.RemoteProtocolError, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
        raise Interrupted(type(error).__name__) from None


@contextmanager
def _translated() -> Generator[None]:
    """Translate what httpx2 raises; its errors hold the request, and so the key."""
    import httpx2

    try:
        yield
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, httpx2.LocalProtocolError) as error:
        raise CannotSend(type(error).__name__) from None
    except (httpx2.ReadError, httpx2.RemoteProtocolError, httpx2.CloseError, httpx2.StreamError) as error:
        raise Interrupted(type(error).__name__) from None
    except httpx2.ReadTimeout:
        raise TimeoutError from None
    except httpx2.HTTPError as error:
        raise NotReached(type(error).__name__) from None
