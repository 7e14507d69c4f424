"""Ranked search, as surfaces ask for it: sessions, memory, or both.

Sessions and memory are searched apart, each with its own statistics, and put in one order at the end. What was opened
stays open, so that a server answers the second question faster than the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec
import numpy as np

from commonplace.errors import BadInput
from commonplace.memory import listing, search_documents
from commonplace.memory.entries import GLOBAL
from commonplace.memory.workspace import layout
from commonplace.projects import assignment as scopes
from commonplace.redact import redact
from commonplace.search import hits, index_refresh
from commonplace.search.hits import Chosen, Hit, Weighed
from commonplace.search.index import Open, Progress, Shelves
from commonplace.search.rank import score
from commonplace.search.rank.recipe import LINES, RECIPE, WEIGHTS, Recipe, Weights
from commonplace.search.rank.segment import Numbers
from commonplace.search.rank.segments import Index
from commonplace.state import postings
from commonplace.state.database import Row, Transaction
from commonplace.state.postings import Shelf

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.memory.listing import Known

LIMIT: Final = 10
MOST: Final = 1_000
_LONGEST: Final = 20_000
_REMEMBERED: Final = 16_384
"""Texts of at most so many characters are remembered without their secrets."""
_PATIENCE_SECONDS: Final = 10.0
"""How long an agent waits for sessions that are not searched yet; after that it is answered from those that are."""
_PRIOR_SECONDS: Final = 3_600
"""How long what passages are worth by their age is taken to be the same."""


class Wish(msgspec.Struct, frozen=True):
    """What is asked for."""

    query: str
    limit: int = LIMIT
    scope: str | None = None
    """Only this project (an identity)."""
    since_s: int | None = None
    assistant: float | None = None
    """What an assistant's message counts for beside a person's; None is the usual."""
    near: str | None = None
    """The project that the question is asked in: what is of it comes first among equals."""
    learned: bool = False
    """Only sessions that memory may use."""

    def check(self) -> None:
        """Refuse what cannot be asked (raises BadInput)."""
        if not self.query.strip():
            raise BadInput("There is nothing to search for.", hint="Give some words.")
        if len(self.query) > _LONGEST:
            raise BadInput(f"The question has {len(self.query)} characters.", hint=f"Use at most {_LONGEST}.")
        if not 1 <= self.limit <= MOST:
            raise BadInput(f"{self.limit} hits cannot be asked for.", hint=f"Use a limit from 1 to {MOST}.")


async def find(book: Book, query: str, *, limit: int = LIMIT, scope: str | None = None) -> list[Hit]:
    """Return what answers a question best, of memory and sessions, brought up to date first (raises BadInput)."""
    wish = Wish(query, limit, scope, learned=True)
    wish.check()
    with anyio.move_on_after(_PATIENCE_SECONDS):  # what was taken in by then stays, and the next call goes on
        await book.search.refresh()
    return await book.search.find(wish)


class Search:
    """Search over one book's sessions and memory."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._root = str(book.home.resolve())
        self._shelves: Shelves | None = None
        self._priors: dict[Shelf, tuple[tuple[object, ...], Numbers]] = {}
        self._known: dict[str, Known] = {}

    async def __call__(self, query: str, *, limit: int = LIMIT, project: str | None = None) -> list[Hit]:
        """Return what answers a question best, of memory and sessions, in all projects or one (raises BadInput)."""
        scope = await listing.scope_of(self._book, project, ()) if project is not None else None
        wish = Wish(query, limit, scope)
        wish.check()
        await self.refresh()
        return await self.find(wish)

    async def refresh(self, progress: Progress | None = None, *, sessions: bool = True, memory: bool = True) -> None:
        """Bring what is searched up to date."""
        book = self._book
        if memory:
            known = await listing.known(book)
            self._known = {each.entry.id: each for each in known}
            await index_refresh.memory(book, known)
        if sessions:
            if (await (await book.index()).refresh(book.home, progress=progress)).read:
                await scopes.settle(book)
            await index_refresh.sessions(book, progress)

    async def sessions(self, wish: Wish) -> list[Hit]:
        """Return what was said in sessions that answers a question, the best first (raises BadInput)."""
        return [hit for _, hit in await self._sessions(wish)]

    async def memory(self, wish: Wish) -> list[Hit]:
        """Return the entries and lines of summaries that answer a question, the best first (raises BadInput)."""
        return [hit for _, hit in await self._memory(wish, None if wish.scope is None else {wish.scope})]

    async def find(self, wish: Wish) -> list[Hit]:
        """Return what answers best, of memory and sessions; in a project, only what is its own or for all."""
        remembered = await self._memory(wish, None if wish.scope is None else {wish.scope, GLOBAL})
        said = await self._sessions(wish)
        for _, hit in said:
            hit.kind = "session"
        return hits.merged(remembered, said)[: wish.limit]

    async def count(self, found: list[Hit]) -> None:
        """Count entries and summaries that were given out as retrieved."""
        from commonplace.memory.recall import usage_counts

        given = [self._known[hit.entry_id].entry for hit in found if isinstance(hit.entry_id, str)]
        threads = [hit.thread_id for hit in found if hit.kind == "summary" and hit.thread_id]
        await usage_counts.count(self._book, "retrieved", given, threads)

    async def _sessions(self, wish: Wish) -> list[Weighed]:
        wish.check()
        opened = await self._open("sessions", wish)
        index = opened.index
        threads = await self._threads(wish)
        mask = None if threads is None else _documents(index, lambda each: each.id in threads)
        if wish.since_s is not None:
            newer = index.seconds >= wish.since_s
            mask = newer if mask is None else mask & newer
        found = await self._rank("sessions", opened, wish, mask)
        rows = await self._rows({index.document(each.number).id for each in found})
        return await anyio.to_thread.run_sync(hits.of_sessions, index, found, rows, self.cleaner())

    async def _memory(self, wish: Wish, scopes: set[str] | None) -> list[Weighed]:
        wish.check()
        opened = await self._open("memory", wish)
        index = opened.index
        mask = None
        if scopes is not None:
            threads = await self._threads(wish) or set[str]()
            mask = _documents(index, lambda each: self._is_shown(each.kind, each.place, scopes, threads))
        if wish.since_s is not None:
            newer = index.seconds >= wish.since_s
            mask = newer if mask is None else mask & newer
        found = await self._rank("memory", opened, wish, mask)
        rows = await self._rows({index.document(each.number).place for each in found})
        root, clean = self._book.home / layout.FOLDER, self.cleaner()
        return await anyio.to_thread.run_sync(hits.of_memory, index, found, rows, self._known, root, clean)

    def _is_shown(self, kind: str, place: str, scopes: Iterable[str], threads: set[str]) -> bool:
        """Say whether something of the memory is for some scopes: an entry by its own, a summary by its session's."""
        if kind != search_documents.ENTRY:
            return place in threads
        return place in self._known and self._known[place].entry.scope in scopes

    async def _rank(self, shelf: Shelf, opened: Open, wish: Wish, mask: Numbers | None) -> list[Chosen]:
        index = opened.index
        recipe, weights = (LINES, WEIGHTS) if shelf == "memory" else weighed(wish)
        prior = await self._prior(shelf, opened, wish.near, recipe)
        more = wish.limit * 2 + 10  # some may be copies of others

        def work() -> list[Chosen]:
            ranked = score.rank(index, wish.query, limit=more, mask=mask, recipe=recipe, weights=weights, prior=prior)
            return hits.chosen(index, ranked, wish.limit)

        return await anyio.to_thread.run_sync(work)

    async def _prior(self, shelf: Shelf, opened: Open, near: str | None, recipe: Recipe) -> Numbers:
        """Return what each passage is worth before anything is asked: by age, by use, and by where the question is."""
        now = int(self._book.settings.now().timestamp()) // _PRIOR_SECONDS * _PRIOR_SECONDS
        name, index = (opened.generation, now, near), opened.index
        kept = self._priors.get(shelf)
        if kept is not None and kept[0] == name:
            return kept[1]
        prior = score.recency(index, now, recipe)
        close: set[str] = set()
        if near is not None:
            close = await (await self._book.database()).read(
                lambda tx: postings.chosen(tx, self._root, project=near, learned=False)
            )
        worth = np.array([self._worth(each.id, each.place, close, recipe) for each in index.documents], np.float32)
        prior = prior * worth[index.document_of] if len(worth) else prior
        self._priors[shelf] = name, prior
        return prior

    def _worth(self, document: str, place: str, close: set[str], recipe: Recipe) -> float:
        worth = 1.0 + recipe.same_project * (document in close or place in close)
        known = self._known.get(place)
        if known is not None:
            used = known.cited * 2 + known.retrieved + known.entry.support - 1
            worth += recipe.used * min(1.0, used / 10) + recipe.used * known.entry.pinned
        return worth

    async def _open(self, shelf: Shelf, wish: Wish) -> Open:
        if self._shelves is None:
            self._shelves = Shelves(await self._book.database(), self._root)
        return await self._shelves.ready(shelf, wish.query)

    async def _threads(self, wish: Wish) -> set[str] | None:
        """Return the threads that may be shown; None for all."""
        if wish.scope is None and not wish.learned:
            return None
        database = await self._book.database()
        return await database.read(lambda tx: postings.chosen(tx, self._root, project=wish.scope, learned=wish.learned))

    async def _rows(self, threads: set[str]) -> dict[str, Row]:
        def body(tx: Transaction) -> dict[str, Row]:
            found = {key: tx.query("threads.by_id", home=self._root, thread_id=key) for key in sorted(threads) if key}
            return {key: rows[0] for key, rows in found.items() if rows}

        return await (await self._book.database()).read(body)

    def cleaner(self) -> Callable[[str], str]:
        """Return what takes secrets and forgotten words out of a text."""
        mask = self._book.mask()
        return _clean if mask is None else lambda text: mask(_clean(text))


@lru_cache(1_024)
def _cleaned(text: str) -> str:
    return redact(text)


def _clean(text: str) -> str:
    """Take secrets out of a text; what is found is often found again, and looking for secrets takes its time."""
    return _cleaned(text) if len(text) <= _REMEMBERED else redact(text)


def _documents(index: Index, wanted: Callable[[search_documents.Document], bool]) -> Numbers:
    return index.passages_of(place for place, each in enumerate(index.documents) if wanted(each))


def weighed(wish: Wish) -> tuple[Recipe, Weights]:
    """Return the recipe with the role weight that was asked for."""
    if wish.assistant is None:
        return RECIPE, WEIGHTS
    usual = RECIPE.assistant
    share = min(1.0, max(0.0, (1 - wish.assistant) / (1 - usual)))
    recipe = msgspec.structs.replace(RECIPE, assistant=wish.assistant)
    return recipe, msgspec.structs.replace(WEIGHTS, user=WEIGHTS.user * share)
