"""A bridge for clients that only speak on stdin and stdout: lines become messages of a server's socket, and back."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.to_thread
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from commonplace.errors import BadInput
from commonplace.surfaces.app_server import messages
from commonplace.surfaces.line_streams import MAX_LINE, LineReader, LineWriter, TooLong, private_descriptors


def run(path: Path) -> None:
    """Connect stdin and stdout with the server on a socket, until either of them ends (raises BadInput)."""
    anyio.run(_run, path)


async def _run(path: Path) -> None:
    try:
        server = await unix_connect(str(path), compression=None, max_size=None, ping_interval=None)
    except (OSError, WebSocketException) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        hint = "Start one with: commonplace app-server --listen unix://"
        raise BadInput(f"No server answers on {path}: {reason}.", hint=hint) from None
    incoming, outgoing = private_descriptors()
    ended = anyio.CancelScope()
    writer = LineWriter(outgoing, ended.cancel)
    async with server, anyio.create_task_group() as tasks:
        ended = tasks.cancel_scope
        tasks.start_soon(_to_client, server, writer, ended)
        with LineReader(incoming) as lines:
            async for line in lines:
                if isinstance(line, TooLong):
                    _refuse(writer, messages.too_long(line.begin, MAX_LINE))
                elif line.strip():
                    await server.send(line.decode("utf-8", "replace"))
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(writer.end, 2.0)


def _refuse(writer: LineWriter, message: messages.Malformed) -> None:
    """Answer a line that the server would close the connection for."""
    if message.id is not None:
        error = messages.invalid(f"Invalid request: {message.problem}")
        writer.write(messages.encode(messages.failure(message.id, error)))


async def _to_client(server: ClientConnection, writer: LineWriter, everything: anyio.CancelScope) -> None:
    try:
        async for message in server:
            writer.write(message.encode() if isinstance(message, str) else message)
    except ConnectionClosed:
        pass
    everything.cancel()
