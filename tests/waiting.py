"""Waiting for what another process or thread does, where nothing tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Return when a condition holds; the pause leaves the core to whoever makes it hold."""
    while not (holds if isinstance(holds := condition(), bool) else await holds):  # noqa: ASYNC110
        await anyio.sleep(0.005)
