"""The book: one object through which everything is reached, opened once.

Opening reads settings and nothing else; the database is opened when something first needs it. The parts are imported
when they are first asked for, because a command needs only some of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace import config
from commonplace.app.home import open_home, open_memory
from commonplace.config import Settings
from commonplace.errors import CommonplaceError
from commonplace.memory.store import MemoryStore
from commonplace.state.home import Home, Warn

if TYPE_CHECKING:
    from typing import Unpack

    from anyio.abc import TaskGroup

    from commonplace.agent.session import Session
    from commonplace.agent.thread import Thread
    from commonplace.app.background import Background
    from commonplace.app.entry_changes import EntryChanges
    from commonplace.app.memory import Memory
    from commonplace.app.projects import Projects
    from commonplace.app.threads import OptionChanges, ThreadOptions
    from commonplace.memory.evidence import Link
    from commonplace.memory.recall.find import Finder
    from commonplace.search.hits import Hit
    from commonplace.sessions.imports import Importer
    from commonplace.sessions.sessions import Sessions


def _ignore(_: str) -> None:
    """Take a warning that nobody wants."""


class Book:
    """The sessions, the memory and the agents of one home.

    `state`, `memory_store`, `importer`, `changes`, `background` and `tasks` are for this program's own surfaces; they
    are not public and may change.
    """

    def __init__(
        self,
        settings: Settings,
        warn: Warn | None = None,
        environment: Mapping[str, str] | None = None,
        tasks: TaskGroup | None = None,
    ) -> None:
        self.state: Home = open_home(settings, warn or _ignore, environment)
        self.memory_store: MemoryStore = open_memory(self.state)
        self._search: Finder | None = None
        self._background: Background | None = None
        self._tasks = tasks
        self._threads: list[Thread] = []

    @property
    def settings(self) -> Settings:
        """The effective settings."""
        return self.state.settings

    @property
    def home(self) -> Path:
        """The folder that holds everything of this program."""
        return self.state.path

    @property
    def sessions(self) -> Sessions:
        """Threads: listing, showing, resuming, forking, moving."""
        from commonplace.app.snapshots import WorkingTreeSnapshots
        from commonplace.sessions.sessions import Sessions

        return Sessions(self.state, lambda: self.importer, WorkingTreeSnapshots())

    @property
    def importer(self) -> Importer:
        """The importer of other agents' sessions; it also counts the entries that their answers cite."""
        from commonplace.memory.recall.usage_counts import ImportedCitations
        from commonplace.sessions.imports import Importer

        return Importer(self.state, ImportedCitations(self.memory_store))

    @property
    def memory(self) -> Memory:
        """The memory: its entries, and the operations on it."""
        from commonplace.app.memory import Memory

        return Memory(self.memory_store, lambda: self.importer)

    @property
    def changes(self) -> EntryChanges:
        """Changes of single entries, with a preview and an undo."""
        from commonplace.app.entry_changes import EntryChanges

        return EntryChanges(self.memory_store)

    @property
    def projects(self) -> Projects:
        """Projects: which folders are one, and what a person decides about that."""
        from commonplace.app.projects import Projects

        return Projects(self.state)

    @property
    def search(self) -> Finder:
        """Ranked search over sessions and memory; its index stays open."""
        from commonplace.memory.recall.find import Finder

        if self._search is None:
            self._search = Finder(self.memory_store)
        return self._search

    @property
    def background(self) -> Background:
        """The check that starts learning beside the sessions of this book."""
        from commonplace.app.background import Background

        if self._background is None:
            self._background = Background(self.state, self.tasks)
        return self._background

    @property
    def tasks(self) -> TaskGroup:
        """The task group of work that goes on beside its caller; it ends with the book."""
        if self._tasks is None:
            raise RuntimeError("open the book with commonplace.open()")
        return self._tasks

    async def start(self, options: ThreadOptions | None = None, **changes: Unpack[OptionChanges]) -> Thread:
        """Begin a thread with an agent: `cwd`, `model` and the other fields of `ThreadOptions`.

        Raises:
            BadSetting: no model is set, or it cannot be used.
        """
        from commonplace.app import threads

        wanted = threads.options(options, changes)
        return await self._opened(await threads.start(self.memory_store, self.tasks, wanted), wanted)

    async def resume(self, name: str, options: ThreadOptions | None = None, **changes: Unpack[OptionChanges]) -> Thread:
        """Continue a thread of ours, named by its id, name or path.

        Raises:
            BadSetting: no model is set, or it cannot be used.
            UnknownThread, ForeignFile, ThreadBusy: it cannot be gone on with.
        """
        from commonplace.app import threads

        wanted = threads.options(options, changes)
        return await self._opened(await threads.resume(self.memory_store, self.tasks, name, wanted), wanted)

    async def release(self, thread: Thread) -> None:
        """Close one thread and forget it (raises WriteFailed: something could not be written)."""
        if thread in self._threads:
            self._threads.remove(thread)
        await thread.close()

    async def _opened(self, session: Session, options: ThreadOptions) -> Thread:
        from commonplace.agent.thread import Thread
        from commonplace.app import agent_threads

        thread = Thread(self.state, session, self.tasks)
        self.background.attend(session)
        self._threads.append(thread)
        await agent_threads.grow(self.memory_store, self.tasks, thread, options)
        return thread

    async def check(self, options: ThreadOptions | None = None, **changes: Unpack[OptionChanges]) -> None:
        """Raise now what would keep a thread with these options from running, before anything is written for it.

        Raises:
            BadInput, BadSetting: the folder or the model cannot be used.
        """
        from commonplace.app import threads

        await threads.check(self.state, threads.options(options, changes))

    async def why(self, what: Hit | str) -> list[Link]:
        """Return what a hit or an entry rests on: sessions, turns, bytes and the words (raises BadInput)."""
        if isinstance(what, str):
            return (await self.memory.why(what)).chain
        if isinstance(what.entry_id, str):
            return (await self.memory.why(what.entry_id)).chain
        return [await self.search.link(what)]

    async def close(self) -> None:
        """Close everything: running turns are interrupted first.

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
        await self.state.close()
        if problem is not None:
            raise problem


@asynccontextmanager
async def open(  # noqa: A001 (public as commonplace.open)
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    providers: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
    warn: Warn | None = None,
) -> AsyncGenerator[Book]:
    """Open the book of this user: `$COMMONPLACE_HOME`, else `~/.commonplace`.

    Args:
        environment: the variables to use instead of those of this process.
        flags: settings by their dotted names (`memory.use`), before all others.
        providers: fields of providers, before those of `config.toml`.
        profile: the table of `[profiles]` in `config.toml` to use.
        warn: gets a sentence about whatever a person should know and that stops nothing.

    Raises:
        BadSetting: a setting cannot be used.
    """
    import anyio

    settings = config.load(environment, flags, providers, profile)
    if warn is not None:
        config.tell(settings, warn)
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
