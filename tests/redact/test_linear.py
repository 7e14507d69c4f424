"""Hostile texts cost in proportion to their length: calls are counted, so the result does not depend on the machine."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from commonplace.redact.scan import scan
from redact.adversary import HOSTILE

SHORT = 4_000


def calls(data: bytes) -> int:
    """Return how many calls of functions, written in Python or C, a scan makes."""
    count = 0

    def counted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        scan(data)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", HOSTILE)
def test_four_times_the_text_is_at_most_five_times_the_work(name: str) -> None:
    scan(HOSTILE[name](SHORT).encode())
    short = calls(HOSTILE[name](SHORT).encode())
    long = calls(HOSTILE[name](4 * SHORT).encode())

    assert long <= 5 * short + 200


@pytest.mark.parametrize("name", HOSTILE)
def test_no_place_is_looked_at_very_often(name: str) -> None:
    assert calls(HOSTILE[name](SHORT).encode()) <= 40 * SHORT
