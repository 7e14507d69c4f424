"""Credentials that are glued to a word: `fix-ghp_…`, `a_AKIA…`, `backup.sk-proj-…`, and `AIza…_old`.

`tokens` looks a run of word bytes up by its beginning. What it leaves is looked through here for the prefixes that are
unmistakable inside of a word. Each place is judged by itself, with a few bytes before it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

from commonplace.patterns import regex
from commonplace.redact import judge
from commonplace.redact.catalogue.formats import Format, shape_of
from commonplace.redact.catalogue.unmistakable import ANYWHERE, APART
from commonplace.redact.spans import SecretSpan

Run = tuple[int, int]
_REACH: Final = 24
"""So many bytes before a place tell whether it is inside of a text in base64."""
_BLOB: Final = regex(rb"(?=.{0,23}[A-Z])(?=.{0,23}[a-z])[A-Za-z0-9_\-+/]{24}\Z")
_LONGEST_JUDGED: Final = 48
_LEAD: Final = regex(r"([^({]*\{\d+)[,}]")
_HEX_SHAPE: Final = regex(r"(?:\A|\()(?:[HG]\{|\[0-9a-f\])")
_HEX: Final = regex(rb"[0-9a-f_.\-]+\Z|[0-9A-F_.\-]+\Z")
_JWT_EXAMPLE: Final = b"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIi"


class _Prefix(NamedTuple):
    """A prefix, and the formats that it begins: behind a sign or alone, and right behind a letter or a digit."""

    start: bytes
    apart: list[Format]
    anywhere: list[Format]


@lru_cache(maxsize=1)
def _prefixes() -> dict[bytes, list[_Prefix]]:
    """Arrange the prefixes by how they are written in lower case."""
    found: dict[bytes, _Prefix] = {}
    for row in (*ANYWHERE, *APART):
        for prefix in row.prefixes:
            start = prefix.encode()
            one = found.setdefault(start, _Prefix(start, [], []))
            one.apart.append(row)
            if row in ANYWHERE:
                one.anywhere.append(row)
    low: dict[bytes, list[_Prefix]] = {}
    for start, one in found.items():
        low.setdefault(start.lower(), []).append(one)
    return low


def prefixes() -> list[bytes]:
    """Return the prefixes that are looked for inside of words, in lower case."""
    return list(_prefixes())


def exact_prefixes() -> list[bytes]:
    """Return the same prefixes as they are written."""
    return [one.start for alike in _prefixes().values() for one in alike]


def find(data: bytes, left: list[Run], prefixes: list[tuple[bytes, int]]) -> Iterator[SecretSpan]:
    """Yield the credentials within runs of word bytes that do not begin with one.

    The runs are given in order, and the places of prefixes, which are in lower case and may stand outside of the runs.
    """
    begins = [start for start, _ in left]
    done: dict[bytes, int] = {}
    for low, at in sorted(prefixes, key=lambda one: one[1]) if left else ():
        number = bisect_right(begins, at) - 1
        for prefix in _prefixes().get(low, ()):
            is_left = number >= 0 and at + len(low) <= left[number][1] and at >= done.get(prefix.start, 0)
            if is_left and data.startswith(prefix.start, at) and (span := _at(data, at, prefix)):
                yield span
                done[prefix.start] = span.end


def _at(data: bytes, place: int, prefix: _Prefix) -> SecretSpan | None:
    """Return the longest credential with a prefix at a place."""
    near = data[max(0, place - _REACH) : place]
    if _is_blob(near) or data.startswith(_JWT_EXAMPLE, place):
        return None
    best: SecretSpan | None = None
    body = place + len(prefix.start)
    for row in prefix.anywhere if near[-1:].isalnum() else prefix.apart:
        found = shape_of(row.shape).match(data, body) if _is_made(data, body, row) else None
        if found is not None and (best is None or found.end() > best.end):
            best = SecretSpan(place, found.end(), row.kind)
    if best is None:
        return None
    kept = data[place : best.end].rstrip(b".-")
    return SecretSpan(place, place + len(kept), best.kind)


def _is_blob(near: bytes) -> bool:
    """Say whether the bytes before a place belong to a text in base64 and not to a word."""
    return len(near) == _REACH and (near.isalnum() or (_BLOB.match(near) is not None and _is_drawn(near)))


@cache
def _is_hex_shape(shape: str) -> bool:
    return _HEX_SHAPE.search(shape) is not None


@cache
def _judged(shape: str) -> re.Pattern[bytes]:
    """Return the expression of what is judged: the shape if it has a group, else its shortest beginning."""
    whole = shape_of(shape)
    lead = _LEAD.match(shape)
    return whole if whole.groups or lead is None else shape_of(lead[1] + "}")


def _is_made(data: bytes, body: int, row: Format) -> bool:
    """Say whether what follows a prefix was made up by a machine, with the letters that the format has."""
    found = _judged(row.shape).match(data, body)
    if found is None or judge.is_placeholder(value := found[found.re.groups]):
        return False
    if row.sure:
        return True
    return _is_drawn(value[:_LONGEST_JUDGED]) and (_is_hex_shape(row.shape) or _HEX.match(value) is None)


@lru_cache(maxsize=4096)
def _is_drawn(value: bytes) -> bool:
    value = value.strip(b"-_.=")
    return not (value.isdigit() or judge.is_worded(value))
