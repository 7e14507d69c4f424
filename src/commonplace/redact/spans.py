"""What was found: where a secret stands and what takes its place.

Scanning works on bytes, because a stream has bytes and because offsets in bytes need no decoding. A `SecretSpan` is
such a finding; a `Secret` is the public form of it, with offsets into the text that was given.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

MARK: Final = "[REDACTED_SECRET]"
"""What a secret becomes. It is never taken for a secret itself, so redacting twice changes nothing."""
MARK_BYTES: Final = MARK.encode()
_FIRST_INNER: Final = 0x80
_FIRST_LEAD: Final = 0xC0
"""Bytes between these two go on with a character of UTF-8; from the second on, they begin one."""


class Secret(msgspec.Struct, frozen=True):
    """A secret in a text: `text[start:end]`, and the name of the rule that found it."""

    start: int
    end: int
    kind: str


class SecretSpan(NamedTuple):
    """A secret in bytes, and its replacement (the mark, in quotes where JSON needs a string)."""

    start: int
    end: int
    kind: str
    fill: bytes = MARK_BYTES

    def moved(self, by: int) -> SecretSpan:
        """Return the same secret in data that begins elsewhere."""
        return SecretSpan(self.start + by, self.end + by, self.kind, self.fill)


def merge(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sort spans and join those that overlap; the earliest and longest gives the name."""
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda one: (one.start, -one.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            if span.end > last.end:
                merged[-1] = SecretSpan(last.start, span.end, last.kind, MARK_BYTES)
        elif span.end > span.start:
            merged.append(span)
    return merged


def with_whole_characters(data: bytes, spans: Iterable[SecretSpan]) -> Iterator[SecretSpan]:
    """Yield spans that end with a character of UTF-8 where a rule, which counts bytes, ended inside of it."""
    size = len(data)
    for span in spans:
        start, end = span.start, span.end
        if start < size and _FIRST_INNER <= data[start] < _FIRST_LEAD:
            start = _character(data, start)[0]
        if end < size and _FIRST_INNER <= data[end] < _FIRST_LEAD:
            end = _character(data, end)[1]
        yield span if (start, end) == (span.start, span.end) else SecretSpan(start, end, span.kind, span.fill)


def _character(data: bytes, inside: int) -> tuple[int, int]:
    """Return where the character around a byte begins and ends; only that place if the bytes are no UTF-8."""
    for begin in range(inside - 1, max(inside - 4, -1), -1):
        lead = data[begin]
        if lead >= _FIRST_LEAD:
            end = begin + (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)
            try:
                data[begin:end].decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                break
            if end > inside:
                return begin, end
            break
    return inside, inside


def apply(data: bytes, spans: list[SecretSpan]) -> bytes:
    """Return the data with every span replaced."""
    parts: list[bytes] = []
    done = 0
    for span in spans:
        parts.append(data[done : span.start])
        parts.append(span.fill)
        done = span.end
    parts.append(data[done:])
    return b"".join(parts)


def behind(spans: list[SecretSpan], found: list[SecretSpan]) -> list[SecretSpan]:
    """Return spans that were found with others replaced, with offsets into the data before that.

    A span that lies within a replaced one is left out.
    """
    original: list[SecretSpan] = []
    starts: list[int] = []
    shift = 0
    shifts: list[int] = []
    for span in spans:
        starts.append(span.start + shift)
        shift += len(span.fill) - (span.end - span.start)
        shifts.append(shift)
    for one in found:
        place = bisect_right(starts, one.start) - 1
        last = bisect_left(starts, one.end) - 1
        start = one.start - (shifts[place] if place >= 0 else 0)
        if place >= 0 and start < spans[place].end:
            start = spans[place].start  # it begins in a mark: with the whole of what that stands for
        end = one.end - (shifts[last] if last >= 0 else 0)
        if last >= 0:
            end = max(end, spans[last].end)
        if end > start and not any(span.start <= start and end <= span.end for span in spans[max(place, 0) : last + 1]):
            original.append(SecretSpan(start, end, one.kind, one.fill))
    return original


def marks(spans: list[SecretSpan], some: list[SecretSpan]) -> list[tuple[int, int]]:
    """Return where the replacements of some of the spans stand in the data when all are replaced."""
    chosen = set(some)
    places: list[tuple[int, int]] = []
    shift = 0
    for span in spans:
        if span in chosen:
            places.append((span.start + shift, span.start + shift + len(span.fill)))
        shift += len(span.fill) - (span.end - span.start)
    return places
