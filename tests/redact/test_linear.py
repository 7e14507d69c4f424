"""Hostile texts cost in proportion to their length: calls are counted, so the result does not depend on the machine."""

from __future__ import annotations

import sys
from functools import cache
from types import FrameType

from commonplace.redact import scan as engine
from commonplace.redact.lexicon import _Memory
from redact.adversary import HOSTILE

SHORT = 700


def calls(data: bytes) -> int:
    """Return how many calls of functions, written in Python or C, a scan makes that remembers no word."""
    count = 0
    engine._LEXICON._memory = _Memory()

    def counted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        engine.scan(data)
    finally:
        sys.setprofile(None)
    return count


@cache
def short_calls(name: str) -> int:
    """Return the calls for a short text; what is made once, at the first scan, is not counted."""
    data = HOSTILE[name](SHORT).encode()
    engine.scan(data)
    return calls(data)


def test_four_times_the_text_is_at_most_five_times_the_work() -> None:
    counts = {name: (short_calls(name), calls(HOSTILE[name](4 * SHORT).encode())) for name in HOSTILE}

    assert {} == {name: (short, long) for name, (short, long) in counts.items() if long > 5 * short + 200}


def test_no_place_is_looked_at_very_often() -> None:
    assert {} == {name: short_calls(name) for name in HOSTILE if short_calls(name) > 40 * SHORT}
