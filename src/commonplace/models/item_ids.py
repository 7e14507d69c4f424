"""Ids for items of servers that give none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from commonplace.protocol import ids

NewId = Callable[[str], str]
"""Makes an id from its prefix, such as `msg`; tests pass one that counts."""


def new_id(prefix: str) -> str:
    """Return an id that no other item has, as `<prefix>_<uuid7>`."""
    return f"{prefix}_{ids.new_id(datetime.now(UTC))}"
