"""Servers for this machine alone: the socket, the server that runs on it, and who may ask.

A page in a browser can make the browser ask a server on this machine, also under a name of the page's own choice. So
the name that was asked for must be ours, and a request that says which page it comes from must come from us. What else
a client must show (a token, a cookie) is each server's own affair.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping
from typing import Any, TypeAlias, cast

import anyio
import uvicorn

from commonplace.errors import BadInput

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Headers(dict[str, str]):
    """The headers of a request by their names in lower case; `twice` are those that came more than once."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        super().__init__()
        self.twice: set[str] = set()
        for raw_name, raw_value in pairs:
            name = raw_name.decode("latin-1").lower()
            if name in self:
                self.twice.add(name)
            self[name] = raw_value.decode("latin-1").strip()


def refusal(headers: Headers, port: int) -> tuple[int, str] | None:
    """Return the status and the reason for which a request of a web page is refused; None if it may go on."""
    names = {f"127.0.0.1:{port}", f"localhost:{port}"}
    if port == 80:
        names |= {"127.0.0.1", "localhost"}
    if headers.get("host", "").lower() not in names or "host" in headers.twice:
        return 403, "This server answers under its own name only."
    origin = headers.get("origin")
    if origin is not None and (origin.lower() not in {f"http://{name}" for name in names} or "origin" in headers.twice):
        return 403, "Web pages may not ask this server."
    return None


class BodyTooLarge(Exception):
    """The body of a request is larger than the server takes."""


async def read_body(headers: Headers, receive: Receive, most: int) -> bytes:
    """Return the body of a request (raises BodyTooLarge)."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise BodyTooLarge
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > most:
            raise BodyTooLarge
        parts.append(part)
        if message.get("type") == "http.disconnect" or not message.get("more_body", False):
            return b"".join(parts)


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of 127.0.0.1; 0 takes a free one (raises BadInput)."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise BadInput(f"Port {port} cannot be used: {reason}.", hint="Choose another, or 0 for a free one.") from None
    return listening


class _Server(uvicorn.Server):
    """Uvicorn without its own way with signals: ours end the process in order, and with exit code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(application: Application, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serve an ASGI application until a signal says to end; `ready` is called once signals are handled."""
    config = uvicorn.Config(
        cast("Any", application),
        lifespan="off",
        ws="none",
        http="h11",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    server = _Server(config)

    async def end() -> None:
        async for _ in received:
            server.should_exit = True

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        ready()  # from here on a signal ends the server in order, and whoever connects waits in line
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            await server.serve(sockets=[listening])
            tasks.cancel_scope.cancel()
