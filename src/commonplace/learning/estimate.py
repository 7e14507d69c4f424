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
from commonplace.models import agents
from commonplace.models.providers import Choice

if TYPE_CHECKING:
    from commonplace.state.database import Row

_MOST_FILES: Final = 200
"""How many files are measured, the largest; the others are estimated from them."""
_MOST_BYTES: Final = 48 * 1024 * 1024
"""How many bytes are read for an estimate."""
_ANSWER: Final = 400
"""Tokens of an answer: three or four lessons."""


class Forecast(msgspec.Struct, frozen=True):
    """What a model would be asked."""

    model: str
    sessions: int
    tokens: int
    """About so many, in and out."""
    is_agent: bool = False
    """It is the person's own agent, with their own login."""


async def reading(choice: Choice, rows: Sequence[Row]) -> Forecast:
    """Estimate what it takes to let a model read some sessions."""
    tokens = await anyio.to_thread.run_sync(_tokens, choice, rows)
    return Forecast(f"{choice.name}:{choice.slug}", len(rows), tokens, choice.provider.api == "agent")


def _tokens(choice: Choice, rows: Sequence[Row]) -> int:
    from commonplace.learning.extract.model import prompts
    from commonplace.learning.structured_model import limit_of

    room = max(limit_of(choice) - prompts.overhead(), 1)
    each = prompts.overhead() + _ANSWER + agents.overhead(choice.name)
    seen = sent = measured = requests = 0
    largest = sorted(rows, key=lambda row: row["size"], reverse=True)
    for row in largest[:_MOST_FILES]:
        tokens = tokens_of_bytes(_sent(Path(row["path"])))
        seen, sent, measured = seen + row["size"], sent + tokens, measured + 1
        requests += -(-tokens // room) if tokens else 0
        if seen > _MOST_BYTES:
            break
    whole = sum(row["size"] for row in rows)
    share = sent / seen if seen else 0.0
    others = (len(rows) - measured) * requests / measured if measured else 0
    return round(whole * share + (requests + others) * each)


def _sent(path: Path) -> int:
    """Return how many bytes of a session are sent; what cannot be read, or nobody was in, is not sent."""
    from commonplace.learning.extract.model import session_text
    from commonplace.learning.reading.session_view import UserText, read

    try:
        view = read(path)
    except (CommonplaceError, OSError):
        return 0
    if not any(isinstance(event, UserText) for event in view.events()):
        return 0
    return sum(len(piece.text.encode()) for piece in session_text.pieces(view))
