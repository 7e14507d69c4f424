"""The rate-limit guard, row by row of the spec's table (§1.6)."""

from __future__ import annotations

import pytest

from commonplace.models.base import Limit
from commonplace.models.rate_limit_guard import allows

NOW = 1_000_000.0
ROWS: dict[str, tuple[list[Limit], int, bool]] = {
    "no snapshot (no auth, a plain key, a server that says nothing) allows": ([], 25, True),
    "a primary window with enough left allows": ([Limit("primary", 10.0)], 25, True),
    "exactly the share that must be left is enough": ([Limit("primary", 75.0)], 25, True),
    "a primary window with a little less denies": ([Limit("primary", 75.1)], 25, False),
    "a secondary window with less denies": ([Limit("primary", 1.0), Limit("secondary", 80.0)], 25, False),
    "a window that is absent allows": ([Limit("secondary", 20.0)], 25, True),
    "a limit that is reached denies, whatever must be left": ([Limit("requests", 100.0, 50, 0)], 0, False),
    "a used up share without a count is judged by the share": ([Limit("primary", 100.0)], 0, True),
    "any of the counted limits can deny": ([Limit("requests", 1.0, 100, 99), Limit("tokens", 90.0, 10, 1)], 25, False),
    "everything must be left: nothing may be used": ([Limit("primary", 0.1)], 100, False),
    "everything is left": ([Limit("primary", 0.0)], 100, True),
    "a minimum above 100 is 100": ([Limit("primary", 0.0)], 400, True),
    "a minimum below 0 is 0": ([Limit("primary", 99.0)], -5, True),
    "a window that began anew since then allows": ([Limit("primary", 99.0, resets_at=NOW)], 25, True),
    "a window that has not does not": ([Limit("primary", 99.0, resets_at=NOW + 1)], 25, False),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_guard(row: str) -> None:
    limits, least, expected = ROWS[row]

    assert expected is allows(limits, least, now=NOW)
