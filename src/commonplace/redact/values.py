"""Reading a value that follows a name: in quotes at any depth of escaping, or bare up to where it must end.

JSON in JSON makes a quote into `\"`, then `\\\"`. A value that was opened by a quote behind k backslashes ends at the
next quote behind exactly k; fewer means that an outer string ended. So what is replaced never holds half an escape, and
JSON stays JSON. All reach is bounded.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from commonplace.patterns import regex

QUOTED_LIMIT: Final = 4096
"""A longer quoted value is a text, not a secret."""

_BARE: Final = regex(rb"(?>(?:[^\s\x1b\"'`<>\\]|\\/|\\u00[2-7][0-9a-fA-F](?<!\\u00[2][0279])){1,512})")
_GROUPED: Final = regex(rb"[a-z]{4}(?:[ ][a-z]{4}){3}(?![ ]?[A-Za-z])")
"""A password in groups of four letters, as Google gives them to programs."""
_UNICODE_ESCAPE: Final = regex(rb"(?<!\\)\\+u00([2-7][0-9a-fA-F])")
_CUT: Final = regex(
    rb"[;,&](?=[\w.\-]{1,40}[=:])|[;,](?=\\|$)|&&|\|\||&quot;|&amp;|&\#\d|\\u0026(?=[\w.\-]{1,40}(?:=|\\u003d))"
)
_SHORTEST: Final = 3
_SCHEME: Final = regex(
    rb"(?i)(?:bearer|basic|token|apikey|api-key|key|jwt|ssws|splunk|geniekey|bot|oauth|digest|negotiate|sso-key)"
    rb"[ \t]{1,4}(?=\S)"
)


_DEFAULT: Final = regex(rb"(?>(?:\$\{[\w.:]{1,60}?:?[-=?+](?![{(])){1,3})[\"']?|\$\{[\w.]{1,60}+:(?=[^{}:\s])[\"']?")
"""A variable and what begins its default; defaults may be variables with defaults."""


class ValueText(NamedTuple):
    """A value in the data: its place, the quote that opened it (empty for a bare one), and its plain text."""

    start: int
    end: int
    quote: bytes
    text: bytes


def closing(data: bytes, start: int, quote: bytes) -> int:
    """Return where a quoted value ends that was opened by `quote` (backslashes and one character); -1 if too far."""
    character = quote[-1:]
    depth = len(quote) - 1
    limit = min(len(data), start + QUOTED_LIMIT)
    newline = data.find(b"\n", start, limit)
    stop = newline if newline >= 0 else limit
    at = data.find(character, start, stop)
    while at >= 0:
        slashes = at
        while slashes > start and data[slashes - 1] == 0x5C:
            slashes -= 1
        behind = at - slashes
        if behind <= depth or (depth == 0 and behind % 2 == 0):
            return at - min(behind, depth)
        at = data.find(character, at + 1, stop)
    if newline >= 0 or limit == len(data):
        return stop - (data[stop - 1 : stop] == b"\r")
    return -1


def plain(raw: bytes) -> bytes:
    """Return a value without the escapes that JSON put into it."""
    if b"\\" not in raw:
        return raw
    raw = raw.replace(b"\\/", b"/")
    return _UNICODE_ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), raw)


def quoted(data: bytes, start: int, quote: bytes) -> ValueText | None:
    """Read a value in quotes."""
    is_entity = quote.startswith(b"&")
    end = data.find(quote, start, start + QUOTED_LIMIT) if is_entity else closing(data, start, quote)
    if end <= start:
        return None
    if quote[-1:] != b'"' and b'"' in data[start:end]:
        return bare(data, start)  # an apostrophe in a JSON string: its partner may stand in another string
    return _without_scheme(data, start, end, quote)


def bare(data: bytes, start: int, *, query: bool = False, listed: bool = False) -> ValueText | None:
    """Read a value without quotes: up to a blank, a quote, an escape, or what separates it from the next name."""
    if data[start : start + 1] in (b"{", b"[", b"<"):
        return None  # an object, a list, a placeholder
    if grouped := _GROUPED.match(data, start):
        return ValueText(start, grouped.end(), b"", grouped[0])
    found = _BARE.match(data, start)
    if found is None:
        return None
    end = found.end()
    raw = data[start:end]
    cut = _CUT.search(raw)
    if cut is not None and cut.start() < _SHORTEST and not raw[: cut.start()].isdigit():
        cut = _CUT.search(raw, cut.end())  # too short for a value: the sign belongs to it
    if cut is not None:
        raw = raw[: cut.start()]
    if query:
        raw = re.split(rb"[&#;,)\]}|]|%26", raw, maxsplit=1)[0]
    if listed:
        raw = raw.partition(b";")[0]
    raw = _trimmed(raw)
    return _without_scheme(data, start, start + len(raw), b"") if raw else None


def default(data: bytes, value: ValueText) -> ValueText:
    """Return the default of a value that is a variable with one (`${NAME:-…}`), and any other value as it is."""
    found = _DEFAULT.match(data, value.start)
    if found is None:
        return value
    end = data.find(b"}", found.end(), found.end() + QUOTED_LIMIT)
    raw = data[found.end() : value.end if end < 0 else end].rstrip(b"\\\"' ")
    return ValueText(found.end(), found.end() + len(raw), value.quote or b"{", plain(raw)) if raw else value


def _trimmed(raw: bytes) -> bytes:
    """Take off what belongs to the sentence or the code around a bare value."""
    while raw:
        last = raw[-1:]
        if (
            last in b",;:"
            or (last == b"." and not raw.endswith(b".."))
            or (last in b")]}" and raw.count(last) > raw.count({b")": b"(", b"]": b"[", b"}": b"{"}[last]))
        ):
            raw = raw[:-1]
        elif raw.endswith((b"**", b"\xc2\xbb")):
            raw = raw[:-2]
        elif raw.endswith((b"\xe2\x80\x99", b"\xe2\x80\x9c", b"\xe2\x80\x9d", b"\xe3\x80\x8d", b"\xe3\x80\x8f")):
            raw = raw[:-3]  # a mark that ends a quotation in print
        else:
            return raw
    return raw


def _without_scheme(data: bytes, start: int, end: int, quote: bytes) -> ValueText | None:
    """Leave the scheme of an authorization (`Bearer `) outside of the value."""
    if found := _SCHEME.match(data, start, end):
        start = found.end()
    return ValueText(start, end, quote, plain(data[start:end])) if end > start else None
