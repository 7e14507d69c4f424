"""Servers that listen, and clients of the library that talk with them, over each transport."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import processes
from commonplace import client
from exec_driver import Place

Transport = Literal["stdio", "unix", "ws"]
_READY = "Listening on "


class Listening:
    """A server process that listens on a socket."""

    def __init__(self, place: Place, listen: str) -> None:
        self.place = place
        self.process = processes.Process(
            ["app-server", "--listen", listen], env=place.environment(), cwd=place.cwd, text=True
        )
        assert self.process.stderr is not None
        said: list[str] = []
        while not said or _READY not in said[-1]:
            line = self.process.stderr.readline()
            assert line, said
            said.append(line)
        self.address = said[-1].partition(_READY)[2].strip().rstrip(".")

    @property
    def token(self) -> str:
        """The token of the home's ports."""
        return (self.place.home / "app-server" / "token").read_text().strip()

    def connect(self, **more: Any) -> Any:
        """Connect a client of the library."""
        token = self.token if self.address.startswith("ws") else None
        return client.connect(self.address, token=token, name="test", **more)

    def end(self) -> int:
        """End it with a signal, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def listening(place: Place, transport: Transport) -> Generator[Listening]:
    """Run a server that listens."""
    server = Listening(place, "unix://" if transport == "unix" else "ws://127.0.0.1:0")
    try:
        yield server
    finally:
        if server.process.returncode is None:
            server.end()
        assert server.process.stdout is not None
        assert server.process.stderr is not None
        server.process.stdout.close()
        server.process.stderr.close()


@asynccontextmanager
async def talking(place: Place, transport: Transport, **more: Any) -> AsyncGenerator[client.Client]:
    """Connect a client with a server of its own."""
    if transport == "stdio":
        command = [sys.executable, "-m", "commonplace", "app-server"]
        async with client.start(
            command, environment=place.environment(), cwd=place.cwd, name="test", **more
        ) as connected:
            yield connected
    else:
        with listening(place, transport) as server:
            async with server.connect(**more) as connected:
                yield connected
