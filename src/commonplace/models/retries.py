"""Retries: how often a failed request is sent again, the delays between tries, and how long a silent server is waited
for.

Only errors that may pass are tried again, and only while nothing of the answer has been given out: after that the
caller, who knows what was recorded, decides. A server's own wish (`Retry-After`) comes before ours; one that asks for
more than `longest_wait` is not waited for, so that a program never seems to hang. Time, sleep and chance are values
here, so tests pass them in and wait for nothing.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from commonplace.errors import ModelError
from commonplace.patterns import regex

FIRST_DELAY: Final = 0.2
"""Seconds before the first repetition; each later one doubles it."""
JITTER: Final = 0.1
"""Delays vary by this share in both directions, so that many clients do not return at the same moment."""
_IN_WORDS: Final = regex(r"try again in (\d+(?:\.\d+)?)\s*(ms|s)", re.IGNORECASE)


async def _sleep(seconds: float) -> None:
    import anyio

    await anyio.sleep(seconds)


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and after which delays a failed request is sent again."""

    retries: int = 4
    idle: float = 300.0
    """Seconds without a whole line (before the answer: without a response) after which a stream counts as broken."""
    longest_wait: float = 60.0
    linger: float = 0.25
    """Seconds that a finished answer may take to end its connection in order, so that it can be used again."""
    sleep: Callable[[float], Awaitable[None]] = _sleep
    chance: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time

    def delay(self, attempt: int) -> float:
        """Return our own delay before a repetition, counted from 1."""
        return FIRST_DELAY * 2 ** (attempt - 1) * (1 - JITTER + 2 * JITTER * self.chance())

    def wait_before(self, attempt: int, error: ModelError) -> float | None:
        """Return how long to wait before this repetition, or None if there is to be none."""
        if not error.retryable or attempt > self.retries:
            return None
        wait = self.delay(attempt) if error.retry_after is None else error.retry_after
        return None if wait > self.longest_wait else wait


def asked_wait(headers: Mapping[str, str], words: str, now: float) -> float | None:
    """Return the seconds that a server asks to wait: in a header (number, date or milliseconds) or in words."""
    if (millis := _number(headers.get("retry-after-ms"))) is not None:
        return millis / 1000
    text = headers.get("retry-after")
    if (seconds := _number(text)) is not None:
        return seconds
    if text:
        from email.utils import parsedate_to_datetime  # slow to import, and few servers name a date

        try:
            return max(parsedate_to_datetime(text).timestamp() - now, 0.0)
        except ValueError:
            return None
    if found := _IN_WORDS.search(words):
        return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)
    return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None
