"""The interface to a database: named queries, run inside short transactions.

Domain stores (threads, jobs, outputs, usage) are plain functions over a `Transaction`; a `Database` runs such a
function in one transaction on a worker thread, and runs it again from the start if another process interfered. So a
function that is run in a transaction must do nothing but use the transaction.

Queries live in `.sql` files and are called by name with bound values; no SQL is put together in Python. A query may
list filters, fixed pieces of text that a caller switches on by name:

    -- name: threads.page
    -- One page of a home's threads, newest first.
    -- filter cwd: AND cwd = :cwd
    SELECT * FROM threads WHERE home = :home {filters}

Both drivers read the same files; `{skip_locked}` stands for the driver's clause that skips locked rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, Protocol, TypeVar

import msgspec

from commonplace import package_files
from commonplace.patterns import regex

T = TypeVar("T")
Row = Mapping[str, Any]

SQLITE_FILE: Final = "state.sqlite"
"""The embedded database of a home."""
QUERY_FILES: Final = (
    "threads",
    "imports",
    "jobs",
    "outputs",
    "entries",
    "usage",
    "postings",
    "projects",
    "agents",
    "shared",
)
LATEST: Final = 12
"""The newest migration that this program knows."""

_HEADER: Final = regex(r"^-- name: (?P<name>[a-z_0-9.]+)\n(?P<comments>(?:-- .*\n)+)", re.MULTILINE)
_FILTER: Final = regex(r"^-- filter (?P<name>[a-z_]+): (?P<text>.+)$", re.MULTILINE)


class Transaction(Protocol):
    """The operations of a store inside a transaction."""

    def query(self, name: str, /, *filters: str, **values: Any) -> list[Row]:
        """Return the rows of a named query, narrowed by the filters that are named."""
        ...

    def execute(self, name: str, /, **values: Any) -> int:
        """Run a named statement; return how many rows it changed."""
        ...

    def execute_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        """Run a named statement once per row of values."""
        ...

    def serialise(self, name: str, /) -> None:
        """Wait until no other transaction that serialised the same name runs; keep them out until this one
        has ended.
        """
        ...


class Database(Protocol):
    """A database that runs transactions."""

    read_only: bool
    """The schema was made by a newer program: the database may be read and not written."""

    async def read(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that only reads."""
        ...

    async def write(self, body: Callable[[Transaction], T]) -> T:
        """Run a function that changes rows: all of its changes happen, or none."""
        ...

    def wait_longer(self, seconds: float) -> None:
        """Let transactions wait for other processes for so long, where the server does not say how long."""
        ...

    async def scrub(self) -> None:
        """Make deleted data unreadable in the database's files."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class Statement(msgspec.Struct, frozen=True):
    """One named query: its text, and the filters that it may be narrowed by."""

    text: str
    filters: Mapping[str, str]

    def render(self, chosen: tuple[str, ...], skip_locked: str) -> str:
        """Return the SQL with the chosen filters switched on."""
        pieces = "\n  ".join(self.filters[name] for name in chosen)
        return self.text.replace("{filters}", pieces).replace("{skip_locked}", skip_locked)


@cache
def statements() -> dict[str, Statement]:
    """Return every named query of the program."""
    found: dict[str, Statement] = {}
    for file in QUERY_FILES:
        text = _sql(f"{file}.sql")
        headers = list(_HEADER.finditer(text))
        for place, header in enumerate(headers):
            end = headers[place + 1].start() if place + 1 < len(headers) else len(text)
            filters = {match["name"]: match["text"] for match in _FILTER.finditer(header["comments"])}
            found[header["name"]] = Statement(text[header.end() : end].strip(), filters)
    return found


def upgrade(version: int) -> list[str]:
    """Return the statements that bring a schema from a version to the latest; an empty database gets all at once."""
    return migrations(version) if version else _script("schema.sql")


def migrations(after: int) -> list[str]:
    """Return the statements of every migration after a version, oldest first."""
    numbers = range(after + 1, LATEST + 1)
    return [statement for number in numbers for statement in _script(f"migration_{number:04}.sql")]


@cache
def _script(name: str) -> list[str]:
    return split(_sql(name))


def split(script: str) -> list[str]:
    """Split a script into statements; its comments may contain semicolons."""
    code = "\n".join(line.partition("--")[0].rstrip() for line in script.splitlines())
    return [statement.strip() for statement in code.split(";") if statement.strip()]


def _sql(name: str) -> str:
    return package_files.text(f"state/sql/{name}")
