"""Ranked search over memory and sessions.

Memory and sessions are ranked separately, each with its own statistics, and merged at the end. Entries are found by
their own words and by the words that taught them; summaries of single sessions line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from msgspec import UNSET

from commonplace.memory import audience, search_documents
from commonplace.memory.entries import GLOBAL
from commonplace.memory.evidence import Link
from commonplace.memory.recall import reader, usage_counts
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.projects import lookup
from commonplace.protocol.ids import wire_second
from commonplace.search import exact, hits, index, passages, session_index
from commonplace.search.hits import Clean, Hit, RankedPassage, ScoredHit
from commonplace.search.index import NewDocument, Progress
from commonplace.search.query import LIMIT, Query
from commonplace.search.rank import analysis
from commonplace.search.rank.recipe import Recipe
from commonplace.search.rank.segment import Document
from commonplace.search.rank.segments import SegmentIndex
from commonplace.search.search import Search, documents_where
from commonplace.search.within import NamedThread, search_thread
from commonplace.state import postings
from commonplace.state.database import Row
from commonplace.state.postings import DocumentStamp

_PATIENCE_SECONDS: Final = 10.0
"""How long an agent waits for sessions that are not indexed yet; after that it is answered from those that are."""


class Finder:
    """Search over one home's memory and sessions."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._home = store.home
        self._search = Search(store.home)
        self._known: dict[str, KnownEntry] = {}
        self._titles: dict[str, str] = {}

    async def __call__(self, query: str, *, limit: int = LIMIT, project: str | None = None) -> list[Hit]:
        """Return what answers a question best, of memory and sessions, in all projects or one (raises BadInput)."""
        scope = await lookup.named_scope(self._home, project, ()) if project is not None else None
        asked = Query(query, limit, scope)
        asked.check()
        await self.refresh()
        return await self.find(asked)

    async def refresh(self, progress: Progress | None = None, *, sessions: bool = True, memory: bool = True) -> None:
        """Bring the search index up to date."""
        if memory:
            known = [*await self._store.known_entries(), *await self._store.candidates()]
            self._known = {each.entry.id: each for each in known}
            self._titles = audience.titles(each.entry for each in known)
            await _refresh(self._store, known)
        if sessions:
            await self._search.refresh_sessions(progress)

    async def find_now(self, query: Query) -> list[Hit]:
        """Answer an agent: bring the index up to date for a few seconds at most, then find (raises BadInput)."""
        query.check()
        with anyio.move_on_after(_PATIENCE_SECONDS):  # what was taken in by then stays, and the next call goes on
            await self.refresh()
        return await self.find(query)

    async def find(self, query: Query) -> list[Hit]:
        """Return what answers best, of memory and sessions; in a project, only what is its own or for all.

        Candidates are left out: agents ask here, and are not told of what nobody decided about.
        """
        scopes = None if query.scope is None else {query.scope, GLOBAL}
        remembered = await self._memory(query, scopes, candidates=False)
        said = await self._search.sessions(query)
        for _, hit in said:
            hit.kind = "session"
        return hits.merge_hits(remembered, said)[: query.limit]

    async def sessions(self, query: Query) -> list[Hit]:
        """Return what was said in sessions that answers a question, the best first (raises BadInput)."""
        return [hit for _, hit in await self._search.sessions(query)]

    async def memory(self, query: Query) -> list[Hit]:
        """Return the entries, candidates and lines of summaries that answer a question, the best first.

        Raises:
            BadInput: the question cannot be answered.
        """
        scopes = None if query.scope is None else {query.scope}
        return [hit for _, hit in await self._memory(query, scopes, candidates=True)]

    async def in_thread(
        self, thread: NamedThread, query: Query, *, exact: bool = False, ignore_case: bool = False
    ) -> list[Hit]:
        """Search one thread, ours or any agent's file (raises BadInput)."""
        query.check()
        return await search_thread(self._home, thread, query, self.cleaner(), exact=exact, ignore_case=ignore_case)

    async def exact_sessions(
        self, query: Query, *, ignore_case: bool = False, progress: Progress | None = None
    ) -> list[Hit]:
        """Return the newest texts of sessions that hold the query word for word (raises BadInput)."""
        query.check()
        await (await self._home.index()).refresh(self._home.path, progress=progress)
        return await exact.search(self._home, query, self.cleaner(), ignore_case=ignore_case)

    async def exact_memory(self, query: Query, *, ignore_case: bool = False) -> list[Hit]:
        """Return the lines of memory files that hold the query word for word (raises BadInput)."""
        return await reader.search(self._store, query, self.cleaner(), ignore_case=ignore_case)

    def cleaner(self) -> Clean:
        """Return the function that takes secrets and forgotten words out of a text."""
        return self._search.cleaner()

    async def count(self, found: list[Hit]) -> None:
        """Count entries and summaries that were given out as retrieved."""
        given = [self._known[hit.entry_id].entry for hit in found if isinstance(hit.entry_id, str)]
        threads = [hit.thread_id for hit in found if hit.kind == "summary" and hit.thread_id]
        await usage_counts.count(self._store, "retrieved", given, threads)

    async def link(self, hit: Hit) -> Link:
        """Return where a hit's words stand: a line of a ledger, or of a summary of one."""
        file = f"{hit.path}:{hit.line}" if isinstance(hit.path, str) else None
        path = await (await self._home.index()).find(self._home.path, hit.thread_id) if hit.thread_id else None
        return Link(
            summary_file=file,
            thread_id=hit.thread_id,
            path=str(path) if path is not None else None,
            turn=hit.turn,
            byte_start=hit.item,
            byte_end=None if hit.item is None or path is None else passages.line_end(path, hit.item),
            quote=hit.text,
        )

    async def _memory(self, query: Query, scopes: set[str] | None, *, candidates: bool) -> list[ScoredHit]:
        query.check()
        opened = await self._search.open("memory", query)
        hidden = set[str]() if candidates else {key for key, each in self._known.items() if each.is_candidate}
        mask = None
        if scopes is not None:
            threads = await self._search.threads(query, shared=True) or set[str]()
            mask = documents_where(
                opened.index, lambda each: each.place not in hidden and self._is_shown(each, scopes, threads)
            )
        elif hidden:
            mask = documents_where(opened.index, lambda each: each.place not in hidden)
        found = await self._search.rank("memory", opened, query, mask, self._worth)
        rows = await self._search.rows({opened.index.document(each.number).place for each in found})
        return await anyio.to_thread.run_sync(self._hits, opened.index, found, rows, self.cleaner())

    def _hits(
        self, index: SegmentIndex, found: list[RankedPassage], rows: Mapping[str, Row], clean: Clean
    ) -> list[ScoredHit]:
        """Read entries and lines of summaries."""
        hits: list[ScoredHit] = []
        for each in found:
            document = index.document(each.number)
            if document.kind == search_documents.ENTRY:
                if document.place in self._known:
                    hits.append((each, _entry(each, self._known[document.place], clean, self._titles)))
                continue
            number = int(index.offset[each.number])
            try:
                text = search_documents.lines(self._store.root / document.id).get(number)
            except OSError:
                text = None
            if text is not None:
                hits.append((each, _line(each, document.id, number, rows.get(document.place), clean(text))))
        return hits

    def _is_shown(self, document: Document, scopes: Iterable[str], threads: set[str]) -> bool:
        """Say whether something of the memory is for some scopes: an entry by its own, a summary by its session's."""
        if document.kind != search_documents.ENTRY:
            return document.place in threads
        return document.place in self._known and self._known[document.place].entry.scope in scopes

    def _worth(self, document: Document, recipe: Recipe) -> float:
        """Return the weight of an entry: how often it was used and taught."""
        known = self._known.get(document.place)
        if known is None:
            return 0.0
        used = known.cited * 2 + known.retrieved + known.entry.support - 1
        return recipe.used * min(1.0, used / 10) + recipe.used * known.entry.pinned


async def _refresh(store: MemoryStore, entries: list[KnownEntry]) -> None:
    """Bring the search index up to date with the entries and the summaries of single sessions."""
    root, database = store.home.key, await store.home.database()
    if await database.read(lambda tx: session_index.is_outdated(tx, root, "memory")):
        await database.write(lambda tx: postings.remove_outdated(tx, root, "memory", analysis.VERSION))
    before = await database.read(lambda tx: postings.stamps(tx, root, "memory"))
    wanted = await anyio.to_thread.run_sync(_wanted, store.root, entries, before)
    gone = sorted(before.keys() - wanted.keys())
    if gone:
        await database.write(lambda tx: postings.drop(tx, root, "memory", gone))
    fresh = [item for name, item in wanted.items() if before.get(name) != item.stamp]
    if fresh:
        await index.add_documents(database, root, "memory", fresh)
    elif gone:
        await index.merge_segments(database, root, "memory")


def _wanted(root: Path, entries: list[KnownEntry], before: dict[str, DocumentStamp]) -> dict[str, NewDocument]:
    """Return every document of the memory, by name."""
    found: dict[str, NewDocument] = {}
    for each in entries:
        entry = each.entry
        text = search_documents.digest(entry.text, *(source.quote for source in entry.sources))
        stamp = DocumentStamp(f"{search_documents.ENTRY}:{entry.id}", entry.last_seen_s, text)
        found[stamp.document] = NewDocument(
            stamp, partial(search_documents.of_entry, entry), entry.id, search_documents.ENTRY
        )
    for name, place, size, mtime_ns in search_documents.summaries(root):
        stamp = DocumentStamp(name, size, mtime_ns)
        thread = "" if before.get(name) == stamp else search_documents.thread_of(place)
        found[name] = NewDocument(stamp, partial(search_documents.of_summary, place), thread, search_documents.SUMMARY)
    return found


def _entry(each: RankedPassage, known: KnownEntry, clean: Clean, titles: dict[str, str]) -> Hit:
    entry = known.entry
    source = next(iter(entry.sources), None)
    return Hit(
        thread_id=source.thread_id if source else None,
        item=source.byte_start if source else None,
        source_id=None,
        turn=source.turn if source else None,
        role=None,
        time=wire_second(entry.last_seen_s),
        score=round(each.score, 4),
        text=clean(entry.text),
        project=None if entry.is_global else entry.scope,
        kind="entry",
        entry_id=entry.id,
        candidate=True if known.is_candidate else UNSET,
        people=audience.named(entry, titles) if titles else UNSET,
        path=None,
        line=None,
    )


def _line(each: RankedPassage, path: str, number: int, row: Row | None, text: str) -> Hit:
    return Hit(
        thread_id=row["thread_id"] if row is not None else None,
        item=None,
        source_id=None,
        turn=None,
        role=None,
        time=row["updated_at"] if row is not None else None,
        score=round(each.score, 4),
        text=text,
        project=row["project"] if row is not None else None,
        kind="summary",
        entry_id=None,
        path=path,
        line=number,
    )
