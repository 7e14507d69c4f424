"""The memory tools of one client: what it may see, and that what it was given is counted.

Each tool that reads takes `project` beside its own arguments: the name or identity of another project, or `*` for all.
Without it the scope is what the client works in. A database that is locked, broken or missing costs ranking and
counting, never an answer from the files.

One book serves many calls. It is opened by the first, and given back when its database failed, so that a later call
finds out whether that works again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import anyio.to_thread
import msgspec

from commonplace.errors import BadInput, CommonplaceError, StateError

if TYPE_CHECKING:
    from commonplace.app.book import Book, Warn
    from commonplace.memory.recall.section import Prompt
    from commonplace.memory.recall.tools import Definition, Folder
    from commonplace.memory.recall.visibility import View
    from commonplace.search.hits import Hit

NOTE: Final = "add_ad_hoc_note"
FIND: Final = "find"
ALL: Final = "*"
_MAX_NAME: Final = 512
_MAX_HITS: Final = 50
_FRESH_SECONDS: Final = 60.0
"""How long what is known about the projects around a client is believed."""

Place = tuple[str, int, int]
"""A file of the memory, and the first and last line of it that were given out."""
Work = Callable[[], Coroutine[Any, Any, None]]
Later = Callable[[Work], None]
"""Takes work that nobody waits for."""


class Lending:
    """One open book for many calls."""

    def __init__(self, warn: Warn, environment: Mapping[str, str] | None = None) -> None:
        self._warn = warn
        self._environment = environment
        self._opening = anyio.Lock()
        self._book: Book | None = None
        self._folder: Folder | None = None
        self.searching = anyio.Lock()
        """Held while one searches: what it keeps open is for one at a time."""
        self._out = 0
        self._failed = False

    def folder(self, book: Book) -> Folder:
        """Return the memory's folder, with what is kept of it between calls."""
        from commonplace.memory.recall import tools
        from commonplace.memory.workspace import layout

        root = book.home / layout.FOLDER
        if self._folder is None or self._folder.root != root:
            self._folder = tools.Folder(root)
        return self._folder

    @asynccontextmanager
    async def book(self) -> AsyncGenerator[Book]:
        """Lend the book.

        Raises:
            BadSetting: a setting cannot be used.
        """
        async with self._opening:
            if self._book is None:
                self._book = await anyio.to_thread.run_sync(self._opened)
                self._failed = False
            lent = self._book
            if lent.has_index():
                await lent.database()
            self._out += 1
        try:
            yield lent
        except StateError:
            self._failed = True
            raise
        finally:
            self._out -= 1
            if self._failed and not self._out:
                with anyio.CancelScope(shield=True):
                    await self.close()

    def _opened(self) -> Book:
        from commonplace import config
        from commonplace.app.book import Book

        return Book(config.load(self._environment), self._heard, self._environment)

    def _heard(self, text: str) -> None:
        """Pass a warning on; a book that warns may do better when it is opened anew."""
        self._failed = True
        self._warn(text)

    async def close(self) -> None:
        """Take the book back."""
        book, self._book = self._book, None
        if book is not None:
            await book.close()


class FindArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `find` takes."""

    query: str
    limit: int | None = None


class Ranked(msgspec.Struct, frozen=True):
    """What `find` answers: the best matches first."""

    query: str
    scope: str | None
    hits: list[Hit]


class _Around(msgspec.Struct, frozen=True):
    """What is known about the projects around a client: whom it is for, and whose folders are whose."""

    folder: Path
    scope: str
    projects: Mapping[str, str]
    until: float


class Toolbox:
    """The memory tools of one client."""

    def __init__(self, lending: Lending, later: Later, *, project: str | None = None, notes: bool = False) -> None:
        self.folder: Path | None = None
        """Where the client works, if it said so; else where we were started."""
        self._lending = lending
        self._later = later
        self._project = project
        self._notes = notes
        self._around: _Around | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the scope was chosen when the server was started."""
        return self._project is not None

    async def definitions(self) -> tuple[Definition, ...]:
        """Return the tools that the client may call."""
        return await anyio.to_thread.run_sync(_definitions, self._notes)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> msgspec.Struct:
        """Call a tool and return what it answers.

        Raises:
            ToolError: it cannot do what was asked.
            BadInput: no project is called that.
        """
        given = dict(arguments)
        async with self._lending.book() as book:
            if name == NOTE:
                return await self._call(book, name, given, None)
            named = given.pop("project", None)
            around = await self._looked_around(book)
            scope = around.scope if named is None else await _named(book, named)
            if name == FIND:
                result = await self._find(book, given, scope)
            else:
                result = await self._call(book, name, given, _view(scope, around.projects))
        self._later(lambda: self._count(result, scope))
        return result

    async def summary(self) -> str:
        """Return the section that a prompt would have here; nothing when there is no memory."""
        from commonplace.memory.recall import scoped_prompt

        async with self._lending.book() as book:
            tools = [each.name for each in await self.definitions()]
            made: Prompt = await scoped_prompt.prompt(
                book, folder=self.folder or _here(), scope=self._project, count=True, tools=tools
            )
        return made.text

    async def _call(self, book: Book, name: str, arguments: dict[str, Any], view: View | None) -> msgspec.Struct:
        from commonplace.memory.recall import tools
        from commonplace.memory.recall.visibility import View

        folder = self._lending.folder(book)

        def work() -> msgspec.Struct:
            return _cleaned(tools.call(folder, name, arguments, view or View()), book.home)

        return await anyio.to_thread.run_sync(work)

    async def _find(self, book: Book, arguments: dict[str, Any], scope: str | None) -> msgspec.Struct:
        from commonplace.memory.recall.tools.arguments import decode
        from commonplace.search import search

        asked = decode(arguments, FindArguments)
        query = asked.query.strip()
        if not query:
            raise BadInput("There is nothing to look for.", hint="Give a question or a few words.")
        limit = min(max(asked.limit if asked.limit is not None else 10, 1), _MAX_HITS)
        async with self._lending.searching:
            hits = await search.find(book, query, limit=limit, scope=scope)
        return Ranked(query, scope, hits)

    async def _looked_around(self, book: Book) -> _Around:
        """Return the scope of the client's folder, and whose folders are whose."""
        folder = self.folder or _here()
        known = self._around
        if known is not None and known.folder == folder and known.until > anyio.current_time():
            return known
        from commonplace.memory.recall import scoped_prompt

        found = {each.entry.scope for each in await scoped_prompt.known(book)}
        scope = await scoped_prompt.scope_of(book, folder, self._project, found)
        projects = await _projects(book)
        self._around = _Around(folder, scope, projects, anyio.current_time() + _FRESH_SECONDS)
        return self._around

    async def _count(self, result: msgspec.Struct, scope: str | None) -> None:
        """Note which memories were given out; a memory that cannot be counted is given out all the same."""
        places, names = given_out(result), entries_of(result)
        if not places and not names:
            return
        from commonplace.memory.recall import scoped_prompt, usage_counts

        try:
            async with self._lending.book() as book:
                await usage_counts.retrieved(book, places, scope=scope)
                if names:
                    known = [each.entry for each in await scoped_prompt.known(book)]
                    await usage_counts.count(book, "retrieved", [entry for entry in known if entry.id in names])
        except (CommonplaceError, OSError):
            return


def _cleaned(result: msgspec.Struct, home: Path) -> msgspec.Struct:
    """Take secrets and forgotten words out of what a tool gives out: a file may hold what a person put there since."""
    from commonplace.memory.recall.scoped_prompt import cleaner
    from commonplace.memory.recall.tools.results import Found, Reading

    if isinstance(result, Reading):
        return msgspec.structs.replace(result, content=cleaner(home)(result.content))
    if isinstance(result, Found) and result.matches:
        clean = cleaner(home)
        found = [msgspec.structs.replace(each, content=clean(each.content)) for each in result.matches]
        return msgspec.structs.replace(result, matches=found)
    return result


def _here() -> Path:
    """Return the folder that we were started in; one that is gone is nobody's."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


async def _named(book: Book, text: Any) -> str | None:
    """Return the scope that a client names; None for all.

    Raises:
        BadInput: no project is called that.
    """
    hint = "Give a project's name or identity, or * for all."
    if not isinstance(text, str) or not text.strip() or len(text) > _MAX_NAME or not text.isprintable():
        raise BadInput("`project` does not name one.", hint=hint)
    if text.strip() == ALL:
        return None
    from commonplace.memory import listing
    from commonplace.memory.recall import scoped_prompt

    found = {each.entry.scope for each in await scoped_prompt.known(book)}
    try:
        return await listing.scope_of(book, text, found)
    except (OSError, RuntimeError, ValueError):  # a path that nobody can have
        raise BadInput(f"No project is called {text!r}.", hint=hint) from None


async def _projects(book: Book) -> dict[str, str]:
    """Return the project of every folder that a session was in."""
    if not book.has_index():
        return {}
    home = str(book.home.resolve())
    try:
        rows = await (await book.database()).read(lambda tx: tx.query("threads.current", home=home))
    except StateError:
        return {}
    return {row["cwd"]: row["project"] for row in rows if row["project"]}


def _view(scope: str | None, projects: Mapping[str, str]) -> View:
    from commonplace.memory.recall.visibility import View
    from commonplace.projects.identity import Repositories

    look = Repositories()
    return View(scope, lambda cwd: projects.get(cwd) or look(cwd).identity)


def given_out(result: msgspec.Struct) -> list[Place]:
    """Return which lines of the memory a result holds."""
    from commonplace.memory.recall.tools.results import Found, Reading

    if isinstance(result, Reading):
        return [_place(result.path, result.start_line_number, result.content)] if result.content.strip() else []
    if isinstance(result, Found):
        return [_place(each.path, each.content_start_line_number, each.content) for each in result.matches]
    if isinstance(result, Ranked):
        return [(str(each.path), int(each.line), int(each.line)) for each in result.hits if each.path and each.line]
    return []


def entries_of(result: msgspec.Struct) -> set[str]:
    """Return the entries that were found by their rank."""
    return {str(each.entry_id) for each in result.hits if each.entry_id} if isinstance(result, Ranked) else set()


def _place(path: str, first: int, content: str) -> Place:
    return path, first, first + content.removesuffix("\n").count("\n")


def offered() -> tuple[Definition, ...]:
    """Return the tools as an agent of ours has them, notes included."""
    return _definitions(True)


@cache
def _definitions(notes: bool) -> tuple[Definition, ...]:
    from commonplace.memory.recall import tools

    found = [_with_project(each) for each in tools.DEFINITIONS if each.name != NOTE]
    found.append(_with_project(_find_definition()))
    if notes:
        found += [each for each in tools.DEFINITIONS if each.name == NOTE]
    return tuple(found)


def _with_project(definition: Definition) -> Definition:
    """Return a tool that can be asked about another project."""
    schema = definition.input_schema
    described = {"type": "string", "description": "Another project, by its name or identity; * for all of them."}
    properties = {**cast("dict[str, Any]", schema.get("properties", {})), "project": described}
    return msgspec.structs.replace(definition, input_schema={**schema, "properties": properties})


def _find_definition() -> Definition:
    from commonplace.memory.recall.tools import Definition

    return msgspec.json.decode(Path(__file__).with_name("find.json").read_bytes(), type=Definition)
