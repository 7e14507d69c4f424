"""Counting the use of memory: cited by an answer, retrieved by a tool, injected into a prompt.

Only what exists counts, each thing once for each answer or call; what a citation names and is not there stays in the
receipt. An entry's use is also that of the sessions that taught it, so that what is used does not age. Counting is
never worth an error: a database that fails costs the count and a warning.
"""

from __future__ import annotations

from collections.abc import Iterable

import anyio.to_thread
import msgspec

from commonplace.errors import StateError
from commonplace.importers.session_citations import CitingAnswer
from commonplace.memory.entries import GLOBAL, Entry
from commonplace.memory.recall import known_entries
from commonplace.memory.recall.receipts import LineRange, ResolvedCitation, WorkspaceFiles
from commonplace.memory.store import MemoryStore
from commonplace.memory.workspace import layout
from commonplace.protocol import citations
from commonplace.protocol.citations import Citation
from commonplace.state import outputs, usage
from commonplace.state.database import Transaction
from commonplace.state.usage import Use


class UnknownCitation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a citation names and that is not there."""

    reason: str
    """`no_such_file`, `no_such_lines`, `blank_lines`, `not_an_id`, `no_such_thread`."""
    path: str | None = None
    lines: str | None = None
    id: str | None = None


class CitationReceipt(msgspec.Struct):
    """What an answer or a call used of the memory."""

    entries: list[str] = []
    threads: list[str] = []
    unknown: list[UnknownCitation] = []


async def count_cited(store: MemoryStore, said: str | Citation) -> CitationReceipt:
    """Count the citations of an answer, and return the receipt."""
    citation = citations.finished(said).citation if isinstance(said, str) else said
    if citation is None:
        return CitationReceipt()
    known = [each.entry for each in await known_entries.known_entries(store)]
    shelf = WorkspaceFiles(store.root, known)
    places = [LineRange(each.path, each.line_start, each.line_end) for each in citation.entries]
    found = await anyio.to_thread.run_sync(lambda: [shelf.resolve(place) for place in places])
    missing = [
        UnknownCitation(reason=each.problem, path=place.path, lines=f"{place.first}-{place.last}")
        for place, each in zip(places, found, strict=True)
        if each.problem is not None
    ]
    named, strange = await _threads(store, citation.rollout_ids, known, shelf)
    receipt = _receipt(found, named, [*dict.fromkeys(missing), *strange])
    used = set(receipt.entries)
    await count(store, "cited", [entry for entry in known if entry.id in used], receipt.threads)
    return receipt


async def count_retrieved(
    store: MemoryStore, places: Iterable[tuple[str, int, int]], *, scope: str | None = None
) -> CitationReceipt:
    """Count what a tool gave out: ranges of lines (path, first and last line), entries and threads."""
    asked = [LineRange(*place) for place in dict.fromkeys(places)]
    if not asked:
        return CitationReceipt()
    known = [each.entry for each in await known_entries.known_entries(store)]
    if scope is not None:
        known = [entry for entry in known if entry.scope in (GLOBAL, scope)]
    shelf = WorkspaceFiles(store.root, known)
    found = await anyio.to_thread.run_sync(lambda: [shelf.resolve(place) for place in asked])
    if scope is not None:  # of other projects' tasks, a reader saw nothing
        ours = {source.thread_id for entry in known for source in entry.sources}
        for place, each in zip(asked, found, strict=True):
            if not place.path.startswith(f"{layout.SUMMARIES}/"):
                each.threads = [thread for thread in each.threads if thread in ours]
    receipt = _receipt(found, [], [])
    used = set(receipt.entries)
    await count(store, "retrieved", [entry for entry in known if entry.id in used], receipt.threads)
    return receipt


async def count(
    store: MemoryStore, use: Use, used: Iterable[Entry], threads: Iterable[str] = (), *, besides: Iterable[str] = ()
) -> bool:
    """Count a use of entries, and of the sessions that taught them but for those that are counted already.

    Returns whether it could be noted.
    """
    chosen = list(used)
    names = list(dict.fromkeys(entry.id for entry in chosen))
    taught = (source.thread_id for entry in chosen for source in entry.sources if source.thread_id)
    counted = set(besides)
    sessions = [thread for thread in dict.fromkeys([*threads, *taught]) if thread not in counted]
    if not (names or sessions) or not store.home.has_index():
        return False
    now = store.home.now_s()

    def body(tx: Transaction) -> None:
        usage.record_entries(tx, use, names, now=now)
        usage.record_outputs(tx, use, sessions, now=now)

    try:
        await (await store.home.database()).write(body)
    except (StateError, OSError) as error:
        store.home.warn(f"What memory was used for could not be counted: {error}")
        return False
    return True


class ImportedCitations:
    """Counts the entries that imported answers cite by their lines.

    Lines are those of the memory as the agent saw it. So they count only if the memory did not change since the oldest
    of the sessions was written; the threads that answers name are counted where they are noted.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def __call__(self, answers: Iterable[CitingAnswer], oldest_ns: int) -> None:
        """Count what answers cite; `oldest_ns` is when the oldest of their files was written."""
        store = self._store
        memory = store.root / layout.MEMORY
        if not memory.is_file() or memory.stat().st_mtime_ns > oldest_ns:
            return
        known = {each.entry.id: each.entry for each in await known_entries.known_entries(store)}
        shelf = WorkspaceFiles(store.root, known.values())
        for answer in answers:
            places = [LineRange(*place) for place in answer.places]
            found = await anyio.to_thread.run_sync(lambda places=places: [shelf.resolve(place) for place in places])
            used = [known[name] for name in _receipt(found, [], []).entries]
            await count(store, "cited", used, besides=answer.threads)


def _receipt(found: list[ResolvedCitation], threads: list[str], unknown: list[UnknownCitation]) -> CitationReceipt:
    entries = dict.fromkeys(name for each in found for name in each.entries)
    named = dict.fromkeys([*threads, *(thread for each in found for thread in each.threads)])
    return CitationReceipt(list(entries), list(named), unknown)


async def _threads(
    store: MemoryStore, names: list[str], entries: list[Entry], shelf: WorkspaceFiles
) -> tuple[list[str], list[UnknownCitation]]:
    """Return the threads that ids name, and those ids that name none."""
    spelt = {name: citations.thread_of(name) for name in names}
    there = {source.thread_id for entry in entries for source in entry.sources}
    wanted = list(dict.fromkeys(thread for thread in spelt.values() if thread is not None and thread not in there))
    listed = await _listed(store, wanted)
    raw = (await anyio.to_thread.run_sync(shelf.text, layout.RAW)) or "" if len(listed) < len(wanted) else ""
    there |= listed | {thread for thread in wanted if f"## Thread `{thread}`\n" in raw}
    unknown = [
        UnknownCitation(reason="not_an_id" if thread is None else "no_such_thread", id=name)
        for name, thread in spelt.items()
        if thread is None or thread not in there
    ]
    return list(dict.fromkeys(thread for thread in spelt.values() if thread in there and thread is not None)), unknown


async def _listed(store: MemoryStore, threads: list[str]) -> set[str]:
    """Return those threads that the database knows."""
    if not threads or not store.home.has_index():
        return set()
    root = store.home.key

    def body(tx: Transaction) -> set[str]:
        return {
            thread
            for thread in threads
            if outputs.get(tx, thread) is not None or tx.query("threads.by_id", home=root, thread_id=thread)
        }

    try:
        return await (await store.home.database()).read(body)
    except (StateError, OSError) as error:
        store.home.warn(f"What an answer cites could not be looked up: {error}")
        return set()
