"""Ranked search: the index of one collection (`sessions` or `memory`) answers a question with its best passages.

An open index stays open, so that a server answers the second question faster than the first. `Search` also reads the
words of passages in sessions; what the memory holds is read by `memory.recall.find`, which asks both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import anyio.to_thread
import numpy as np

from commonplace.projects import assignment
from commonplace.redact import redact
from commonplace.search import hits, session_index
from commonplace.search.hits import Clean, RankedPassage, ScoredHit
from commonplace.search.index import OpenIndex, Progress, SearchIndex
from commonplace.search.query import Query, ranking
from commonplace.search.rank import score
from commonplace.search.rank.recipe import LINES, WEIGHTS, Recipe
from commonplace.search.rank.segment import Document, Numbers
from commonplace.search.rank.segments import SegmentIndex
from commonplace.state import postings
from commonplace.state.database import Database, Row, Transaction
from commonplace.state.home import Home
from commonplace.state.postings import Shelf

Worth = Callable[[Document, Recipe], float]
"""Returns what a document is worth beside others of its collection before anything is asked, apart from its project."""
_CACHED_CHARS: Final = 16_384
"""Texts of at most so many characters are kept without their secrets: what is found once is often found again."""
_PRIOR_SECONDS: Final = 3_600
"""How long what passages are worth by their age is taken to be the same."""


def _no_worth(document: Document, recipe: Recipe) -> float:
    del document, recipe
    return 0.0


class Search:
    """Ranked search over one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._index: SearchIndex | None = None
        self._indexed: Database | None = None
        self._priors: dict[Shelf, tuple[tuple[object, ...], Numbers]] = {}

    async def refresh_sessions(self, progress: Progress | None = None) -> None:
        """Bring the index of sessions up to date with their files."""
        if (await (await self._home.index()).refresh(self._home.path, progress=progress)).read:
            await assignment.settle(self._home)
        await session_index.refresh(self._home, progress)

    async def sessions(self, query: Query) -> list[ScoredHit]:
        """Return what was said in sessions that answers a question, the best first (raises BadInput)."""
        query.check()
        opened = await self.open("sessions", query)
        threads = await self.threads(query)
        mask = None if threads is None else documents_where(opened.index, lambda each: each.id in threads)
        passages = await self.rank("sessions", opened, query, mask)
        rows = await self.rows({opened.index.document(each.number).id for each in passages})
        return await anyio.to_thread.run_sync(hits.of_sessions, opened.index, passages, rows, self.cleaner())

    async def open(self, collection: Shelf, query: Query) -> OpenIndex:
        """Return the index of a collection as it is now, with the postings of the question's terms."""
        database = await self._home.database()
        if self._index is None or self._indexed is not database:  # a database that failed was replaced
            self._index, self._indexed = SearchIndex(database, self._home.key), database
        return await self._index.open_for_query(collection, query.query)

    async def rank(
        self,
        collection: Shelf,
        opened: OpenIndex,
        query: Query,
        mask: Numbers | None,
        worth: Worth = _no_worth,
    ) -> list[RankedPassage]:
        """Return the best passages of a collection, of those that `mask` allows and that are new enough."""
        index = opened.index
        if query.since_s is not None:
            newer = index.seconds >= query.since_s
            mask = newer if mask is None else mask & newer
        recipe, weights = (LINES, WEIGHTS) if collection == "memory" else ranking(query)
        prior = await self._prior(collection, opened, query.near, recipe, worth)
        more = query.limit * 2 + 10  # some may be copies of others

        def work() -> list[RankedPassage]:
            ranked = score.rank(index, query.query, limit=more, mask=mask, recipe=recipe, weights=weights, prior=prior)
            return hits.choose_passages(index, ranked, query.limit)

        return await anyio.to_thread.run_sync(work)

    async def _prior(
        self, collection: Shelf, opened: OpenIndex, near: str | None, recipe: Recipe, worth: Worth
    ) -> Numbers:
        """Return what each passage is worth before anything is asked: by age, by use, and by the question's project."""
        now = self._home.now_s() // _PRIOR_SECONDS * _PRIOR_SECONDS
        name, index = (opened.generation, now, near), opened.index
        kept = self._priors.get(collection)
        if kept is not None and kept[0] == name:
            return kept[1]
        prior = score.recency(index, now, recipe)
        close: set[str] = set()
        if near is not None:
            key = self._home.key
            close = await (await self._home.database()).read(
                lambda tx: postings.visible_threads(tx, key, project=near, learned=False)
            )
        values = np.array(
            [
                1.0 + recipe.same_project * (each.id in close or each.place in close) + worth(each, recipe)
                for each in index.documents
            ],
            np.float32,
        )
        prior = prior * values[index.document_of] if len(values) else prior
        self._priors[collection] = name, prior
        return prior

    async def threads(self, query: Query, *, shared: bool = False) -> set[str] | None:
        """Return the threads that may be shown; None for all. `shared` means those of all homes that share a memory."""
        if query.scope is None and not query.learned:
            return None
        key = self._home.key
        database = await self._home.database()
        return await database.read(
            lambda tx: postings.visible_threads(
                tx, key, project=query.scope, learned=query.learned, shared=shared and self._home.is_shared
            )
        )

    async def rows(self, threads: set[str]) -> dict[str, Row]:
        """Return the rows of threads, by their ids."""
        key = self._home.key

        def body(tx: Transaction) -> dict[str, Row]:
            stored = {
                thread: tx.query("threads.by_id", home=key, thread_id=thread) for thread in sorted(threads) if thread
            }
            return {thread: rows[0] for thread, rows in stored.items() if rows}

        return await (await self._home.database()).read(body)

    def cleaner(self) -> Clean:
        """Return the function that takes secrets and forgotten words out of a text."""
        mask = self._home.mask()
        return _clean if mask is None else lambda text: mask(_clean(text))


def documents_where(index: SegmentIndex, wanted: Callable[[Document], bool]) -> Numbers:
    """Return a mask of the passages whose documents are wanted."""
    return index.passages_of(place for place, each in enumerate(index.documents) if wanted(each))


@lru_cache(1_024)
def _cleaned(text: str) -> str:
    return redact(text)


def _clean(text: str) -> str:
    """Take secrets out of a text."""
    return _cleaned(text) if len(text) <= _CACHED_CHARS else redact(text)
