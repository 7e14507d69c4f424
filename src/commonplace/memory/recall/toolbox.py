"""The memory tools of one client: they limit what it may see, and count what it was given.

Each reading tool takes `project` besides its own arguments: the name or identity of another project, or `*` for all.
Without it, the scope is the client's working directory. A database that is locked, broken or missing costs ranking and
counting, never an answer from the files.

One store serves many calls. The first call opens it; it is closed when its database failed, so that a later call finds
out whether it works again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, CommonplaceError
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.recall import known_entries, scoped_prompt, tools, usage_counts
from commonplace.memory.recall.page_cleaning import clean_page
from commonplace.memory.recall.scoped_prompt import cleaner
from commonplace.memory.recall.section import Prompt
from commonplace.memory.recall.tool_definitions import FIND, NOTE, client_definitions
from commonplace.memory.recall.tools import Definition, MemoryFolder
from commonplace.memory.recall.tools.arguments import SearchArguments, decode
from commonplace.memory.recall.tools.results import MatchPage, Reading
from commonplace.memory.recall.visibility import Visibility
from commonplace.memory.store import MemoryStore
from commonplace.projects import lookup
from commonplace.projects.identity import Repositories
from commonplace.search.query import Query

if TYPE_CHECKING:
    from commonplace.memory.recall.find import Finder
    from commonplace.search.hits import Hit

ALL: Final = "*"
_MAX_NAME: Final = 512
"""The longest name of a project that a client may ask for."""
_MAX_HITS: Final = 50
"""The most hits of one `find`."""
_FRESH_SECONDS: Final = 60.0
"""For how long the projects of a client's folders are cached."""

Place = tuple[str, int, int]
"""A file of the memory, and the first and last line that were given out."""
Work = Callable[[], Coroutine[Any, Any, None]]
Later = Callable[[Work], None]
"""Schedules work that nobody waits for."""


class OpenMemory(msgspec.Struct, frozen=True):
    """The open memory: its store, its search, and its folder with cached files."""

    store: MemoryStore
    finder: Finder
    folder: MemoryFolder
    searching: anyio.Lock
    """A lock that a search holds: an open index serves one query at a time."""


class MemoryLender(Protocol):
    """Lends the open memory for one call."""

    def borrow(self) -> AbstractAsyncContextManager[OpenMemory]:
        """Return the memory, opened if it is not (raises BadSetting)."""
        ...


class FindArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `find` takes."""

    query: str
    limit: int | None = None


class RankedHits(msgspec.Struct, frozen=True):
    """The answer of `find`: the best hits first."""

    query: str
    scope: str | None
    hits: list[Hit]


class _ClientProjects(msgspec.Struct, frozen=True):
    """The project of a client, and the projects of the folders around it."""

    folder: Path
    scope: str
    projects: Mapping[str, str]
    until: float


class Toolbox:
    """The memory tools of one client."""

    def __init__(
        self,
        lender: MemoryLender,
        later: Later,
        *,
        project: str | None = None,
        notes: bool = False,
        only: bool = False,
        asks_for_notes: bool = False,
    ) -> None:
        self.folder: Path | None = None
        """Where the client works, if it said so; else where we were started."""
        self._lender = lender
        self._later = later
        self._project = project
        self._notes = notes
        self._only = only
        """No argument shows another project."""
        self._asks_for_notes = asks_for_notes
        """A person sees each note before it is written."""
        self._surroundings: _ClientProjects | None = None

    def definitions(self) -> tuple[Definition, ...]:
        """Return the tools that the client may call."""
        return client_definitions(notes=self._notes, only=self._only)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> msgspec.Struct:
        """Call a tool and return what it answers.

        Raises:
            ToolError: it cannot do what was asked.
            BadInput: no project is called that.
        """
        given = dict(arguments)
        async with self._lender.borrow() as memory:
            around = await self._looked_around(memory.store)
            if name == NOTE:
                view = Visibility(around.scope, is_allowed=self._asks_for_notes)
                return await self._call(memory, name, given, view)
            named = given.pop("project", None)
            scope = around.scope
            if named is not None and self._only:
                await _check_own(memory.store, named, scope)
            elif named is not None:
                scope = await _named(memory.store, named)
            if name == FIND:
                result = await self._find(memory, given, scope)
            else:
                result = await self._call(memory, name, given, _view(scope, around.projects))
        self._later(lambda: self._count(result, scope))
        return result

    async def summary(self, *, cites: bool = False) -> str:
        """Return the section that a prompt would have here; nothing when there is no memory.

        `cites` says that the client takes citations out of its answers before a person sees them.
        """
        async with self._lender.borrow() as memory:
            tools = [each.name for each in self.definitions()]
            made: Prompt = await scoped_prompt.prompt(
                memory.store,
                folder=self.folder or _here(),
                scope=self._project,
                count=True,
                tools=tools,
                cites=cites,
                only=self._only,
            )
        return made.text

    async def _call(
        self, memory: OpenMemory, name: str, arguments: dict[str, Any], view: Visibility | None
    ) -> msgspec.Struct:
        def work() -> msgspec.Struct:
            result = tools.call(memory.folder, name, arguments, view or Visibility())
            return _cleaned(result, arguments, memory.store.home.path)

        return await anyio.to_thread.run_sync(work)

    async def _find(self, memory: OpenMemory, arguments: dict[str, Any], scope: str | None) -> msgspec.Struct:
        asked = decode(arguments, FindArguments)
        query = asked.query.strip()
        if not query:
            raise BadInput("There is nothing to look for.", hint="Give a question or a few words.")
        limit = min(max(asked.limit if asked.limit is not None else 10, 1), _MAX_HITS)
        async with memory.searching:
            hits = await memory.finder.find_now(Query(query, limit, scope, learned=True))
        return RankedHits(query, scope, hits)

    async def _looked_around(self, store: MemoryStore) -> _ClientProjects:
        """Return the scope of the client's folder, and whose folders are whose."""
        folder = self.folder or _here()
        known = self._surroundings
        if known is not None and known.folder == folder and known.until > anyio.current_time():
            return known
        found = {each.entry.scope for each in await known_entries.known_entries(store)}
        scope = await lookup.folder_scope(store.home, folder, self._project, found)
        projects = await lookup.folder_projects(store.home)
        self._surroundings = _ClientProjects(folder, scope, projects, anyio.current_time() + _FRESH_SECONDS)
        return self._surroundings

    async def _count(self, result: msgspec.Struct, scope: str | None) -> None:
        """Count the entries that were given out; a failure to count does not change the answer."""
        places, names = lines_given_out(result), entries_of(result)
        if not places and not names:
            return
        try:
            async with self._lender.borrow() as memory:
                await usage_counts.count_retrieved(memory.store, places, scope=scope)
                if names:
                    known = [each.entry for each in await known_entries.known_entries(memory.store)]
                    await usage_counts.count(memory.store, "retrieved", [entry for entry in known if entry.id in names])
        except (CommonplaceError, OSError):
            return


def _cleaned(result: msgspec.Struct, arguments: dict[str, Any], home: Path) -> msgspec.Struct:
    """Take secrets and forgotten words out of what a tool gives out: a file may hold what a person put there since."""
    if isinstance(result, Reading):
        return msgspec.structs.replace(result, content=cleaner(home)(result.content))
    if isinstance(result, MatchPage) and result.matches:
        return clean_page(result, decode(arguments, SearchArguments), Forgotten.load(home))
    return result


def _here() -> Path:
    """Return the current folder; if it was deleted, a path that belongs to no project."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


async def _check_own(store: MemoryStore, text: Any, scope: str | None) -> None:
    """Refuse all but one project, in the same words whether there is another one of that name or not."""
    try:
        is_own = await _named(store, text) == scope
    except BadInput:
        is_own = False
    if not is_own:
        raise BadInput("This server shows one project.", hint="Leave `project` out.")


async def _named(store: MemoryStore, text: Any) -> str | None:
    """Return the scope that a client names; None for all.

    Raises:
        BadInput: no project is called that.
    """
    hint = "Give a project's name or identity, or * for all."
    if not isinstance(text, str) or not text.strip() or len(text) > _MAX_NAME or not text.isprintable():
        raise BadInput("`project` does not name one.", hint=hint)
    if text.strip() == ALL:
        return None
    found = {each.entry.scope for each in await known_entries.known_entries(store)}
    try:
        return await lookup.named_scope(store.home, text, found)
    except (OSError, RuntimeError, ValueError):  # a path that nobody can have
        raise BadInput(f"No project is called {text!r}.", hint=hint) from None


def _view(scope: str | None, projects: Mapping[str, str]) -> Visibility:
    look = Repositories()
    return Visibility(scope, lambda cwd: projects.get(cwd) or look(cwd).identity)


def lines_given_out(result: msgspec.Struct) -> list[Place]:
    """Return the lines of the memory that a result contains."""
    if isinstance(result, Reading):
        return [_place(result.path, result.start_line_number, result.content)] if result.content.strip() else []
    if isinstance(result, MatchPage):
        return [_place(each.path, each.content_start_line_number, each.content) for each in result.matches]
    if isinstance(result, RankedHits):
        return [(str(each.path), int(each.line), int(each.line)) for each in result.hits if each.path and each.line]
    return []


def entries_of(result: msgspec.Struct) -> set[str]:
    """Return the entries that were found by their rank."""
    return {str(each.entry_id) for each in result.hits if each.entry_id} if isinstance(result, RankedHits) else set()


def _place(path: str, first: int, content: str) -> Place:
    return path, first, first + content.removesuffix("\n").count("\n")


def agent_definitions() -> tuple[Definition, ...]:
    """Return the tools as an agent of ours has them, notes included."""
    return client_definitions(notes=True)
