"""The pinned programs that anchor tests drive."""

from __future__ import annotations

from pathlib import Path

import pytest

from anchors.codex_driver import Missing, locate


@pytest.fixture
def codex() -> Path:
    """The pinned binary, or a skip that says why not."""
    found = locate()
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    return found
