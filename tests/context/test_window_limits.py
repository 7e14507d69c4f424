"""When a context is full: windows, limits and what counts against them (one row for each rule)."""

from __future__ import annotations

import pytest

from commonplace.context.window_limits import Prefill, Scope, Status, Window, status


@pytest.mark.parametrize(
    ("window", "whole", "effective"),
    [
        (Window(272_000), 272_000, 258_400),
        (Window(272_000, 400_000), 272_000, 258_400),
        (Window(None, 400_000), 400_000, 380_000),
        (Window(), None, None),
        (Window(101), 101, 95),
        (Window(1_000, effective_percent=50), 1_000, 500),
        (Window(272_000, 400_000).overridden(300_000), 300_000, 285_000),
        (Window(272_000, 400_000).overridden(500_000), 400_000, 380_000),
        (Window(272_000).overridden(500_000), 500_000, 475_000),
        (Window(272_000, 400_000).overridden(None), 272_000, 258_400),
    ],
)
def test_a_request_may_fill_most_of_the_window(window: Window, whole: int | None, effective: int | None) -> None:
    assert (whole, effective) == (window.whole, window.effective)


@pytest.mark.parametrize(
    ("window", "configured", "limit"),
    [
        (Window(272_000), None, 244_800),
        (Window(None, 272_000), None, 244_800),
        (Window(272_000), 20_000, 20_000),
        (Window(272_000), 260_000, 244_800),
        (Window(272_000, auto_compact_token_limit=200_000), None, 200_000),
        (Window(272_000, auto_compact_token_limit=999_999), None, 244_800),
        (Window(272_000, auto_compact_token_limit=200_000), 220_000, 220_000),
        (Window(), 20_000, 20_000),
        (Window(auto_compact_token_limit=30_000), None, 30_000),
        (Window(), None, None),
        (Window(101), None, 90),
    ],
)
def test_the_limit_is_nine_tenths_of_the_window_or_less(
    window: Window, configured: int | None, limit: int | None
) -> None:
    assert limit == window.auto_compact_limit(configured)


@pytest.mark.parametrize(
    ("window", "total", "scope", "configured", "prefill", "buffer", "expected"),
    [
        (Window(1_000), 899, "total", None, None, 0, Status(899, 900, reached=False)),
        (Window(1_000), 900, "total", None, None, 0, Status(900, 900, reached=True)),
        (Window(1_000), 900, "total", None, None, 20, Status(900, 900, reached=False)),
        (Window(1_000), 920, "total", None, None, 20, Status(920, 900, reached=True)),
        (Window(1_000), 950, "total", None, None, 500, Status(950, 900, reached=True)),
        (Window(1_000), 500, "total", 500, None, 0, Status(500, 500, reached=True)),
        (Window(), 10**9, "total", None, None, 0, Status(10**9, None, reached=False)),
        (Window(), 500, "total", 500, None, 0, Status(500, 500, reached=True)),
        (Window(1_000), 700, "body_after_prefix", 500, Prefill(201), 0, Status(499, 500, reached=False)),
        (Window(1_000), 700, "body_after_prefix", 500, Prefill(200), 0, Status(500, 500, reached=True)),
        (Window(1_000), 700, "body_after_prefix", 500, None, 0, Status(0, 500, reached=False)),
        (Window(1_000), 700, "body_after_prefix", 500, Prefill(), 0, Status(0, 500, reached=False)),
        (Window(1_000), 100, "body_after_prefix", 500, Prefill(200), 0, Status(0, 500, reached=False)),
        (Window(1_000), 940, "body_after_prefix", 2_000, Prefill(0), 0, Status(940, 2_000, reached=False)),
        (Window(1_000), 950, "body_after_prefix", 2_000, Prefill(0), 0, Status(950, 2_000, reached=True)),
        (Window(1_000), 960, "body_after_prefix", 2_000, Prefill(500), 0, Status(460, 2_000, reached=True)),
        (Window(1_000), 949, "body_after_prefix", None, Prefill(50), 0, Status(899, 900, reached=False)),
        (
            Window(1_000, auto_compact_token_limit=300),
            400,
            "body_after_prefix",
            None,
            Prefill(100),
            0,
            Status(300, 300, reached=True),
        ),
    ],
)
def test_a_context_is_full_at_its_limit_or_at_the_end_of_its_window(
    window: Window,
    total: int,
    scope: Scope,
    configured: int | None,
    prefill: Prefill | None,
    buffer: int,
    expected: Status,
) -> None:
    found = status(window, total, scope=scope, configured=configured, prefill=prefill, buffer=buffer)

    assert expected == found


def test_the_first_count_of_the_server_is_what_a_window_began_with() -> None:
    begun = Prefill()
    assert begun.tokens is None
    assert 10 == begun.estimated(10).tokens
    assert 20 == begun.estimated(10).estimated(20).tokens

    counted = begun.estimated(10).reported(30)

    assert Prefill(30, observed=True) == counted == counted.reported(40) == counted.estimated(50)
