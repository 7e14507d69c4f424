"""Learning is tested on both databases, through the program itself."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def database_address(request: pytest.FixtureRequest) -> str:
    """What the setting `database` says, for an empty database of either kind."""
    return "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder for sessions of agents."""
    return tmp_path / "sources"
