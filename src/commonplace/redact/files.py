"""Secrets that only the form of their file shows: `.pgpass`, `.htpasswd`, `/etc/shadow`, Kubernetes secrets."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Final

from commonplace.patterns import regex
from commonplace.redact import judge
from commonplace.redact.lexicon import Text
from commonplace.redact.spans import SecretSpan

_PGPASS: Final = regex(
    rb"[\w.*\-]{1,80}:(?:54\d\d|6543|\*):[\w.*\-]{1,64}:[\w.*\-@]{1,64}:(?P<value>[^\s:\"'\\]{4,200}+)(?=[\s\"'\\]|\Z)"
)
_CRYPT: Final = regex(
    rb"[\w.@\-]{1,64}:(?P<value>\$(?:apr1|2[abxy]|[156]|y|7|argon2id?|scrypt)\$[A-Za-z0-9./$=,+\-]{16,160}+|\{S?SHA\}[A-Za-z0-9+/=]{20,80}+)"
)
_DATA: Final = regex(rb"ata(?:\\{0,15}\")?:(?>(?:[ \t\r\n]|\\{1,15}n){0,40})\{?")
_ENTRY: Final = regex(
    rb"""(?x)
    (?>(?: [ \t\r\n,+\-] | \\{1,15}[nt] | \d{1,6}(?:[:|\t]|\xe2\x86\x92) ){0,80})
    (?: \\{0,15}["'] )? (?P<name> [\w.\-]{1,128}+ ) (?: \\{0,15}["'] )? : [ \t]{0,4}
    (?: [|>][+\-]? (?:\r?\n|\\{1,15}n) [ \t]{1,40}+ )? (?: \\{0,15}["'] )?
    (?P<value> [A-Za-z0-9+/=_.~\-!@\#%^&*]{4,65536}+ ) (?: \\{0,15}["'] )?
    """
)
_KINDS: Final = (
    b"kind: Secret",
    b'"kind":"Secret"',
    b'"kind": "Secret"',
    b'\\"kind\\": \\"Secret\\"',
    b'\\"kind\\":\\"Secret\\"',
    b'kind: "Secret"',
)
_WEB_KEY: Final = regex(
    rb"\"(?:d|p|q|dp|dq|qi|k)\\{0,15}\":[ ]?\\{0,15}\"(?P<value>[A-Za-z0-9_\-]{20,2000}+)(?=\\{0,15}\")"
)
_LINES: Final = (
    (b":54", _PGPASS, "pgpass", 81),
    (b":*:", _PGPASS, "pgpass", 81),
    (b":$", _CRYPT, "password_file", 64),
    (b":{S", _CRYPT, "password_file", 64),
)
"""An anchor, the form of the line, the kind of finding, and how far before the anchor the line begins at most."""
ANCHORS: Final = (*(row[0].lower() for row in _LINES), *(kind.lower() for kind in _KINDS), b"kty")
_AROUND: Final = 3000
_NOT_DATA: Final = frozenset(
    b"kind apiVersion metadata type immutable name namespace labels annotations creationTimestamp uid".split()
)


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the secrets that the form of a file shows."""
    data = text.data
    for anchor, pattern, kind, back in _LINES:
        for at in text.exact(anchor):
            left = data[max(0, at - back) : at]
            start = at - (
                len(left) - len(left.rstrip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-@*"))
            )
            if (
                start < at
                and data[start - 1 : start] != b":"
                and (found := pattern.match(data, start))
                and not judge.is_placeholder(found["value"])
            ):
                yield SecretSpan(*found.span("value"), kind)
    yield from _kubernetes(text)
    yield from _web_keys(text)


def _web_keys(text: Text) -> Iterator[SecretSpan]:
    """Yield the private parts of JSON Web Keys."""
    data = text.data
    done = after = 0
    for at in text.exact(b"kty"):
        if at < after:
            continue
        for found in _WEB_KEY.finditer(data, max(done, at - 1500), at + 2500):
            if not judge.is_placeholder(found["value"]) and not judge.is_worded(found["value"]):
                yield SecretSpan(*found.span("value"), "json_web_key")
        done = max(done, at)
        after = at + 600


def _kubernetes(text: Text) -> Iterator[SecretSpan]:
    """Yield the values under `data:` and `stringData:` that stand near the kind of a Kubernetes secret."""
    data = text.data
    kinds = [at for anchor in _KINDS for at in text.exact(anchor)]
    if not kinds:
        return
    kinds.sort()
    done = 0
    for found in _DATA.finditer(data, max(0, kinds[0] - _AROUND)):
        if found.start() >= done and _is_secret(data, found.start(), kinds):
            done = found.end()
            for span, end in _entries(data, found.end()):
                yield span
                done = end


def _is_secret(data: bytes, at: int, kinds: list[int]) -> bool:
    """Say whether the kind of a secret stands near a place, in the same document."""
    after = bisect.bisect(kinds, at)
    for kind in kinds[max(0, after - 1) : after + 1]:
        first, last = sorted((at, kind))
        if last - first <= _AROUND and data.find(b"\n---", first, last) < 0:
            return True
    return False


def _entries(data: bytes, place: int) -> Iterator[tuple[SecretSpan, int]]:
    for _ in range(100):
        entry = _ENTRY.match(data, place)
        if entry is None or entry["name"] in _NOT_DATA:
            return
        place = entry.end()
        value = entry["value"]
        if not judge.is_placeholder(value) and not judge.is_reference(value):
            yield SecretSpan(*entry.span("value"), "kubernetes_secret"), place
