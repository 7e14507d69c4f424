"""An HTTP server on loopback that answers from a list and controls every byte.

Real sockets and real framing: a `Reply` is sent as HTTP/1.1 with chunked encoding, and each piece of its body is a
chunk of its own, so a test decides where a stream is cut. A reply may close in the middle, wait for an event, or go on
dripping until the client leaves. The server keeps the requests and notes when a client closes its connection.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

Json = dict[str, Any]


@dataclass
class Reply:
    """One answer."""

    pieces: Iterable[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    ends: bool = True
    """False: the connection is closed where the end of the body should be."""
    hold: anyio.Event | None = None
    """After the pieces, wait for this or for the client to go away."""


@dataclass
class Seen:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json


class ScriptedServer:
    """What a test sees of the server."""

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        self.replies = list(replies)
        self.seen: list[Seen] = []
        self.connections = 0
        self.sent = anyio.Event()
        """The pieces of a reply that holds are out."""
        self.left = anyio.Event()
        """A client closed its connection while a reply was not over."""
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, stream: SocketStream) -> None:
        self.connections += 1
        reader = BufferedByteReceiveStream(stream)
        async with stream:
            try:
                while await self._exchange(reader, stream):
                    pass
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.left.set()
            except (anyio.EndOfStream, anyio.IncompleteRead):
                pass

    async def _exchange(self, reader: BufferedByteReceiveStream, stream: SocketStream) -> bool:
        head = (await reader.receive_until(b"\r\n\r\n", 65536)).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.receive_exactly(int(headers.get("content-length", "0")))
        self.seen.append(Seen(method, path, headers, json.loads(body)))
        assert self.replies, f"request {len(self.seen)} is not in the script"
        reply = self.replies.pop(0)
        own = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **reply.headers}
        named = "".join(f"{name}: {value}\r\n" for name, value in own.items())
        await stream.send(f"HTTP/1.1 {reply.status} Scripted\r\n{named}\r\n".encode())
        for piece in reply.pieces:
            await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        if reply.hold is not None:
            self.sent.set()
            await self._held(reader, reply.hold)
        if not reply.ends:
            return False
        await stream.send(b"0\r\n\r\n")
        return True

    async def _held(self, reader: BufferedByteReceiveStream, hold: anyio.Event) -> None:
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                try:
                    await reader.receive(1)
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    self.left.set()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await hold.wait()
            group.cancel_scope.cancel()


@asynccontextmanager
async def serve(*replies: Reply) -> AsyncGenerator[ScriptedServer, None]:
    """Run a server; at the end every reply must have been asked for."""
    server = ScriptedServer(replies)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    server.port = listener.listeners[0].extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.handle)
        yield server
        group.cancel_scope.cancel()
    assert not server.replies, f"{len(server.replies)} replies were never asked for"


def whole(data: bytes) -> list[bytes]:
    """Return a body in one piece."""
    return [data]


def bytewise(data: bytes) -> list[bytes]:
    """Return a body cut at every byte."""
    return [data[n : n + 1] for n in range(len(data))]


def refusal(status: int, body: Json | str, **headers: str) -> Reply:
    """Return an answer that is an error."""
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/html" if isinstance(body, str) else "application/json"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(whole(text.encode()), status, {"content-type": kind, **named})
