"""What the memory commands share: opening the book for one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from commonplace.app import book as books
from commonplace.app.memory import Memory
from commonplace.surfaces.cli import output

T = TypeVar("T")


def call(action: Callable[[Memory], Awaitable[T]]) -> T:
    """Open the book, do one thing with its memory, close it."""

    async def inside() -> T:
        async with books.open(warn=output.warn) as book:
            return await action(book.memory)

    return anyio.run(inside)
