"""When a context is full: windows, limits and what counts against them (one row for each rule)."""

from __future__ import annotations

import pytest

from commonplace.context.window_limits import ModelWindow, Prefill, Scope, WindowStatus, status


@pytest.mark.parametrize(
    ("window", "whole", "effective"),
    [
        (ModelWindow(272_000), 272_000, 258_400),
        (ModelWindow(272_000, 400_000), 272_000, 258_400),
        (ModelWindow(None, 400_000), 400_000, 380_000),
        (ModelWindow(), None, None),
        (ModelWindow(101), 101, 95),
        (ModelWindow(1_000, effective_percent=50), 1_000, 500),
        (ModelWindow(272_000, 400_000).overridden(300_000), 300_000, 285_000),
        (ModelWindow(272_000, 400_000).overridden(500_000), 400_000, 380_000),
        (ModelWindow(272_000).overridden(500_000), 500_000, 475_000),
        (ModelWindow(272_000, 400_000).overridden(None), 272_000, 258_400),
    ],
)
def test_a_request_may_fill_most_of_the_window(window: ModelWindow, whole: int | None, effective: int | None) -> None:
    assert (whole, effective) == (window.whole, window.effective)


@pytest.mark.parametrize(
    ("window", "configured", "limit"),
    [
        (ModelWindow(272_000), None, 244_800),
        (ModelWindow(None, 272_000), None, 244_800),
        (ModelWindow(272_000), 20_000, 20_000),
        (ModelWindow(272_000), 260_000, 244_800),
        (ModelWindow(272_000, auto_compact_token_limit=200_000), None, 200_000),
        (ModelWindow(272_000, auto_compact_token_limit=999_999), None, 244_800),
        (ModelWindow(272_000, auto_compact_token_limit=200_000), 220_000, 220_000),
        (ModelWindow(), 20_000, 20_000),
        (ModelWindow(auto_compact_token_limit=30_000), None, 30_000),
        (ModelWindow(), None, None),
        (ModelWindow(101), None, 90),
    ],
)
def test_the_limit_is_nine_tenths_of_the_window_or_less(
    window: ModelWindow, configured: int | None, limit: int | None
) -> None:
    assert limit == window.auto_compact_limit(configured)


@pytest.mark.parametrize(
    ("window", "total", "scope", "configured", "prefill", "buffer", "expected"),
    [
        (ModelWindow(1_000), 899, "total", None, None, 0, WindowStatus(899, 900, reached=False)),
        (ModelWindow(1_000), 900, "total", None, None, 0, WindowStatus(900, 900, reached=True)),
        (ModelWindow(1_000), 900, "total", None, None, 20, WindowStatus(900, 900, reached=False)),
        (ModelWindow(1_000), 920, "total", None, None, 20, WindowStatus(920, 900, reached=True)),
        (ModelWindow(1_000), 950, "total", None, None, 500, WindowStatus(950, 900, reached=True)),
        (ModelWindow(1_000), 500, "total", 500, None, 0, WindowStatus(500, 500, reached=True)),
        (ModelWindow(), 10**9, "total", None, None, 0, WindowStatus(10**9, None, reached=False)),
        (ModelWindow(), 500, "total", 500, None, 0, WindowStatus(500, 500, reached=True)),
        (ModelWindow(1_000), 700, "body_after_prefix", 500, Prefill(201), 0, WindowStatus(499, 500, reached=False)),
        (ModelWindow(1_000), 700, "body_after_prefix", 500, Prefill(200), 0, WindowStatus(500, 500, reached=True)),
        (ModelWindow(1_000), 700, "body_after_prefix", 500, None, 0, WindowStatus(0, 500, reached=False)),
        (ModelWindow(1_000), 700, "body_after_prefix", 500, Prefill(), 0, WindowStatus(0, 500, reached=False)),
        (ModelWindow(1_000), 100, "body_after_prefix", 500, Prefill(200), 0, WindowStatus(0, 500, reached=False)),
        (ModelWindow(1_000), 940, "body_after_prefix", 2_000, Prefill(0), 0, WindowStatus(940, 2_000, reached=False)),
        (ModelWindow(1_000), 950, "body_after_prefix", 2_000, Prefill(0), 0, WindowStatus(950, 2_000, reached=True)),
        (ModelWindow(1_000), 960, "body_after_prefix", 2_000, Prefill(500), 0, WindowStatus(460, 2_000, reached=True)),
        (ModelWindow(1_000), 949, "body_after_prefix", None, Prefill(50), 0, WindowStatus(899, 900, reached=False)),
        (
            ModelWindow(1_000, auto_compact_token_limit=300),
            400,
            "body_after_prefix",
            None,
            Prefill(100),
            0,
            WindowStatus(300, 300, reached=True),
        ),
    ],
)
def test_a_context_is_full_at_its_limit_or_at_the_end_of_its_window(
    window: ModelWindow,
    total: int,
    scope: Scope,
    configured: int | None,
    prefill: Prefill | None,
    buffer: int,
    expected: WindowStatus,
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
