"""The process of a server: its log, the book, and the transport that was asked for."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import Final

import anyio

from commonplace import config
from commonplace.app import book as books
from commonplace.app.config_overrides import Overrides
from commonplace.surfaces.app_server import addresses, stdio
from commonplace.surfaces.app_server.addresses import Address, LoopbackPort
from commonplace.surfaces.app_server.server import AppServer
from commonplace.surfaces.line_streams import private_descriptors

_MOST_LOGGED: Final = 200
"""Lines of the log, each of at most 200 characters: a client may not read it, and a full pipe would stop us."""


class StderrLog:
    """Tells whoever looks at stderr what was ignored, and falls silent when that becomes too much."""

    def __init__(self) -> None:
        self._left = _MOST_LOGGED

    def __call__(self, text: str) -> None:
        if self._left <= 0:
            return
        self._left -= 1
        line = text.encode("utf-8", "replace").decode()[:200].replace("\n", " ")
        with suppress(OSError):
            sys.stderr.write(f"commonplace: {line}\n" if self._left else "commonplace: Nothing more is logged.\n")
            sys.stderr.flush()


def run(given: Overrides, profile: str | None, listen: str) -> None:
    """Serve on an address until the client is gone (stdio) or the process is told to end (raises BadInput)."""
    home = config.load(None, given.flags, given.providers, profile or given.profile).home
    address = addresses.parse(listen, home)
    if address is None:
        anyio.run(_serve_stdio, given, profile)
        return
    token = addresses.token(home, os.environ)
    with addresses.bound(address) as listening:
        anyio.run(_serve_sockets, given, profile, listening, address, token)


async def _serve_stdio(given: Overrides, profile: str | None) -> None:
    incoming, outgoing = private_descriptors()
    log = StderrLog()
    async with books.open(
        flags=given.flags, providers=given.providers, profile=profile or given.profile, warn=log
    ) as book:
        await stdio.serve(AppServer(book, log, given.model(None)), incoming, outgoing)


async def _serve_sockets(
    given: Overrides, profile: str | None, listening: socket.socket, address: Address, token: str
) -> None:
    from commonplace.surfaces.app_server import sockets  # its library is slow to load, and stdio does not need it

    log = StderrLog()
    async with books.open(
        flags=given.flags, providers=given.providers, profile=profile or given.profile, warn=log
    ) as book:
        server = AppServer(book, log, given.model(None))
        if isinstance(address, LoopbackPort):
            log(f"Clients show the token of {addresses.TOKEN_VARIABLE}, or else of {addresses.token_file(book.home)}.")
        await sockets.serve_until_told(server, listening, address, token)
