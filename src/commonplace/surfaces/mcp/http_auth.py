"""Authentication over HTTP: a client needs the token and must run on this machine; web pages are refused."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Final

from commonplace.errors import BadInput
from commonplace.surfaces import loopback
from commonplace.surfaces.loopback import Headers

TOKEN_VARIABLE: Final = "COMMONPLACE_MCP_TOKEN"  # noqa: S105  # the variable's name, not a token
_SHORTEST: Final = 16


def token(environment: Mapping[str, str]) -> tuple[str, bool]:
    """Return the token that clients must show, and whether it was made up now.

    Raises:
        BadInput: the one in the environment is too short to be a secret, or cannot stand in a header.
    """
    chosen = environment.get(TOKEN_VARIABLE)
    if chosen is None:
        return secrets.token_urlsafe(32), True
    if len(chosen) < _SHORTEST or not chosen.isascii() or not chosen.isprintable() or " " in chosen:
        hint = f"Use {_SHORTEST} or more letters and digits, or leave it unset."
        raise BadInput(f"{TOKEN_VARIABLE} is no good token.", hint=hint)
    return chosen, False


def refusal(headers: Headers, port: int, wanted: str) -> tuple[int, str] | None:
    """Return the status and the reason for which a request is turned away; None if it may come in."""
    refused = loopback.refusal(headers, port)
    if refused is not None:
        return refused
    kind, _, shown = headers.get("authorization", "").partition(" ")
    good = hmac.compare_digest(shown.strip().encode("latin-1"), wanted.encode("latin-1"))
    if kind.lower() != "bearer" or not good or "authorization" in headers.twice:
        return 401, "This server wants its token: `Authorization: Bearer …`."
    return None
