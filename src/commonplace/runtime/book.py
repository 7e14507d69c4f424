"""The book: one object through which everything is reached, opened once.

Opening reads settings and nothing else; the database is opened when a listing first needs it. A database that cannot be
used degrades the listing (it is built in memory, from the files), never the sessions.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import config
from commonplace.config import Settings
from commonplace.errors import StateError

if TYPE_CHECKING:
    from commonplace.runtime.sessions import Sessions
    from commonplace.state.sqlite import SqliteDatabase
    from commonplace.state.threads import ThreadIndex

Warn = Callable[[str], None]


def _ignore(_: str) -> None:
    """Take a warning that nobody wants."""


class Book:
    """Settings, sessions and index of one home."""

    def __init__(self, settings: Settings, warn: Warn | None = None) -> None:
        self.settings = settings
        self._warn: Warn = warn or _ignore
        self._database: SqliteDatabase | None = None

    @property
    def home(self) -> Path:
        """The folder that everything of ours is kept in."""
        return self.settings.home

    @property
    def sessions(self) -> Sessions:
        """Threads: listing, showing, resuming, forking, moving."""
        from commonplace.runtime.sessions import Sessions

        return Sessions(self)

    def has_index(self) -> bool:
        """Say whether there is a database already."""
        from commonplace.state.sqlite import FILE

        return (self.home / FILE).exists()

    async def index(self) -> ThreadIndex:
        """Return the thread index, opening the database on first use."""
        from commonplace.state.sqlite import FILE, SqliteDatabase
        from commonplace.state.threads import ThreadIndex

        if self._database is None:
            try:
                self._database = await SqliteDatabase.open(self.home / FILE)
            except (StateError, OSError) as error:
                self._warn(f"The index is not available ({error}); reading the files instead.")
                self._database = await SqliteDatabase.open(None)
        if self._database.read_only:
            self._warn(f"{self._database.path} was written by a newer version; reading the files instead.")
            await self._database.close()
            self._database = await SqliteDatabase.open(None)
        return ThreadIndex(self._database)

    async def close(self) -> None:
        """Give everything back."""
        if self._database is not None:
            await self._database.close()
            self._database = None


@asynccontextmanager
async def open(  # noqa: A001 (public as commonplace.open)
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    warn: Warn | None = None,
) -> AsyncGenerator[Book]:
    """Open the book of this user: `$COMMONPLACE_HOME`, else `~/.commonplace`.

    Raises:
        BadSetting: a setting cannot be used.
    """
    book = Book(config.load(environment, flags), warn)
    try:
        yield book
    finally:
        await book.close()
