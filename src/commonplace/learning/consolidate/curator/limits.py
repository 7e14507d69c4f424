"""How much a model may be asked for while it goes over the memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import msgspec


class CuratorLimits(msgspec.Struct, frozen=True):
    """The limits of one run, and of one request."""

    seconds: float = 1_800.0
    """How long a run may take, with all its requests."""
    request_seconds: float = 600.0
    """How long one request may take."""
    requests: int = 40
    """How many batches a run asks about; the rest is for the next run."""
    part_bytes: int = 8_000
    """Of the entries that a request is about."""
    near_bytes: int = 2_000
    """Of the entries that are shown beside them."""
    edits: int = 40
    """How many edits of one answer are looked at."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """What is done while a server is waited for."""
