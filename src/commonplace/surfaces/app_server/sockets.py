"""The app server on a socket: each client is a WebSocket connection, each message a text frame; they share threads.

The library `websockets` does the framing. A request that a web page makes is refused, whatever it asks for; on a port,
a client shows the token. When a client goes away, what it asked for is cancelled, and turns that it began go on.
"""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio
from websockets.asyncio.server import Server, ServerConnection, serve, unix_serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from commonplace.surfaces import loopback
from commonplace.surfaces.app_server.addresses import Address, LoopbackPort
from commonplace.surfaces.app_server.backlog import Backlog
from commonplace.surfaces.app_server.connection import Connection
from commonplace.surfaces.app_server.dispatch import Dispatcher
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.line_streams import MAX_LINE

_HEALTH: Final = ("/readyz", "/healthz")
_SILENT: Final = logging.getLogger("commonplace.app_server")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # what hostile clients do is no news


class SocketOutgoing:
    """The way to the client through a WebSocket."""

    def __init__(self, client: ServerConnection, gone: Callable[[], None]) -> None:
        self._client = client
        self._gone = gone
        self._backlog = Backlog()
        self._send, self._receive = anyio.create_memory_object_stream[bytes](float("inf"))

    def send(self, message: bytes) -> None:
        """Put a message on its way; never waits."""
        if not self._backlog.add(len(message)):
            self._gone()
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody writes any more
            self._send.send_nowait(message)

    async def drained(self) -> None:
        """Return when there is room for more."""
        await self._backlog.drained()

    async def write(self) -> None:
        """Write what is on its way, until the client is gone."""
        with self._send, self._receive, suppress(ConnectionClosed):
            async for message in self._receive:
                await self._client.send(message, text=True)
                self._backlog.written(len(message))
        self._gone()


async def talk(server: AppServer, socket_client: ServerConnection) -> None:
    """Answer one client until it is gone."""
    async with anyio.create_task_group() as tasks:
        out = SocketOutgoing(socket_client, tasks.cancel_scope.cancel)
        client = Connection(Dispatcher(server), out, tasks, server.log)
        tasks.start_soon(out.write)
        try:
            with suppress(ConnectionClosed):
                async for message in socket_client:
                    await client.take(message)
        finally:
            client.close()
            tasks.cancel_scope.cancel()


def admit(token: str | None, port: int, connection: ServerConnection, request: Request) -> Response | None:
    """Answer a request that opens no connection; None lets it open one. Without a token, the file's mode guards it."""
    headers = loopback.Headers((name.encode(), value.encode("utf-8")) for name, value in request.headers.raw_items())
    if "origin" in headers:
        return connection.respond(HTTPStatus.FORBIDDEN, "Web pages may not ask this server.\n")
    if request.path in _HEALTH:
        return connection.respond(HTTPStatus.OK, "ok\n")
    if token is not None and (refused := loopback.bearer_refusal(headers, port, token)) is not None:
        status, reason = refused
        return connection.respond(HTTPStatus(status), f"{reason}\n")
    return None


async def listen(server: AppServer, listening: socket.socket, address: Address, token: str) -> Server:
    """Begin to take clients; return what ends that."""
    if isinstance(address, LoopbackPort):
        open_server, check = serve, partial(admit, token, listening.getsockname()[1])
    else:
        open_server, check = unix_serve, partial(admit, None, 0)
    return await open_server(
        partial(talk, server),
        sock=listening,
        process_request=check,
        compression=None,  # nothing leaves this machine
        max_size=MAX_LINE,
        open_timeout=5,
        ping_interval=None,  # a client that is busy is not dead; one whose process ended closes its socket
        close_timeout=2,
        server_header=None,
        logger=_SILENT,
    )


async def serve_until_told(server: AppServer, listening: socket.socket, address: Address, token: str) -> None:
    """Serve clients until the process is told to end; then connections are closed, and running turns interrupted."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        open_server = await listen(server, listening, address, token)
        server.log(f"Listening on {where(listening, address)}.")
        try:
            await received.__anext__()
        finally:
            with anyio.CancelScope(shield=True):
                open_server.close(code=1001, reason="The server ends.")
                await open_server.wait_closed()


def where(listening: socket.socket, address: Address) -> str:
    """Return where clients find the server."""
    if isinstance(address, LoopbackPort):
        return f"ws://127.0.0.1:{listening.getsockname()[1]}"
    return f"unix://{address.path}"
