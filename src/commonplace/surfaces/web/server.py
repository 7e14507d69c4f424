"""`commonplace web`: the page's server on loopback, for as long as the command runs."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable

import anyio

from commonplace.app import book as books
from commonplace.surfaces import asgi, loopback
from commonplace.surfaces.web.access import ENTRANCE, Access
from commonplace.surfaces.web.application import build


def run(port: int, tell: Callable[[str], None], warn: Callable[[str], None], *, opens: bool = False) -> None:
    """Serve the page on a port of this machine until a signal says to end.

    Raises:
        BadInput: the port is taken.
        BadSetting: a setting cannot be used.
    """
    listening = loopback.listen(port)
    number = listening.getsockname()[1]

    async def inside() -> None:
        async with books.open(warn=warn) as book, build(book) as application:
            access = Access(application, number)

            def ready() -> None:
                address = f"http://127.0.0.1:{number}{ENTRANCE}?token={access.token}"
                tell(f"The page is at {address}")
                tell("This address works once, in one browser of this machine. Ctrl-C ends the page.")
                if opens:
                    webbrowser.open(address)

            await asgi.serve(access, listening, ready)

    with listening:
        anyio.run(inside)
