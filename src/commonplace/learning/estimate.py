"""What reading with a model is going to cost, before it costs anything.

A session's file is much larger than what is sent of it, so some files are read as the extractor reads them, the largest
first and up to a bound, and the rest is taken to be like those. It is an estimate, and it is said to be one; limits of
the settings hold whatever it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread
import msgspec

from commonplace.context.tokens import tokens_of_bytes
from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    from commonplace.state.database import Row

_MOST_FILES: Final = 200
"""How many files are measured, the largest; the others are estimated from them."""
_MOST_BYTES: Final = 48 * 1024 * 1024
"""How many bytes are read for an estimate."""
_ANSWER: Final = 700
"""Tokens of an answer."""


class Forecast(msgspec.Struct, frozen=True):
    """What a model would be asked."""

    model: str
    sessions: int
    tokens: int
    """About so many, in and out."""


async def reading(model: str, rows: Sequence[Row]) -> Forecast:
    """Estimate what it takes to read some sessions."""
    return Forecast(model, len(rows), await anyio.to_thread.run_sync(_tokens, rows))


def _tokens(rows: Sequence[Row]) -> int:
    from commonplace.learning.extract.model import prompts

    seen = sent = 0
    largest = sorted(rows, key=lambda row: row["size"], reverse=True)
    for row in largest[:_MOST_FILES]:
        seen += row["size"]
        sent += _sent(Path(row["path"]))
        if seen > _MOST_BYTES:
            break
    whole = sum(row["size"] for row in rows)
    share = sent / seen if seen else 0.0
    return tokens_of_bytes(round(whole * share)) + len(rows) * (prompts.overhead() + _ANSWER)


def _sent(path: Path) -> int:
    """Return how many bytes of a session are sent; what cannot be read is not sent."""
    from commonplace.learning.extract.model import session_text
    from commonplace.learning.reading.session_view import read

    try:
        return sum(len(piece.text.encode()) for piece in session_text.pieces(read(path)))
    except (CommonplaceError, OSError):
        return 0
