"""Where a command stands in its session, to show it as evidence."""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.learning.reading.session_view import ToolUse

_MAX_QUOTE: Final = 200


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A place in a session: the turn, the bytes of the ledger, and the command in its own words."""

    turn: int
    start: int
    end: int
    quote: str


def place_of(use: ToolUse, text: str) -> Place:
    """Return the place of a command in a call: its own text where the call has it so, else the whole call."""
    quote = text if text in use.command else use.command
    return Place(use.at.turn, use.at.start, use.at.end, quote[:_MAX_QUOTE])
