"""A session in slices that fit a window: cut between turns, then between events, and never elsewhere.

Whole turns go together as long as they fit. A turn that is larger than a slice begins one of its own and is cut between
its events; one event that is larger than a slice loses its middle, and a marker says so. Every event is in exactly one
slice, in its order, and no slice is larger than it may be (by the estimate of four bytes to a token).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

import msgspec

from commonplace.context.tokens import BYTES_PER_TOKEN
from commonplace.context.truncate import TruncationPolicy, truncate
from commonplace.learning.extract.model.session_text import EventText

LEAST: Final = 64
"""Tokens: a slice is never asked to be smaller."""
_HEADING: Final = 48
"""Bytes that the heading of a turn takes at most, with the line ends around it."""
_MARKER: Final = 48
"""Bytes that the marker in a shortened event takes at most."""


class Slice(msgspec.Struct, frozen=True):
    """Events that are read together."""

    pieces: tuple[EventText, ...]
    goes_on: bool = False
    """Its first turn began in the slice before."""

    def text(self) -> str:
        """Return the events below the headings of their turns."""
        parts: list[str] = []
        for turn, own in groupby(self.pieces, key=lambda piece: piece.turn):
            note = " (continued)" if self.goes_on and not parts else ""
            parts.append("\n".join([f"=== turn {turn}{note} ===", *(piece.text for piece in own)]))
        return "\n\n".join(parts)


def cut(pieces: Iterable[EventText], tokens: int, *, goes_on: bool = False) -> list[Slice]:
    """Return slices of at most so many tokens; `goes_on` says that the first turn began before these pieces."""
    budget = max(tokens, LEAST) * BYTES_PER_TOKEN
    groups: list[list[EventText]] = []
    size = 0
    for _, own in groupby(pieces, key=lambda piece: piece.turn):
        turn = list(own)
        whole = _HEADING + sum(map(_size, turn))
        if groups and size + whole <= budget:
            groups[-1] += turn
            size += whole
        elif whole <= budget:
            groups.append(turn)
            size = whole
        else:
            size = _between_events(turn, budget, groups)
    return _slices(groups, goes_on=goes_on)


def _between_events(turn: list[EventText], budget: int, groups: list[list[EventText]]) -> int:
    """Add a turn that is larger than a slice; return how full the last slice is."""
    size = budget
    for piece in turn:
        fitted = _shortened(piece, budget - _HEADING)
        if size + _size(fitted) > budget:
            groups.append([])
            size = _HEADING
        groups[-1].append(fitted)
        size += _size(fitted)
    return size


def _slices(groups: list[list[EventText]], *, goes_on: bool) -> list[Slice]:
    found: list[Slice] = []
    before: int | None = groups[0][0].turn if groups and goes_on else None
    for group in groups:
        found.append(Slice(tuple(group), group[0].turn == before))
        before = group[-1].turn
    return found


def _size(piece: EventText) -> int:
    return len(piece.text.encode()) + 1


def _shortened(piece: EventText, budget: int) -> EventText:
    if _size(piece) <= budget:
        return piece
    return EventText(piece.turn, piece.event, truncate(piece.text, TruncationPolicy("bytes", budget - _MARKER - 1)))
