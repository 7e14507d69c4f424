"""Ids for items of servers that give none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from commonplace.protocol.ids import uuid7

NewId = Callable[[str], str]
"""Makes an id from its prefix, such as `msg`; tests pass one that counts."""


def new_id(prefix: str) -> str:
    """Return an id that no other item has, as `<prefix>_<uuid7>`."""
    return f"{prefix}_{uuid7(time.time_ns() // 1_000_000, os.urandom(10))}"
