"""Who may use the web page: one browser of this machine, which showed the token that was printed.

    GET /enter?token=…    once: the token is used up, and the browser gets a cookie
    everything else       the cookie; a name of ours in Host and Origin; no request that another page caused
    POST                  also our own Origin and the secret that stands in every form of ours

No request reaches the application before all of that was checked, so no page can forget a check. Every answer carries
the headers that keep a page from loading or running anything that is not ours.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from commonplace.surfaces import asgi, loopback
from commonplace.surfaces.asgi import Application, Receive, Scope, Send
from commonplace.surfaces.loopback import Headers

ENTRANCE: Final = "/enter"
FORM_BYTES: Final = 256 * 1024
"""The longest form."""
_FIELDS: Final = 2_000
"""How many fields a form may have."""
THEMES: Final = ("light", "dark")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "referrer-policy": "same-origin",  # `no-referrer` would take the Origin out of our own forms
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
_KEY: Final = "commonplace"


class Visitor(msgspec.Struct, frozen=True):
    """What is known of a request that was let in."""

    csrf: str
    """The secret that forms must send back."""
    form: dict[str, str] = {}
    """The fields of a POST."""
    theme: str = ""
    """`light`, `dark`, or empty: as the system has it."""


def visitor(scope: MutableMapping[str, Any]) -> Visitor:
    """Return what is known of a request that was let in."""
    return scope[_KEY]


class Access:
    """Lets in who may use the page (an ASGI application around another)."""

    def __init__(self, inside: Application, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        """What lets one browser in, once."""
        self._inside = inside
        self._port = port
        self._cookie = f"commonplace_{port}"  # cookies know no ports, and several pages may be open
        self._secret: str | None = None
        self._csrf = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        headers = Headers(scope["headers"])
        refused = loopback.refusal(headers, self._port) or _refusal(scope, headers)
        if refused is None and scope["path"] == ENTRANCE:
            await self._enter(scope, send)
            return
        cookies = _cookies(headers)
        if refused is None and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            refused = 403, "Other pages may not lead here. Open the address that `commonplace web` printed."
        shown = cookies.get(self._cookie, "")
        if refused is None and (self._secret is None or not _same(shown, self._secret)):
            refused = (
                401,
                "Open the address that `commonplace web` printed. It works once; start it again for a new one.",
            )
        if refused is None and scope["method"] == "POST" and headers.get("origin") is None:
            refused = 403, "A change must come from a page of this server."
        if refused is not None:
            await _plain(send, *refused)
            return
        form: dict[str, str] = {}
        if scope["method"] == "POST":
            try:
                form = await _form(headers, receive)
            except (asgi.BodyTooLarge, ValueError):
                await _plain(send, 413, "This form is too large, or it is none.")
                return
            if not _same(form.pop("csrf", ""), self._csrf):
                await _plain(send, 403, "This form is of another session. Load the page again and repeat the change.")
                return
        theme = cookies.get("commonplace_theme", "")
        scope[_KEY] = Visitor(self._csrf, form, theme if theme in THEMES else "")
        await self._inside(scope, receive, _with_headers(send))

    async def _enter(self, scope: Scope, send: Send) -> None:
        """Let a browser in that shows the token; the page then leads on by itself, so that the cookie is sent."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] != "GET" or not self.token or not _same(given, self.token):
            await _plain(send, 403, "This address was used already, or it is wrong. Start `commonplace web` again.")
            return
        self.token, self._secret = "", secrets.token_urlsafe(32)
        cookie = f"{self._cookie}={self._secret}; Path=/; HttpOnly; SameSite=Strict"
        await _plain(send, 200, "Welcome.", **{"set-cookie": cookie, "refresh": "0; url=/"})


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _refusal(scope: Scope, headers: Headers) -> tuple[int, str] | None:
    if scope["method"] not in ("GET", "HEAD", "POST"):
        return 405, "Pages are read with GET and changed with POST."
    if "cookie" in headers.twice:
        return 400, "This request names its cookies twice."
    return None


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


async def _form(headers: Headers, receive: Receive) -> dict[str, str]:
    """Return the fields of a form (raises ValueError, BodyTooLarge)."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise ValueError("no form")
    body = await asgi.read_body(headers, receive, FORM_BYTES)
    fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS, errors="replace")
    return {name: values[-1] for name, values in fields.items()}


def _with_headers(send: Send) -> Send:
    async def told(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message.get("headers", ())}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return told


async def _plain(send: Send, status: int, text: str, **extra: str) -> None:
    body = f"{text}\n".encode()
    headers = {**HEADERS, "content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **extra}
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
