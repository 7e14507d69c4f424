"""Fixtures for tests of importers."""

from __future__ import annotations

import pytest
from command import Command


@pytest.fixture
def commonplace(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capfdbinary)
