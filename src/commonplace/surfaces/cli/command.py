"""What commands share: opening the book for one call, and names of projects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

from commonplace.app import book as books
from commonplace.app.memory import Memory
from commonplace.protocol.remotes import is_commit
from commonplace.surfaces.cli import output

T = TypeVar("T")


def call(action: Callable[[Memory], Awaitable[T]]) -> T:
    """Open the book, do one thing with its memory, close it."""

    async def inside() -> T:
        async with books.open(warn=output.warn) as book:
            return await action(book.memory)

    return anyio.run(inside)


def project_names(scopes: Iterable[str | None]) -> dict[str, str]:
    """Return a name for each project that has no address: it is called by its folder."""
    if not any(is_commit(scope) for scope in scopes if scope):
        return {}

    async def inside() -> dict[str, str]:
        async with books.open(warn=output.warn) as book:
            return {each.scope: each.name for each in await book.projects.list() if is_commit(each.scope)}

    return anyio.run(inside)
