"""Credentials that show by themselves: every long word of a text is looked up in the catalogue.

The first two bytes of a run of word bytes say which rows of the catalogue could begin there, so the cost of a word
hardly depends on the size of the catalogue, and a row's expression is compiled when its prefix is met. A run may begin
behind an escape (`\n`), a percent code or the sign of a diff line, so those starts are tried as well. A run that does
not begin with a credential is left to `glued`. What is found in a word does not depend on what stands around the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import glued, judge
from commonplace.redact.catalogue import formats
from commonplace.redact.catalogue.formats import Format, shape_of
from commonplace.redact.spans import SecretSpan

MAY_GO_ON: Final = "may go on in the next line"
"""The mark of words that `wrapped` looks at."""
SHORTEST: Final = 16
"""No format of the catalogue is shorter."""
_WORD_BYTES: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_MAP: Final = bytes(0x61 if one in _WORD_BYTES else 0x20 for one in range(256))
_RUN: Final = b"a" * SHORTEST
_WIDE_RUN: Final = regex(rb"[A-Za-z0-9_.\-+/=]{28,}")
"""Word bytes and the signs of base64."""
_WIDE_SIGNS: Final = (b"|", b"^")
"""What formats have inside that may have the signs of base64."""
_BROKEN: Final = regex(rb"[A-Za-z0-9_.\-+/]{2,4096}+(?:[\"'`]?\\|[\"'`]?[ ])")
"""A word that ends with a credential, or has an escape behind it, which may be a line break."""
_SHIFTING: Final = frozenset(b"\\%")
"""Behind these a run has something that does not belong to its word."""
_LEADING: Final = frozenset(b"-._+")
"""A word does not begin with these."""
_ESCAPED: Final = regex(rb"(?:u[0-9a-fA-F]{4}|[nrtbf])")

_WHOLE: Final = regex(
    rb"""(?x)
      (?P<terraform_token> [A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,90} )
    | (?P<discord_bot_token> [MNO][A-Za-z0-9_\-]{22,28}\.[A-Za-z0-9_\-]{5,7}\.[A-Za-z0-9_\-]{26,45}(?![A-Za-z0-9_\-]) )
    | (?P<mailchimp_key> [0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z]) )
    | (?P<mailgun_signing_key> [0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z\-]) )
    | (?P<newrelic_license> [0-9a-f]{36}NRAL(?![0-9A-Za-z]) )
    | (?P<maxmind_key> [A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![0-9A-Za-z]) )
    | (?P<rapidapi_key> [0-9a-f]{10}msh[0-9a-f]{15}p1[0-9a-f]{6}jsn[0-9a-f]{12}(?![0-9A-Za-z]) )
    | (?P<zhipu_key> [0-9a-f]{32}\.[A-Za-z0-9]{16}(?![0-9A-Za-z._\-]) )
    | (?P<wallet_import_key> (?:5[HJK][1-9A-HJ-NP-Za-km-z]{49}|[KL][1-9A-HJ-NP-Za-km-z]{51})(?![0-9A-Za-z_\-./+=]) )
    | (?P<stellar_secret_seed> S[A-Z2-7]{55}(?![A-Za-z0-9]) )
    | (?P<azure_key> [A-Za-z0-9]{40,60}JQQJ99[A-Za-z0-9]{20,40} )
    | (?P<tatum_key> t-[0-9a-f]{24}-[0-9a-f]{24} )
    """
)
"""Formats whose mark is not at their beginning."""
_BEHIND: Final = {
    0x3A: regex(
        rb"""(?x)
          (?P<telegram_bot_token> (?<![0-9:])[0-9]{6,12}:[A-Za-z0-9_\-]{33,40} )
        | (?P<asana_token> [012]/[0-9]{10,20}(?:/[0-9]{10,20})?:[0-9a-f]{28,40} )
        | (?P<ghost_admin_key> [0-9a-f]{24}:[0-9a-f]{64} )
        | (?P<fal_key> [0-9a-f]{8}-[0-9a-f\-]{27}:[0-9a-f]{32} )
        | (?P<firebase_server_key> AAAA[A-Za-z0-9_\-]{7}:[A-Za-z0-9_\-]{100,200} )
        | (?P<ably_key> [A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{6}:[A-Za-z0-9_\-]{40,50} )
        | (?P<apollo_key> (?:service|user):[\w\-]{1,40}:[A-Za-z0-9_\-]{20,24}(?![A-Za-z0-9_\-]) )
        """
    ),
    0x7E: regex(rb"(?P<azure_client_secret>[A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{28,38})"),
    0x7C: regex(
        rb"""(?x)
          (?P<facebook_app_token> [0-9]{14,17}\|[A-Za-z0-9_\-]{26,40} )
        | (?P<convex_key> (?:prod|dev|preview|project):[a-z0-9:\-]{6,60}\|[A-Za-z0-9+/=_\-]{30,200} )
        """
    ),
    0x2F: regex(rb"(?P<google_refresh_token>1//0[A-Za-z0-9_\-]{30,200})"),
    0x21: regex(rb"(?P<salesforce_token>00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,200})"),
    0x5E: regex(rb"(?P<ebay_token>v\^1\.1\#i\^1\#[A-Za-z0-9\#^+/=]{40,3000})"),
}
"""By the byte before a run: formats that have such a byte inside, behind a part of their own."""
_RIGHT_BEFORE: Final = {0x2F: b"1//"}
"""What stands before a run of such a format, where the byte alone is frequent."""
_DIGEST: Final = regex(rb"(?i)(?:sha\d{1,3}|md5)[=:\-]-?\Z")
_AWS_SECRET: Final = regex(rb"(?:[\s,:;|\"']|\\[nt]){1,6}(?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])")
"""In lists and exports the secret key stands behind its id."""
_LOOK_BACK: Final = 96
_SHORTEST_UNKNOWN: Final = 26
_UUID_LENGTH: Final = 36
_UNKNOWN: Final = "prefixed_token"
_DIGIT: Final = regex(rb"[0-9]")

_GENERIC: Final = regex(
    rb"[A-Za-z][A-Za-z0-9]{0,19}(?:[_\-][A-Za-z0-9]{1,14}){0,4}[_\-](?P<value>[A-Za-z0-9]{20,200})(?![A-Za-z0-9_\-])"
)
_GENERIC_WORDS: Final = frozenset(
    b"sk pat live prod production sandbox secret token tok key apikey api rk access auth sat personal admin private "
    b"svc "
    b"service pk cred credential deploy refresh oauth bot priv pwd password".split()
)


class _Rows(NamedTuple):
    """The rows of the catalogue whose prefixes begin with the same two bytes."""

    prefixes: tuple[bytes, ...]
    rows: list[tuple[bytes, Format]]


class _Heads(NamedTuple):
    """The rows of the catalogue whose prefixes stand before a run, by their last byte: that part, and the rest."""

    heads: tuple[bytes, ...]
    rows: list[tuple[bytes, bytes, Format]]


class _Index(NamedTuple):
    """The catalogue, arranged for looking up: by the first two bytes of a run, and by the byte before it."""

    starts: dict[bytes, _Rows]
    heads: dict[int, _Heads]
    wide: dict[bytes, _Rows]
    before: frozenset[int]


def _is_wide(row: Format) -> bool:
    """Say whether a format has the signs of base64."""
    return "B{" in row.shape or "+/" in row.shape


@lru_cache(maxsize=1)
def _index() -> _Index:
    """Arrange the catalogue. A prefix such as `oauth:` ends before a run, one such as `ghp_` begins it."""
    starts: dict[bytes, list[tuple[bytes, Format]]] = {}
    wide: dict[bytes, list[tuple[bytes, Format]]] = {}
    heads: dict[int, list[tuple[bytes, bytes, Format]]] = {}
    for row in formats():
        for prefix in row.prefixes:
            start = prefix.encode()
            cut = max((at + 1 for at, one in enumerate(start) if one not in _WORD_BYTES), default=0)
            if cut:
                heads.setdefault(start[cut - 1], []).append((start[:cut], start[cut:], row))
            else:
                starts.setdefault(start[:2], []).append((start, row))
                if _is_wide(row):
                    wide.setdefault(start[:2], []).append((start, row))
    headed = {last: _Heads(tuple({head for head, _, _ in rows}), rows) for last, rows in heads.items()}
    return _Index(_by_prefix(starts), headed, _by_prefix(wide), frozenset({*heads, *_BEHIND}))


def _by_prefix(found: dict[bytes, list[tuple[bytes, Format]]]) -> dict[bytes, _Rows]:
    return {start: _Rows(tuple({prefix for prefix, _ in rows}), rows) for start, rows in found.items()}


@lru_cache(maxsize=1)
def _of_wide_formats() -> frozenset[bytes]:
    """Return what formats begin with that may have the signs of base64 in their first bytes, in lower case."""
    index = _index()
    heads = (head for alike in index.heads.values() for head, _, row in alike.rows if _is_wide(row))
    return frozenset(
        start.lower() for start in (*heads, *(start for alike in index.wide.values() for start in alike.prefixes))
    )


def prefixes() -> frozenset[bytes]:
    """Return the prefixes of which `find` must be told, in lower case."""
    return _of_wide_formats() | frozenset(glued.prefixes())


def may_go_on(data: bytes, at: int) -> bool:
    """Say whether the credential that begins at a place in a word may go on in the next line."""
    return _BROKEN.match(data, at) is not None


def at_beginning(data: bytes) -> SecretSpan | None:
    """Return the credential with which the data begins."""
    rows = _index().starts.get(data[:2])
    return _prefixed(data, 0, rows) if rows else None


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where long runs of word bytes begin and end; a search for mapped bytes is faster than an expression."""
    mapped = data.translate(_MAP)
    at = mapped.find(_RUN)
    while at >= 0:
        end = mapped.find(b" ", at + SHORTEST)
        end = end if end >= 0 else len(data)
        yield at, end
        at = mapped.find(_RUN, end)


def find(data: bytes, prefixes: list[tuple[bytes, int]], *, cut: bool = False) -> Iterator[SecretSpan]:
    """Yield the credentials in words that have a blank before and behind each.

    The prefixes in them are given, in lower case, with their places; `cut` says that the beginning of the first word is
    missing.
    """
    index = _index()
    left: list[glued.Run] = []
    last = -1
    for begin, end in _runs(data):
        start = begin
        while end - start >= SHORTEST:
            span = None if cut and start == 1 else _look(data, start, end, index, last)
            if span is None or span.kind == _UNKNOWN:
                left.append((start, end))
            if span is None:
                break
            yield span
            last = span.end
            start = max(span.end, start + 1)  # what follows without a gap may be another one
    yield from glued.find(data, left, prefixes)
    yield from _in_wide_words(data, prefixes, index, cut=cut)


def _in_wide_words(data: bytes, prefixes: list[tuple[bytes, int]], index: _Index, *, cut: bool) -> Iterator[SecretSpan]:
    """Yield the credentials of formats that may have the signs of base64, in words that have something of such."""
    wide = [at for prefix, at in prefixes if prefix in _of_wide_formats()]
    done = 1 if cut else 0
    for at in sorted((*wide, *(at for sign in _WIDE_SIGNS for at in _places(data, sign)))):
        if at > done:
            begin = data.rfind(b" ", done, at) + 1
            done = data.find(b" ", at)
            if begin or not cut:
                yield from _in_wide_runs(data, begin, done, index)


def _places(data: bytes, sign: bytes) -> Iterator[int]:
    """Yield where a sign stands; searches for one byte are faster than an expression for two."""
    at = data.find(sign)
    while at >= 0:
        yield at
        at = data.find(sign, at + 1)


def _in_wide_runs(data: bytes, begin: int, behind: int, index: _Index) -> Iterator[SecretSpan]:
    """Yield the credentials in a word of formats that may have the signs of base64 in their first bytes."""
    last = -1
    for run in _WIDE_RUN.finditer(data, begin, behind):
        start, end = run.span()
        while end - start >= SHORTEST:
            span = _look_wide(data, start, index, last)
            if span is None:
                break
            yield span
            last = span.end
            start = max(span.end, start + 1)


def with_secret_keys(data: bytes, spans: list[SecretSpan]) -> Iterator[SecretSpan]:
    """Yield the spans of credentials in data, and behind the key ids of Amazon their secret keys."""
    for span in spans:
        yield span
        if span.kind == "aws_access_key_id" and (secret := _AWS_SECRET.match(data, span.end)):
            yield SecretSpan(*secret.span("value"), "aws_secret_access_key")


def _look_wide(data: bytes, start: int, index: _Index, last: int) -> SecretSpan | None:
    """Look up a run that may have the signs of base64 in its first bytes; only such formats are tried."""
    place = _starts(data, start)
    place = data.find(b"=", place, place + 40) + 1 or place
    if (
        start
        and data[start - 1] in index.before
        and (span := _headed(data, start, index, last) or _behind(data, start, start + 64))
    ):
        return span
    rows = index.wide.get(data[place : place + 2])
    return _prefixed(data, place, rows) if rows else None


def _starts(data: bytes, start: int) -> int:
    """Return where the word of a run begins: behind an escape, a percent code, the sign of a diff line."""
    before = data[start - 1] if start else 0
    if before == 0x5C and (found := _ESCAPED.match(data, start)):
        start = found.end()
    elif before == 0x25:
        start += 2
    while start < len(data) and data[start] in _LEADING:
        start += 1
    return start


def _look(data: bytes, start: int, end: int, index: _Index, last: int) -> SecretSpan | None:
    """Look up a run; `last` is where the credential before it ended."""
    before = data[start - 1] if start else 0
    if before in index.before and (span := _headed(data, start, index, last) or _behind(data, start, end)):
        return span
    place = _starts(data, start) if before in _SHIFTING or data[start] in _LEADING else start
    rows = index.starts.get(data[place : place + 2])
    if rows is not None and (span := _prefixed(data, place, rows)):
        return span
    length = end - place
    if length < _SHORTEST_UNKNOWN or (length == _UUID_LENGTH and data[place + 8] == data[place + 13] == 0x2D):
        return None
    if _DIGIT.search(data, place, end) is None:
        return None
    if length >= 32 and (found := _WHOLE.match(data, place)) and _is_credential(found[0]):
        return SecretSpan(found.start(), found.end(), str(found.lastgroup))
    found = _GENERIC.match(data, place, end)
    if found is not None and _is_generic(found) and not _is_inside(data, place):
        return SecretSpan(found.start(), found.end(), _UNKNOWN)
    return None


def _prefixed(data: bytes, place: int, alike: _Rows) -> SecretSpan | None:
    """Return the longest credential that begins at a place."""
    best: SecretSpan | None = None
    for prefix, row in alike.rows if data.startswith(alike.prefixes, place) else ():
        span = _match(data, place, prefix, row) if data.startswith(prefix, place) else None
        if span is not None and (best is None or span.end > best.end):
            best = span
    return best


def _headed(data: bytes, start: int, index: _Index, last: int) -> SecretSpan | None:
    """Return a credential whose prefix stands before a run."""
    alike = index.heads.get(data[start - 1])
    if alike is None or not data.endswith(alike.heads, 0, start):
        return None
    for head, rest, row in alike.rows:
        if not (data.startswith(rest, start) and data.endswith(head, 0, start)):
            continue
        place = start - len(head)
        if data[place - 1 : place].isalnum() and head[:1].isalnum() and place != last:
            continue
        if span := _match(data, start - len(head), head + rest, row):
            return span
    return None


def _behind(data: bytes, start: int, end: int) -> SecretSpan | None:
    """Return a credential whose first part stands before a run."""
    pattern = _BEHIND.get(data[start - 1])
    if pattern is None or not data.endswith(_RIGHT_BEFORE.get(data[start - 1], b""), 0, start):
        return None
    for found in pattern.finditer(data, max(0, start - _LOOK_BACK), end + 300):
        if found.start() >= start:
            break
        if data[found.start() - 2 : found.start()] == b"\\u":
            continue  # it begins with the digits of an escape
        if start < found.end() and _is_credential(found[0][start - found.start() :]):
            return SecretSpan(found.start(), found.end(), str(found.lastgroup))
    return None


def _is_inside(data: bytes, place: int) -> bool:
    """Say whether a place is inside of something longer: a base64 text, or a digest with its name before it."""
    before = data[place - 1 : place]
    if before in (b"+", b"/"):
        return place > 20 and data[place - 20 : place - 1].replace(b"+", b"a").replace(b"/", b"a").isalnum()
    return before in (b"=", b"-", b":") and _DIGEST.search(data, max(0, place - 9), place) is not None


def _match(data: bytes, place: int, prefix: bytes, row: Format) -> SecretSpan | None:
    found = shape_of(row.shape).match(data, place + len(prefix))
    if found is None or _is_inside(data, place):
        return None
    body = found[0]
    if judge.is_placeholder(body.replace(b"\\/", b"/")) or body[:1] == b".":
        return None
    if not row.sure and judge.is_worded(body.replace(b"\\/", b"/").strip(b"-_.=")):
        return None
    if row.kind == "jwt" and body.startswith(b"hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIi"):
        return None  # the documented example of JSON Web Tokens
    end = found.end()
    while data[end - 1 : end] in (b".", b"-"):
        end -= 1
    return SecretSpan(place, end, row.kind)


def _is_credential(text: bytes) -> bool:
    return not judge.is_placeholder(text) and len(set(text)) > 9


def _is_generic(found: re.Match[bytes]) -> bool:
    """A word for secrets, then a long random part: a format that the catalogue does not know by name."""
    value = found["value"]
    if value.isdigit() or _DIGIT.search(value) is None:
        return False
    words = found[0][: found.start("value") - found.start()].lower().replace(b"-", b"_").split(b"_")
    if _GENERIC_WORDS.isdisjoint(words) or b"pk" in words or b"public" in words:
        return False
    return judge.is_random(value, 20) and not judge.is_placeholder(value)
