"""Learning in the background is tested on both databases; no process that a test started outlives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from beginnings import Beside, make_beside, wait_for_workers

from object_stores import place, s3_place, s3_server

__all__ = ["place", "s3_place", "s3_server"]


@pytest.fixture(params=["sqlite", "postgres"])
def database_address(request: pytest.FixtureRequest) -> str:
    """What the setting `database` says, for an empty database of either kind."""
    return "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    """A home with two sessions that can be learned from, and whatever workers are started for it."""
    made = make_beside(tmp_path)
    yield made
    wait_for_workers(made.home)
