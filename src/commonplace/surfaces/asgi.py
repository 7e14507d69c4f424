"""Running an ASGI application on a socket of this machine until a signal says to end."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import Any, TypeAlias, cast

import anyio
import uvicorn

from commonplace.surfaces.loopback import Headers

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


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


class _Server(uvicorn.Server):
    """Uvicorn without its own way with signals: ours end the process in order, and with exit code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(application: Application, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Serve an ASGI application until a signal says to end; `ready` is called once signals are handled."""
    ended = anyio.Event()

    async def end() -> None:
        async for _ in received:
            ended.set()

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        ready()  # from here on a signal ends the server in order, and whoever connects waits in line
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            await serve_until(application, listening, ended)
            tasks.cancel_scope.cancel()


async def serve_until(application: Application, listening: socket.socket, ended: anyio.Event) -> None:
    """Serve an ASGI application until the event is set."""
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
        await ended.wait()
        server.should_exit = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        await server.serve(sockets=[listening])
        tasks.cancel_scope.cancel()
