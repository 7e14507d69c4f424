"""One home: its folder, its settings, its clock, its database and its thread index.

Every feature that needs stored state takes a `Home`. Creating one reads nothing; the database opens on first use. Where
the database cannot be used, `Home` replaces it by one in memory and says so once: listings are then built from the
files, and sessions go on as before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from commonplace.config import Settings
from commonplace.errors import BadSetting, LedgerError, StateError
from commonplace.rollout.recorder import RecorderOptions
from commonplace.state import home_identity, jobs, shared_memory
from commonplace.state.database import SQLITE_FILE, Database
from commonplace.state.jobs import Worker
from commonplace.state.threads import ReferredFiles, ThreadIndex

if TYPE_CHECKING:
    from commonplace.rollout.store.home_store import HomeStore

Warn = Callable[[str], None]
Mask = Callable[[str], str]
"""Takes forgotten words out of a text."""
FOREGROUND_SECONDS = 2.0
"""A command waits this long for another process's lock on the database, then goes on without the database."""
LEARNING_SECONDS = 30.0
"""Learning waits so long: many workers that begin at once each write what they find, and nobody looks on."""

FINISH_SECONDS = 5.0
"""Closing waits this long for work that nobody waits for."""


class Home:
    """The folder that everything of ours is kept in, with its settings, clock, database and thread index.

    `referred` names the sessions elsewhere that this home lists as its own; `mask` returns the function that removes
    forgotten words, or None if nothing was forgotten. Both are asked anew each time, because a person decides them.
    `person` says whose the sessions in a folder are, as text; homes that share a memory ask it.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        warn: Warn,
        *,
        referred: Callable[[], ReferredFiles],
        mask: Callable[[], Mask | None],
        person: Callable[[str], str] | None = None,
    ) -> None:
        self.settings = settings
        self.environment = environment
        """The variables of this process, or those that the caller gave instead."""
        self.warn = warn
        self.mask = mask
        self.is_degraded = False
        """The database is one in memory, because the real one cannot be used."""
        self._referred = referred
        self._person = person
        self._key: str | None = None
        self._database: Database | None = None
        self._opening: anyio.Lock | None = None
        self._works = 0
        """How much work on the database is under way that nobody waits for."""
        self._idle: anyio.Event | None = None
        self._store: HomeStore | None = None

    def use_variables(self, environment: Mapping[str, str]) -> None:
        """Use other variables from now on; what was opened before keeps its own."""
        self.environment = environment

    @property
    def path(self) -> Path:
        """The home's folder."""
        return self.settings.home

    @property
    def folder(self) -> str:
        """The resolved path of the home's folder."""
        return home_identity.folder(self.path)

    @property
    def key(self) -> str:
        """The name under which rows of this home are stored: its path, or an id where its memory is shared."""
        if self._key is None:
            self._key = home_identity.home_key(self.settings)
        return self._key

    @property
    def memory_key(self) -> str:
        """The name under which rows of this home's memory are stored."""
        return home_identity.memory_key(self.settings)

    @property
    def is_shared(self) -> bool:
        """Whether several homes have one memory, this one with them."""
        return self.settings.memory_root is not None

    @property
    def sources_key(self) -> str | None:
        """The home on whose sessions the memory rests; None: on those of every home that shares it."""
        return None if self.is_shared else self.key

    @property
    def host(self) -> str:
        """The name of this host."""
        return home_identity.host_name(self.environment)

    def worker(self) -> Worker:
        """Return this process, as claims name it."""
        return jobs.this_process(self.host)

    def now(self) -> datetime:
        """Return the time; tests and settings may replace the clock."""
        return self.settings.now()

    def now_s(self) -> int:
        """Return the time in whole seconds."""
        return int(self.settings.now().timestamp())

    def recording(self) -> RecorderOptions:
        """Return the options of a recorder in this home (raises BadSetting: `ledger` cannot be used)."""
        store, landed = self.ledger_store(), None
        if store is not None:
            store.begin()
            landed = self.ledger_changed
        return RecorderOptions(
            self.path, self.settings.now, self.settings.fsync, self.settings.blob_bytes, landed=landed
        )

    def ledger_store(self) -> HomeStore | None:
        """Return the store that ledgers are uploaded to; None if there is none (raises BadSetting)."""
        if self.settings.ledger is not None and self._store is None:
            from commonplace.rollout.store.home_store import HomeStore  # only who has a store loads this

            self._store = HomeStore(self.path, self.settings.ledger, self.environment)
        return self._store

    def ledger_changed(self, path: Path | None = None) -> None:
        """Have the store follow a session file that was written, moved or deleted; without a path, all of them."""
        try:
            store = self.ledger_store()
        except BadSetting as error:  # the change itself was made
            self.warn(error.sentence())
            return
        if store is not None:
            store.add(path)

    async def list_store(self) -> None:
        """Look for sessions of other hosts in the store; where it cannot be asked, what is known stands."""
        store = self.ledger_store()
        if store is not None:
            try:
                await anyio.to_thread.run_sync(store.remote.sync)
            except LedgerError as error:
                self.warn(error.sentence())

    def has_index(self) -> bool:
        """Say whether there is a database already."""
        return self.settings.database != "sqlite" or (self.path / SQLITE_FILE).exists()

    async def database(self) -> Database:
        """Return the database, opened on first use; one in memory, with a warning, where it cannot be used."""
        if self._database is not None:
            return self._database
        self._opening = self._opening or anyio.Lock()
        async with self._opening:  # several tasks may ask first
            if self._database is None:
                try:
                    self._database = await self.open_database()
                    if self._database.read_only:
                        await self.degrade("it was written by a newer version")
                except (StateError, OSError) as error:
                    await self.degrade(str(error).rstrip("."))
            assert self._database is not None
            return self._database

    async def need_database(self) -> None:
        """Open the database, again if it could not be used before: for work that must not go on without it.

        It waits longer for other processes from now on.

        Raises:
            StateError: it cannot be used.
        """
        if self.is_degraded and self._database is not None:
            await self._database.close()
            self._database, self.is_degraded = None, False
        (await self.database()).wait_longer(LEARNING_SECONDS)
        if self.is_degraded:
            raise StateError(
                "Nothing is learned while the database is away.", hint="Try again when it is there; nothing is lost."
            )

    async def open_database(self) -> Database:
        """Open the database that the settings name (raises StateError, OSError)."""
        address = self.settings.database
        if address == "sqlite":
            from commonplace.state.sqlite import SqliteDatabase  # imported here as in `degrade`

            return await SqliteDatabase.open(self.path / SQLITE_FILE, patience=FOREGROUND_SECONDS)
        try:  # the driver is an extra, and slow to import
            from commonplace.state.postgres import PostgresDatabase
        except ImportError as error:
            raise StateError(
                "PostgreSQL needs a driver that is not installed: run pip install 'commonplace[postgres]'."
            ) from error

        database = await PostgresDatabase.open(address, self.settings.memory_root)
        if self.is_shared and not database.read_only:
            try:
                host, folder, key = self.host, self.folder, self.key
                await database.write(lambda tx: shared_memory.register(tx, key, host, folder))
            except BaseException:
                await database.close()
                raise
        return database

    async def degrade(self, reason: str) -> None:
        """Continue without the database: mirrored state is read from the files; counters and jobs are not available."""
        if self.is_degraded:
            return  # two tasks met the same failure, and a third may be using what the first one opened
        self.is_degraded = True
        self.warn(f"The database is not available ({reason}); reading the files instead.")
        if self._database is not None:
            await self._database.close()
        # Commands that only read a ledger never open a database, and sqlite3 is a tenth of their start-up.
        from commonplace.state.sqlite import SqliteDatabase

        self._database = await SqliteDatabase.open(None)

    async def index(self) -> ThreadIndex:
        """Return the thread index (raises BadSetting: `ledger` cannot be used)."""
        self.ledger_store()  # some of the files that it reads may be there
        shuns = self.settings.memory.disable_on_external_context
        return ThreadIndex(
            await self.database(),
            self._referred_by,
            self._mask_of,
            shuns_external=shuns,
            keys=lambda listed: home_identity.home_key(self.settings, listed),
            memory=self.memory_key if self.is_shared else None,
            person=self._person if self.is_shared else None,
        )

    def _is_own(self, home: Path) -> bool:
        return home.resolve() == self.path.resolve()

    def _referred_by(self, home: Path) -> ReferredFiles | None:
        return self._referred() if self._is_own(home) else None

    def _mask_of(self, home: Path) -> Mask | None:
        return self.mask() if self._is_own(home) else None

    def start_work(self, tasks: TaskGroup, work: Callable[[], Awaitable[None]]) -> None:
        """Start work on the database that nobody waits for; closing waits for it."""
        self._works += 1
        tasks.start_soon(self._finish, work)

    async def _finish(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self._works -= 1
            if not self._works and self._idle is not None:
                self._idle.set()

    async def close(self) -> None:
        """Close the database, once the work that was started on it is done."""
        if self._works:
            self._idle = anyio.Event()
            with anyio.move_on_after(FINISH_SECONDS):
                await self._idle.wait()
        if self._database is not None:
            await self._database.close()
            self._database = None
        if self._store is not None and not await anyio.to_thread.run_sync(self._store.drain):
            reason = self._store.problem
            why = f" ({reason})" if reason is not None else ""
            self.warn(f"The newest lines are not in the store yet{why}: they are uploaded with the next session.")
