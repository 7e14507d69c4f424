"""When a context is full: windows, limits and what counts against them (one row for each rule)."""

from __future__ import annotations

import pytest

from commonplace.context.window_limits import ModelWindow


@pytest.mark.parametrize(
    ("window", "whole", "effective"),
    [
        (ModelWindow(272_000), 272_000, 258_400),
        (ModelWindow(272_000, 400_000), 272_000, 258_400),
        (ModelWindow(None, 400_000), 400_000, 380_000),
        (ModelWindow(), None, None),
        (ModelWindow(101), 101, 95),
        (ModelWindow(1_000, effective_percent=50), 1_000, 500),
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
