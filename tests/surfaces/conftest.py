"""The command line as a fixture, and homes that were learned from."""

from __future__ import annotations

from pathlib import Path

import pytest
import taught_homes as taught
from command import Command


@pytest.fixture
def commonplace(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capfdbinary)


@pytest.fixture
def known(home: Path, commonplace: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that was learned from."""
    monkeypatch.setenv("COMMONPLACE_NOW", taught.NOW)
    taught.write(home)
    commonplace.ok("memory", "run")
    return home


@pytest.fixture(params=["sqlite", "postgres"])
def learned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that was learned from, on either database."""
    address = "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))
    monkeypatch.setenv("COMMONPLACE_DATABASE", address)
    return request.getfixturevalue("known")
