"""What the pages share while the server runs: the book, the templates, and the changes that can be taken back."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from commonplace.app.book import Book
from commonplace.errors import CommonplaceError
from commonplace.learning.entry_changes import Undo
from commonplace.memory import audit_run
from commonplace.memory.recall import scoped_prompt
from commonplace.projects import assignment
from commonplace.projects.scope import short_names
from commonplace.search.query import Query
from commonplace.state import postings
from commonplace.surfaces.web import rendering

_MOST_UNDOS: Final = 100
"""How many changes can be taken back; older ones stay."""
_REFRESH_SECONDS: Final = 20
"""How often the folder of sessions is looked at while somebody reads pages; walking 50,000 files takes a while."""


_PATIENCE_SECONDS: Final = 1.0
"""How long the first search of all waits for sessions: the index holds none yet."""
_LATER_SECONDS: Final = 0.15
"""How long a later one waits: walking 50,000 files takes longer, and little changed since."""


class Undoable(msgspec.Struct, frozen=True):
    """A change that can be taken back, in words."""

    text: str
    undo: Undo | None = None
    """None: it was taken back, or cannot be."""


class Site:
    """What the pages share: the book, the templates, and changes that can be taken back."""

    def __init__(self, book: Book, tasks: TaskGroup) -> None:
        self.book = book
        self.tasks = tasks
        self.templates = rendering.environment()
        self.changing = anyio.Lock()
        """Changes are made one at a time, so that each compares itself with what the one before left."""
        self.undos: dict[str, Undoable] = {}
        self.is_rebuild_due = False
        """Decisions were made that the memory's files do not show yet."""
        self._refreshed_s: int | None = None
        self._indexing: anyio.Event | None = None
        self._is_indexed = False

    def cleaner(self) -> Callable[[str], str]:
        """Return what takes secrets and forgotten words out of a text, and shows characters that cannot be seen."""
        clean = scoped_prompt.cleaner(self.book.home)
        return lambda text: rendering.visible(clean(text))

    def project_names(self, scopes: list[str]) -> dict[str, str]:
        """Return a short name for each scope, without secrets: a project without an address is called by its folder."""
        clean = self.cleaner()
        return {scope: clean(name) for scope, name in short_names(scopes).items()}

    def note_undo(self, done: Undoable) -> str:
        """Keep what takes a change back; return its name."""
        while len(self.undos) >= _MOST_UNDOS:
            self.undos.pop(next(iter(self.undos)))
        name = secrets.token_urlsafe(9)
        self.undos[name] = done
        return name

    async def warm_up(self) -> None:
        """Do now what the first page would wait for: compile the templates, open the database if there is one."""
        for name in self.templates.list_templates(["html"]):
            self.templates.get_template(name)
        if self.book.state.has_index():
            await self.book.state.database()
            self.tasks.start_soon(self._prepare)

    async def _prepare(self) -> None:
        """Read beside the first pages what later ones would wait for: rules, tables of words, open search indexes."""
        search, store, home = self.book.search, self.book.memory_store, self.book.state
        try:
            indexed = await (await home.database()).read(lambda tx: postings.sizes(tx, home.key, "sessions"))
            self._is_indexed = bool(indexed)
            await anyio.to_thread.run_sync(self.cleaner(), "text")
            await audit_run.problems(store, "duplicates", await store.known_entries())
            await search.refresh(sessions=False)
            for ask in (search.memory, search.sessions):
                await ask(Query("text", 1))
        except (CommonplaceError, OSError) as error:
            home.warn(f"What the first pages need could not all be read beforehand: {error}")

    def refresh_soon(self) -> None:
        """Look beside the pages for session files that changed, once in a while: the next page shows them."""
        now = self.book.state.now_s()
        if self._refreshed_s is None or abs(now - self._refreshed_s) >= _REFRESH_SECONDS:
            self._refreshed_s = now
            self.tasks.start_soon(self._refresh)

    async def index_sessions(self) -> bool:
        """Bring the search index of sessions up to date; return False if that goes on beside the page."""
        if self._indexing is None:
            self._indexing = anyio.Event()
            self.tasks.start_soon(self._index, self._indexing)
        with anyio.move_on_after(_LATER_SECONDS if self._is_indexed else _PATIENCE_SECONDS):
            await self._indexing.wait()
        return self._is_indexed

    async def _index(self, done: anyio.Event) -> None:
        try:
            await self.book.search.refresh(memory=False)
            self._is_indexed = True
        except (CommonplaceError, OSError) as error:
            self.book.state.warn(f"The search index of sessions was not brought up to date: {error}")
        finally:
            self._indexing = None
            done.set()

    async def _refresh(self) -> None:
        home = self.book.state
        try:
            if (await (await home.index()).refresh(home.path)).read:
                await assignment.settle(home)
        except (CommonplaceError, OSError) as error:
            home.warn(f"The list of sessions was not brought up to date: {error}")
