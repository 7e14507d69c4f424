"""The seam to a database: named queries, run inside short transactions.

Domain stores (threads, and later jobs, outputs, usage) are plain functions over a `Transaction`; a `Database` runs such
a function in one transaction on a worker thread, and again from the start if another process was in the way. Queries
live in `.sql` files and are called by name with bound values; no SQL is put together in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")
Row = Mapping[str, Any]

_NAMED: Final = re.compile(r"^-- name: (?P<name>[a-z_.]+)\n(?:-- .*\n)+", re.MULTILINE)


class Transaction(Protocol):
    """What a store may do inside a transaction."""

    def query(self, name: str, /, **values: Any) -> list[Row]:
        """Return the rows of a named query."""
        ...

    def execute(self, name: str, /, **values: Any) -> int:
        """Run a named statement; return how many rows it changed."""
        ...

    def execute_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        """Run a named statement once per row of values."""
        ...


class Database(Protocol):
    """A place that transactions run in."""

    async def read(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that only looks."""
        ...

    async def write(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that changes rows: all of its changes happen, or none."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


@cache
def queries(name: str) -> dict[str, str]:
    """Return the named queries of one `.sql` file."""
    text = resources.files("commonplace.state.sql").joinpath(f"{name}.sql").read_text("utf-8")
    found: dict[str, str] = {}
    headers = list(_NAMED.finditer(text))
    for place, header in enumerate(headers):
        end = headers[place + 1].start() if place + 1 < len(headers) else len(text)
        found[header["name"]] = text[header.end() : end].strip()
    return found
