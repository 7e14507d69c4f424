"""Looking at a text again, only where something in it is different.

A rule looks at most `CONTEXT` bytes back and `AHEAD` bytes ahead. So a difference changes only what begins near it, and
a text of many megabytes with one secret is not looked through twice. Key blocks are followed as far as they go; where
there may be one, the caller looks at the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from commonplace.redact.spans import SecretSpan

CONTEXT: Final = 8 * 1024
"""How far back any rule looks."""
AHEAD: Final = 64 * 1024
"""How far ahead any rule looks."""
_WORTH: Final = 0.75
"""If more of the text than this share is near to something, all of it is looked at."""

Look = Callable[[bytes, bool], list[SecretSpan]]
"""Finds secrets in a part of a text; the flag says that the part begins in the middle of it."""


def find(data: bytes, places: Iterable[tuple[int, int]], look: Look, *, cut: bool) -> list[SecretSpan]:
    """Return what is found near places; what is found elsewhere may be among it or not."""
    areas = _areas(places)
    if sum(end - begin + CONTEXT + AHEAD for begin, end in areas) >= _WORTH * len(data):
        return look(data, cut)
    found: list[SecretSpan] = []
    for begin, end in areas:
        start = max(0, begin - CONTEXT)
        for span in look(data[start : end + AHEAD], cut or start > 0):
            one = span.moved(start)
            if any(one.start < edge < one.end for edge in (begin, end)):
                return look(data, cut)  # it may reach further than this part of the text
            if begin <= one.start < end:
                found.append(one)
    return found


def _areas(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return where findings begin that see one of the places; areas are joined that would be looked at twice."""
    areas: list[tuple[int, int]] = []
    for start, end in sorted(places):
        begin, behind = max(0, start - AHEAD), end + CONTEXT
        if areas and begin <= areas[-1][1] + AHEAD + CONTEXT:
            areas[-1] = areas[-1][0], max(areas[-1][1], behind)
        else:
            areas.append((begin, behind))
    return areas
