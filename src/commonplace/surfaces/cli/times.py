"""Times as people give them: a date, a time, or so long ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from commonplace.errors import BadInput
from commonplace.patterns import regex
from commonplace.protocol.ids import parse_time

HELP: Final = "a date, a time, or 7d, 12h, 3w"
_AGO: Final = regex(r"(\d{1,5})\s*(h|d|w)(?:ours?|ays?|eeks?)?")
_HOURS: Final = {"h": 1, "d": 24, "w": 168}


def since_seconds(text: str | None, now: datetime) -> int | None:
    """Return the second that a text names (raises BadInput)."""
    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip().lower())
    if ago:
        return int((now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])).timestamp())
    moment = parse_time(text.strip())
    if moment is None:
        raise BadInput(f"--since {text!r} is no time.", hint="Use a date such as 2026-11-01, or 7d, 12h, 3w.")
    return int(moment.astimezone(UTC).timestamp())
