"""Servers for this machine alone: the socket, the token, and who may ask.

A page in a browser can make the browser ask a server on this machine, also under a name of the page's own choice. So
the name that was asked for must be ours, and a request that says which page it comes from must come from us. What else
a client must show (a token in a header, a cookie) is each server's own affair.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Iterable, Mapping
from typing import Final

from commonplace.errors import BadInput

_SHORTEST: Final = 16
"""How many characters a token has at least."""


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


def bearer_refusal(headers: Headers, port: int, wanted: str) -> tuple[int, str] | None:
    """Return the status and the reason for which a request that must show a token is refused; None if it may go on."""
    refused = refusal(headers, port)
    if refused is not None:
        return refused
    kind, _, shown = headers.get("authorization", "").partition(" ")
    good = hmac.compare_digest(shown.strip().encode("latin-1"), wanted.encode("latin-1"))
    if kind.lower() != "bearer" or not good or "authorization" in headers.twice:
        return 401, "This server wants its token: `Authorization: Bearer …`."
    return None


def token(environment: Mapping[str, str], variable: str) -> tuple[str, bool]:
    """Return the token that clients must show, and whether it was made up now.

    Raises:
        BadInput: the one in the environment is too short to be a secret, or cannot stand in a header.
    """
    chosen = environment.get(variable)
    if chosen is None:
        return secrets.token_urlsafe(32), True
    if len(chosen) < _SHORTEST or not chosen.isascii() or not chosen.isprintable() or " " in chosen:
        hint = f"Use {_SHORTEST} or more letters and digits, or leave it unset."
        raise BadInput(f"{variable} is no good token.", hint=hint)
    return chosen, False


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine (raises BadInput: it cannot be used)."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise BadInput(f"Port {port} cannot be used: {reason}.", hint="Choose another, or 0 for a free one.") from None
    return listening
