"""Requests over real sockets, byte by byte: by our own plain connection, and by httpx2 with the same outcome."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from commonplace.models.connections import (
    CannotSend,
    ConnectionProblem,
    Connections,
    Interrupted,
    NotReached,
    connections_to,
)

WAYS = ["plain", "library"]
HEADERS = {b"content-type": b"application/json"}


class RawServer:
    """Answers each request with bytes from a list; after those that say so it closes."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed = anyio.Event()
        self.port = 0

    async def handle(self, stream: SocketStream) -> None:
        self.connections += 1
        reader = BufferedByteReceiveStream(stream)
        async with stream:
            try:
                while True:
                    head = await reader.receive_until(b"\r\n\r\n", 65536)
                    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                    body = await reader.receive_exactly(int(length or 0))
                    self.requests.append(head + b"\r\n\r\n" + body)
                    answer = self.answers.pop(0)
                    await stream.send(answer.removesuffix(CLOSE))
                    if answer.endswith(CLOSE):
                        return
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                self.closed.set()


CLOSE = b"<the server closes>"


@asynccontextmanager
async def serving(*answers: bytes, host: str = "127.0.0.1") -> AsyncGenerator[RawServer, None]:
    server = RawServer(*answers)
    listener = await anyio.create_tcp_listener(local_host=host, local_port=0)
    server.port = listener.listeners[0].extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.handle)
        yield server
        group.cancel_scope.cancel()


def address(way: str, port: int) -> str:
    """An address that goes one way; one with a name in it is odd enough for httpx2."""
    return f"http://{'' if way == 'plain' else 'kim@'}127.0.0.1:{port}/v1"


async def asked(connections: Connections, url: str, content: bytes = b"{}") -> tuple[int, dict[str, str], bytes]:
    answer = await connections.send("POST", url, HEADERS, content)
    try:
        body = b"".join([chunk async for chunk in answer.chunks()])
    finally:
        await answer.aclose()
    return answer.status, dict(answer.headers), body


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", (200, b"hi")),
        (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi", (200, b"hi")),
        (b"HTTP/1.1 204 No\r\n\r\n", (204, b"")),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", (200, b"")),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end" + CLOSE, (200, b"to the end")),
        (b"HTTP/1.1 200 OK\r\n\r\nto the end" + CLOSE, (200, b"to the end")),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n1;x=y\r\n!\r\n0\r\nz: 1\r\n\r\n",
            (200, b"hi!"),
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", (200, b"hi")),
        (b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 429 No\r\ncontent-length: 1\r\n\r\nx", (429, b"x")),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", (302, b"")),
        (b"HTTP/1.1 413 Large\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx" + CLOSE, (413, b"x")),
    ],
)
async def test_a_whole_answer_is_read_however_it_is_framed(way: str, sent: bytes, expected: tuple[int, bytes]) -> None:
    async with serving(sent) as server:
        connections = connections_to(address(way, server.port), trust_env=False)
        status, _, body = await asked(connections, address(way, server.port) + "/responses?a=b%20c")
        await connections.aclose()

    assert expected == (status, body)
    [request] = server.requests
    assert request.startswith(b"POST /v1/responses?a=b%20c HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{server.port}\r\n".encode() in request.lower()
    assert request.endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "sent",
    [
        CLOSE,
        b"HTTP/1.1 200 OK\r\ncontent-le" + CLOSE,
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi" + CLOSE,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhi" + CLOSE,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n" + CLOSE,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nhi",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + CLOSE,
    ],
)
async def test_an_answer_that_is_cut_or_no_http_is_interrupted(way: str, sent: bytes) -> None:
    async with serving(sent) as server:
        connections = connections_to(address(way, server.port), trust_env=False)
        with pytest.raises(Interrupted):
            await asked(connections, address(way, server.port))
        await connections.aclose()


WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (WHOLE, 1),
        (WHOLE + CLOSE, 2),
        (WHOLE.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), 2),
    ],
)
async def test_a_connection_serves_the_next_request_while_it_is_open(way: str, first: bytes, expected: int) -> None:
    async with serving(first, WHOLE) as server:
        url = address(way, server.port)
        connections = connections_to(url, trust_env=False)
        await asked(connections, url)
        await anyio.wait_all_tasks_blocked()
        assert b"hi" == (await asked(connections, url))[2]
        await connections.aclose()

    assert expected == server.connections


async def test_a_connection_that_says_something_unasked_is_not_used_again() -> None:
    async with serving(WHOLE + WHOLE, WHOLE) as server:
        url = address("plain", server.port)
        connections = connections_to(url, trust_env=False)
        assert [b"hi", b"hi"] == [(await asked(connections, url))[2] for _ in range(2)]
        await connections.aclose()

    assert 2 == server.connections


async def test_headers_are_in_lower_case_and_several_are_joined() -> None:
    raw = b"HTTP/1.1 200 OK\r\nX-Limit: 1\r\nx-limit: 2\r\nName: gr\xc3\xb6\xc3\x9fe\r\ncontent-length: 0\r\n\r\n"
    async with serving(raw) as server:
        url = address("plain", server.port)
        connections = connections_to(url, trust_env=False)
        _, headers, _ = await asked(connections, url)
        await connections.aclose()

    assert {"x-limit": "1, 2", "name": "größe", "content-length": "0"} == headers


@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_that_is_left_in_the_middle_closes_its_connection(way: str) -> None:
    async with serving(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi") as server:
        url = address(way, server.port)
        connections = connections_to(url, trust_env=False)
        answer = await connections.send("POST", url, HEADERS, b"")
        chunks = answer.chunks()
        assert b"hi" == await anext(chunks)
        await chunks.aclose()
        await answer.aclose()
        await server.closed.wait()
        await connections.aclose()


@pytest.mark.parametrize("way", WAYS)
async def test_a_request_that_is_cancelled_closes_its_connection(way: str) -> None:
    async with serving(b"") as server:
        url = address(way, server.port)
        connections = connections_to(url, trust_env=False)
        async with anyio.create_task_group() as group:
            group.start_soon(connections.send, "POST", url, HEADERS, b"")
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        await server.closed.wait()
        await connections.aclose()


async def test_several_requests_at_once_have_connections_of_their_own() -> None:
    async with serving(*[WHOLE] * 12) as server:
        url = address("plain", server.port)
        connections = connections_to(url, trust_env=False)
        for _ in range(2):
            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(asked, connections, url)
        await connections.aclose()

    assert 12 == len(server.requests)
    assert 6 <= server.connections <= 8


@pytest.mark.parametrize(
    ("url", "name", "expected"),
    [
        ("http://127.0.0.1:1/v1", b"a", NotReached),
        ("http://kim@127.0.0.1:1/v1", b"a", NotReached),
        ("http://no-such-host.invalid/v1", b"a", NotReached),
        ("http://127.0.0.1:99999/v1", b"a", CannotSend),
        ("http://kim@127.0.0.1:99999/v1", b"a", CannotSend),
        ("http:///v1", b"a", CannotSend),
        ("ftp://127.0.0.1/v1", b"a", CannotSend),
        ("127.0.0.1:8000/v1", b"a", CannotSend),
        ("http://127.0.0.1:1/v1", b"a b", CannotSend),
    ],
)
async def test_what_cannot_be_sent_says_why(url: str, name: bytes, expected: type[ConnectionProblem]) -> None:
    connections = connections_to(url, trust_env=False)
    with pytest.raises(expected):
        await connections.send("POST", url, {name: b"1"}, b"{}")
    await connections.aclose()


async def test_an_address_of_the_newer_kind_is_reached() -> None:
    async with serving(WHOLE, host="::1") as server:
        url = f"http://[::1]:{server.port}"
        connections = connections_to(url, trust_env=False)
        assert b"hi" == (await asked(connections, url))[2]
        await connections.aclose()

    assert server.requests[0].startswith(b"POST / HTTP/1.1\r\n")


async def test_a_proxy_is_used_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(WHOLE) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        url = "http://model.invalid/v1"
        connections = connections_to(url, trust_env=True)
        assert b"hi" == (await asked(connections, url))[2]
        await connections.aclose()

    assert proxy.requests[0].startswith(b"POST http://model.invalid/v1 HTTP/1.1\r\n")
