"""Secrets in headers: `Authorization`, bare `Bearer …`, `Cookie` and `Set-Cookie`.

Headers whose name has a key-like word (`X-Api-Key`, `PRIVATE-TOKEN`) are found by `assignments`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from commonplace.patterns import regex
from commonplace.redact import judge, values
from commonplace.redact.lexicon import Text
from commonplace.redact.notation import BREAK, VIEW
from commonplace.redact.spans import MARK_BYTES, SecretSpan

_BEARER: Final = regex(
    rb"(?i)bearer(?:[ \t]{1,8}|%20|\+|(?P<broken>"
    + BREAK
    + VIEW
    + rb"))(?P<value>[A-Za-z0-9._~+/\-|:]{16,4096}+={0,2})"
)
_AUTHORIZATION: Final = regex(
    rb"(?i)authorization(?:\\{0,15}[\"'`\])]{1,2})?[ \t]{0,8}(?:[:=,]|=>)[ \t]{0,8}(?:"
    + BREAK
    + VIEW
    + rb"(?=basic[ ]))?(?:\\{0,15}[\"'`])?"
    rb"(?:(?P<scheme>[A-Za-z][A-Za-z0-9\-]{1,20})(?:[ \t]{1,4}|%20))?(?P<value>[A-Za-z0-9._~+/\-|:=@%]{8,4096}+)"
)
_PARAMETER: Final = regex(
    rb"(?i)\b(?:signature|response|nonce|token|mac|oauth_signature|oauth_token|oauth_consumer_key|credential|pw|sig)="
    rb"(?:\\{0,15}\")?(?P<value>[A-Za-z0-9+/=_\-.%]{16,1024}+)"
)
_COOKIE: Final = regex(rb"(?i)cookie(?:\\{0,15}[\"'`]{1,2})?[ \t]{0,4}[:=,][ \t]{0,4}(?:\\{0,15}[\"'`])?")
_JAR: Final = regex(rb"(?i)cookies?\\{0,15}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\{[ \t]{0,4}")
_ENTRY: Final = regex(
    rb"\\{0,15}[\"'](?P<name>[\w.\-]{1,80}+)\\{0,15}[\"'][ ]?:[ ]?\\{0,15}[\"'](?P<value>[^\s\"'\\]{1,4096}+)\\{0,15"
    rb"}[\"'],?[ ]?"
)
_CRUMB: Final = regex(
    rb"(?P<name>[\w.!#$%^&*+\-|~]{1,80}+)=(?:\\{0,15}\")?(?P<value>[^\s;,\"'`\\<>]{1,4096}+)"
    rb"(?:\\{0,15}\")?(?:;[ \t]{0,4}|\Z|(?=\W))"
)
_SESSION: Final = regex(
    rb"(?i)sess|sid\b|auth|logged_in|token|jwt|remember|login|xsrf|csrf|account|ticket|identity|sapisid|__secure|li_"
    rb"at|cf_clearance"
    rb"|datr|c_user|xs$|d$"
)
_ATTRIBUTE: Final = frozenset(
    b"path domain expires max-age samesite priority version secure httponly partitioned".split()
)
_SCHEMES: Final = frozenset(
    b"bearer basic token apikey api-key key digest negotiate ssws geniekey splunk bot oauth aws4-hmac-sha256 sharedkey "
    b"sharedaccesskey hmac hawk jwt signature sso-key aws gitlab ntlm sharedkeylite client-id dpop dsn mac vapid "
    b"webpush zoho-oauthtoken discogs klaviyo-api-key apitoken access pat private-token".split()
)
_WITH_PARAMETERS: Final = frozenset(b"digest hawk oauth signature hmac aws4-hmac-sha256 mac vapid".split())


_STORED: Final = regex(
    rb"(?:TRUE|FALSE)(?:\t|\\{1,15}t)\d{1,12}(?:\t|\\{1,15}t)(?P<name>[^\s\\]{1,80})(?:\t|\\{1,15}t)(?P<value>[^\s\"'\\]{8,4096}+)"
)
"""The end of a line of a file of cookies, behind what says whether they need encryption."""
_ENCRYPTED: Final = (b"TRUE\t", b"FALSE\t", b"TRUE\\", b"FALSE\\")
ANCHORS: Final = (b"bearer", b"authorization", b"cookie", *(one.lower() for one in _ENCRYPTED))


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets in headers."""
    data = text.data
    for at in text.places(b"bearer"):
        found = _BEARER.match(data, at)
        if found and _is_token(found["value"], 16) and (not found["broken"] or judge.is_random(found["value"], 20)):
            yield SecretSpan(*found.span("value"), "bearer_token")
    for at in text.places(b"authorization"):
        if found := _AUTHORIZATION.match(data, at):
            yield from _authorization(data, found)
    for at in text.places(b"cookie"):
        if found := _JAR.match(data, at):
            yield from _crumbs(data, found.end(), _ENTRY.match)
        elif found := _COOKIE.match(data, at):
            yield from _crumbs(data, found.end(), _CRUMB.match)
    yield from _stored(text)


def _stored(text: Text) -> Iterator[SecretSpan]:
    """Yield the values of a file of cookies that name a session or look like one."""
    for one in _ENCRYPTED:
        for at in text.exact(one):
            found = _STORED.match(text.data, at)
            if found and _is_session(found["name"], found["value"]):
                yield SecretSpan(*found.span("value"), "cookie")


def _is_session(name: bytes, value: bytes) -> bool:
    """Say whether a cookie names a session, or looks like one."""
    if _SESSION.search(name) and len(value) >= 8 and judge.is_password(value, 8):
        return True
    return judge.is_random(values.plain(value), 16)


def _is_token(value: bytes, least: int) -> bool:
    if judge.is_placeholder(value) or judge.is_reference(value):
        return False
    return judge.is_random(value, least) or (
        len(value) >= 24 and any(one in b"0123456789" for one in value) and b"/" not in value[:4]
    )


def _authorization(data: bytes, found: re.Match[bytes]) -> Iterator[SecretSpan]:
    scheme = (found["scheme"] or b"").lower()
    value = found["value"]
    if scheme in _WITH_PARAMETERS or (b"=" in value[:-2] and scheme not in (b"basic", b"bearer", b"")):
        stop = data.find(b"\n", found.start("value"), found.start("value") + 2048)
        stop = stop if stop >= 0 else min(len(data), found.start("value") + 2048)
        for part in _PARAMETER.finditer(data, found.start("value"), stop):
            if not judge.is_placeholder(part["value"]):
                yield SecretSpan(*part.span("value"), "authorization")
        return
    if scheme and scheme not in _SCHEMES:
        return
    plain = values.plain(value)
    if judge.is_placeholder(plain) or judge.is_reference(plain):
        return
    if (
        scheme == b"basic"
        or judge.is_random(plain, 10)
        or (scheme and len(plain) >= 12 and judge.is_password(plain, 12))
    ):
        if scheme == b"basic" and plain.isalpha() and not judge.is_random(plain, 8):
            return
        yield SecretSpan(*found.span("value"), "authorization")


def _crumbs(data: bytes, at: int, read: Callable[[bytes, int], re.Match[bytes] | None]) -> Iterator[SecretSpan]:
    """Yield the values of cookies that name a session or look like one."""
    for _ in range(64):
        found = read(data, at)
        if found is None:
            return
        at = found.end()
        name, value = found["name"], found["value"]
        if (
            name.lower() in _ATTRIBUTE
            or value.startswith(MARK_BYTES[:10])
            or judge.is_placeholder(value)
            or judge.is_reference(value)
        ):
            continue
        if _is_session(name, value):
            yield SecretSpan(*found.span("value"), "cookie")
