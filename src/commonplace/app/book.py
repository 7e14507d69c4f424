"""The book: one object through which everything is reached, opened once.

Opening reads settings and nothing else; the database is opened when a listing first needs it. A database that cannot be
used degrades the listing (it is built in memory, from the files), never the sessions.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import config
from commonplace.config import Settings
from commonplace.errors import CommonplaceError, StateError

if TYPE_CHECKING:
    from anyio import Lock
    from anyio.abc import TaskGroup

    from commonplace.app.background import Background
    from commonplace.app.memory import Memory
    from commonplace.app.thread import Thread, Wish
    from commonplace.memory.listing import Link
    from commonplace.rollout.recorder import Options as Recording
    from commonplace.search.hits import Hit
    from commonplace.search.search import Search
    from commonplace.sessions.sessions import Sessions
    from commonplace.state.database import Database, Row
    from commonplace.state.threads import Referred, ThreadIndex

Warn = Callable[[str], None]
FOREGROUND_SECONDS = 2.0
"""A person does not wait for another process's lock: after this, a command goes on without the database."""


def _ignore(_: str) -> None:
    """Take a warning that nobody wants."""


class Book:
    """Settings, sessions and index of one home."""

    def __init__(
        self,
        settings: Settings,
        warn: Warn | None = None,
        environment: Mapping[str, str] | None = None,
        tasks: TaskGroup | None = None,
    ) -> None:
        self.settings = settings
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self._warn: Warn = warn or _ignore
        self._database: Database | None = None
        self._opening: Lock | None = None
        self.is_degraded = False
        """The database is one in memory, because the real one cannot be used."""
        self._search: Search | None = None
        self._background: Background | None = None
        self._tasks = tasks
        self._threads: list[Thread] = []

    @property
    def home(self) -> Path:
        """The folder that everything of ours is kept in."""
        return self.settings.home

    @property
    def sessions(self) -> Sessions:
        """Threads: listing, showing, resuming, forking, moving."""
        from commonplace.sessions.sessions import Sessions

        return Sessions(self)

    @property
    def memory(self) -> Memory:
        """What was learned, and the work on it."""
        from commonplace.app.memory import Memory

        return Memory(self)

    @property
    def search(self) -> Search:
        """Ranked search over sessions and memory; what it opened stays open."""
        from commonplace.search.search import Search

        if self._search is None:
            self._search = Search(self)
        return self._search

    @property
    def background(self) -> Background:
        """What has sessions learned from while others go on."""
        from commonplace.app.background import Background

        if self._background is None:
            self._background = Background(self)
        return self._background

    @property
    def tasks(self) -> TaskGroup:
        """Where work lives that goes on while others are waited for; ended with the book."""
        if self._tasks is None:
            raise RuntimeError("open the book with commonplace.open()")
        return self._tasks

    async def start(self, wish: Wish | None = None, **wishes: Any) -> Thread:
        """Begin a thread with an agent: `cwd`, `model` and the other fields of `runtime.thread.Wish`.

        Raises:
            BadSetting: no model is set, or it cannot be used.
        """
        from commonplace.app import thread

        found = await thread.start(self, thread.wish(wish, wishes))
        self._threads.append(found)
        return found

    async def resume(self, name: str, wish: Wish | None = None, **wishes: Any) -> Thread:
        """Go on with a thread of ours, by its id, name or path.

        Raises:
            BadSetting: no model is set, or it cannot be used.
            UnknownThread, ForeignFile, ThreadBusy: it cannot be gone on with.
        """
        from commonplace.app import thread

        found = await thread.resume(self, name, thread.wish(wish, wishes))
        self._threads.append(found)
        return found

    async def why(self, what: Hit | str) -> list[Link]:
        """Return what a hit or an entry rests on: sessions, turns, bytes and the words (raises BadInput)."""
        from commonplace.search import hits

        if isinstance(what, str):
            return (await self.memory.why(what)).chain
        if isinstance(what.entry_id, str):
            return (await self.memory.why(what.entry_id)).chain
        return [await hits.link(self, what)]

    def recording(self) -> Recording:
        """Return what a recorder in our home needs."""
        from commonplace.rollout.recorder import Options

        return Options(self.home, self.settings.now, self.settings["fsync"], self.settings["blob_bytes"])

    def has_index(self) -> bool:
        """Say whether there is a database already."""
        from commonplace.state.sqlite import FILE

        return self.settings["database"] != "sqlite" or (self.home / FILE).exists()

    async def database(self) -> Database:
        """Return the database, opened on first use; one in memory, with a warning, where it cannot be used."""
        if self._database is not None:
            return self._database
        import anyio

        self._opening = self._opening or anyio.Lock()
        async with self._opening:  # several tasks may ask first
            return await self._opened()

    async def _opened(self) -> Database:
        if self._database is None:
            try:
                self._database = await self.open_database()
                if self._database.read_only:
                    await self.degrade("it was written by a newer version")
            except (StateError, OSError) as error:
                await self.degrade(str(error).rstrip("."))
        assert self._database is not None
        return self._database

    async def open_database(self) -> Database:
        """Open the database that the settings name (raises StateError, OSError)."""
        address = self.settings["database"]
        if address == "sqlite":
            from commonplace.state.sqlite import FILE, SqliteDatabase

            return await SqliteDatabase.open(self.home / FILE, patience=FOREGROUND_SECONDS)
        from commonplace.state.postgres import PostgresDatabase

        return await PostgresDatabase.open(address)

    async def degrade(self, reason: str) -> None:
        """Go on without the database: what it mirrors is read from the files, what it remembers is not known."""
        from commonplace.state.sqlite import SqliteDatabase

        self._warn(f"The database is not available ({reason}); reading the files instead.")
        if self._database is not None:
            await self._database.close()
        self._search = None
        self._database = await SqliteDatabase.open(None)
        self.is_degraded = True

    def warn(self, text: str) -> None:
        """Say something on the side."""
        self._warn(text)

    async def index(self) -> ThreadIndex:
        """Return the thread index."""
        from commonplace.state.threads import ThreadIndex

        shuns = self.settings["memory.disable_on_external_context"]
        return ThreadIndex(await self.database(), self._referred, self._mask, shuns_external=shuns)

    def mask(self) -> Callable[[str], str] | None:
        """Return what takes forgotten words out of a text; None if nothing was forgotten."""
        return self._mask(self.home)

    def _mask(self, home: Path) -> Callable[[str], str] | None:
        """Return what takes forgotten words out of the texts that our listing shows; None if nothing was forgotten."""
        from commonplace.rollout import decisions

        lines = decisions.forgotten(home) if home.resolve() == self.home.resolve() else []
        if not lines:
            return None
        from commonplace.memory.edits.forgotten import FORGOTTEN, Forgotten

        forgotten = Forgotten(lines)
        return lambda text: forgotten.without(text, FORGOTTEN)

    def _referred(self, home: Path) -> Referred | None:
        """Return the sessions elsewhere that our home lists as its own, read anew each time: people decide that."""
        if home.resolve() != self.home.resolve():
            return None
        from commonplace.projects import scope
        from commonplace.projects.identity import Repositories
        from commonplace.rollout import decisions
        from commonplace.state.threads import Referred

        look = Repositories()
        deleted = decisions.tombstones(self.home)
        patterns: list[str] = self.settings["memory.exclude"]

        def why_not(row: Row) -> str | None:
            if row["thread_id"] in deleted:
                return "deleted"
            noted = row["project"] != row["cwd"] or not patterns
            project = row["project"] if noted else look(row["cwd"]).identity or row["project"]
            named = {"project": project, "cwd": row["cwd"], "path": row["path"]}
            left_out = any(scope.excluded(patterns, source=source, **named) for source in ("codex", row["source"]))
            return "excluded" if left_out else None

        return Referred(tuple(decisions.referred(self.home)), why_not)

    async def close(self) -> None:
        """Give everything back: running turns are interrupted first.

        Raises:
            WriteFailed: something that a thread recorded could not be written.
        """
        problem: CommonplaceError | None = None
        while self._threads:
            try:
                await self._threads.pop().close()
            except CommonplaceError as error:  # the others are closed all the same
                problem = problem or error
        if self._background is not None:
            await self._background.close()
        if self._database is not None:
            await self._database.close()
            self._database = None
        if problem is not None:
            raise problem


@asynccontextmanager
async def open(  # noqa: A001 (public as commonplace.open)
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    providers: Mapping[str, Mapping[str, Any]] | None = None,
    warn: Warn | None = None,
) -> AsyncGenerator[Book]:
    """Open the book of this user: `$COMMONPLACE_HOME`, else `~/.commonplace`.

    Raises:
        BadSetting: a setting cannot be used.
    """
    import anyio

    settings = config.load(environment, flags, providers)
    problem: Exception | None = None
    async with anyio.create_task_group() as tasks:
        book = Book(settings, warn, environment, tasks)
        try:
            yield book
        except Exception as error:  # raised again below: the group would wrap it
            problem = error
        finally:
            try:
                await book.close()
            except Exception as error:
                problem = problem or error
            finally:
                tasks.cancel_scope.cancel()
    if problem is not None:
        raise problem
