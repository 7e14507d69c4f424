"""The process of an agent for an editor: one message a line on stdin and stdout, until the editor closes its end."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import suppress
from typing import Any, Final

import acp
import anyio
import anyio.to_thread
import msgspec
from acp.core import AgentSideConnection

from commonplace.app import book as books
from commonplace.app.config_overrides import Overrides
from commonplace.surfaces import message_ids
from commonplace.surfaces.acp.agent import EditorAgent
from commonplace.surfaces.line_streams import MAX_LINE, LineReader, LineWriter, TooLong, private_descriptors

_LAST_SECONDS: Final = 2.0
"""How long the editor may take to read what is on its way when the process ends."""


class LineTransport:
    """Messages as lines; what is no message is passed over, and answered where it is too long."""

    def __init__(self, lines: LineReader, writer: LineWriter) -> None:
        self._lines = lines
        self._writer = writer

    async def send(self, message: dict[str, Any]) -> None:
        """Put a message on its way."""
        self._writer.write(msgspec.json.encode(message))

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end."""
        async for line in self._lines:
            if isinstance(line, TooLong):
                self._refuse(line.begin)
                continue
            with suppress(msgspec.DecodeError, RecursionError, UnicodeError):
                if line.strip():
                    return msgspec.json.decode(line, type=dict[str, Any])
        return None

    def _refuse(self, begin: bytes) -> None:
        """Answer a request that is too long, so that the editor does not wait for it."""
        known = message_ids.of_broken(begin)
        if known is not None:
            error = {"code": -32600, "message": f"A message has at most {MAX_LINE // 2**20} MB."}
            self._writer.write(msgspec.json.encode({"jsonrpc": "2.0", "id": known, "error": error}))

    async def close(self) -> None:
        """Do nothing: the process closes its ends."""


def run(given: Overrides, profile: str | None) -> None:
    """Serve the editor that started this process."""
    logging.disable()  # the library tells of each bad message with a traceback; the editor gets an error already
    anyio.run(_run, given, profile)


async def _run(given: Overrides, profile: str | None) -> None:
    incoming, outgoing = private_descriptors()
    ended = anyio.Event()
    async with books.open(
        flags=given.flags, providers=given.providers, profile=profile or given.profile, warn=_warn
    ) as book:
        agent: acp.Agent = EditorAgent(book, given.model(None))  # pyright: ignore[reportAssignmentType]
        writer = LineWriter(outgoing, ended.set)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received, LineReader(incoming) as lines:
            connection = AgentSideConnection(
                agent, LineTransport(lines, writer), listening=False, use_unstable_protocol=True
            )
            async with anyio.create_task_group() as tasks:

                async def end_on_signal() -> None:
                    await received.__anext__()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(end_on_signal)
                await connection.listen()
                tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await connection.close()
    await anyio.to_thread.run_sync(writer.end, _LAST_SECONDS)


def _warn(text: str) -> None:
    sys.stderr.write(f"commonplace: {text}\n")
