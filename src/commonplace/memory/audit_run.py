"""Auditing a memory: entries are compared with each other, with the disk and with their sources.

Nothing is changed. What cannot be checked here (a project whose folder is not on this machine, a session whose file is
gone, counters without a database) is not reported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread
import msgspec

from commonplace.errors import CommonplaceError, StateError
from commonplace.memory import audit as checks
from commonplace.memory import similarity
from commonplace.memory.audit import Audit, Finding, shown_text
from commonplace.memory.edits import history
from commonplace.memory.entries import GLOBAL, SECTION_OF, Entry, Source
from commonplace.memory.files import handbook
from commonplace.memory.recall import known_entries
from commonplace.memory.recall.receipts import WorkspaceFiles
from commonplace.memory.stale_names import ProjectFolders
from commonplace.memory.store import KnownEntry, MemoryStore
from commonplace.memory.workspace import layout
from commonplace.projects.identity import look
from commonplace.protocol import items
from commonplace.protocol.ids import wire_second
from commonplace.protocol.memory_traces import is_memory_tool
from commonplace.protocol.rollout import Line
from commonplace.rollout import reader
from commonplace.state.database import Row

_DAY: Final = 86_400
_MAX_NEAR: Final = 64
"""How many entries that share a word are compared with each other."""
_MAX_SOURCES: Final = 8
"""How many sources of an entry are checked."""
_MAX_LOOKED: Final = 4_000
"""How many places of ledgers one audit looks at."""


async def audit(store: MemoryStore) -> Audit:
    """Return the problems of a memory, of every kind."""
    known = await known_entries.known_entries(store)
    threads = await _rows(store, "threads.current")
    return await anyio.to_thread.run_sync(_audit, store, known, threads)


async def problems(
    store: MemoryStore, kind: Literal["duplicates", "stale", "unused"], known: list[KnownEntry]
) -> dict[str, str]:
    """Return what is wrong with those of the known entries that have one kind of problem, by their ids."""
    folders = await _rows(store, "threads.project_folders") if kind == "stale" else []

    def look() -> dict[str, str]:
        entries = [each.entry for each in known]
        found: Iterable[Finding]
        match kind:
            case "duplicates":
                found = duplicates(entries, _untold)
            case "stale":
                found = _stale(entries, WorkspaceFiles(store.root, entries), folders)
            case "unused":
                found = _unused(store, known, _untold)
        return {each.id: each.problem for each in found if each.id is not None}

    return await anyio.to_thread.run_sync(look)


def _untold(_: str) -> str:
    """Stand for the text of an entry where nobody reads it."""
    return ""


async def _rows(store: MemoryStore, query: str) -> list[Row]:
    """Return what the index knows of sessions; nothing if it cannot be asked."""
    if not store.home.has_index():
        return []
    root = store.home.key
    try:
        return await (await store.home.database()).read(lambda tx: tx.query(query, home=root))
    except StateError as error:
        store.home.warn(f"Where sessions ran could not be looked up: {error}")
        return []


def _audit(store: MemoryStore, known: list[KnownEntry], threads: list[Row]) -> Audit:
    root = store.root
    entries = [each.entry for each in known]
    shelf = WorkspaceFiles(root, entries)
    paths = checks.files(root) if root.is_dir() and not root.is_symlink() else []
    return Audit(
        duplicates=list(duplicates(entries)),
        stale=list(_stale(entries, shelf, threads)),
        unused=list(_unused(store, known)),
        secrets=[
            *checks.secrets(shelf, paths),
            *checks.secrets(WorkspaceFiles(store.home.path, []), [history.FILE]),
        ],
        unsourced=[
            *checks.unsourced_entries(entries, paths),
            *checks.unsourced_lines(shelf, has_entries=bool(entries)),
        ],
        loops=[*_loops(entries, threads), *checks.looping_files(shelf, paths)],
    )


def duplicates(entries: list[Entry], shown: Callable[[str], str] = shown_text) -> Iterator[Finding]:
    """Yield entries that say what another says, for the same project or for all."""
    near: dict[str, dict[str, dict[str, list[int]]]] = {}
    for place, entry in enumerate(entries):
        words, scopes = similarity.words(entry.text), near.setdefault(SECTION_OF[entry.kind], {})
        handles = sorted(words.about | words.concepts)
        tables = [table for scope, table in scopes.items() if entry.is_global or scope in (entry.scope, GLOBAL)]
        shared = Counter(chain.from_iterable(table.get(each, ())[-_MAX_NEAR:] for each in handles for table in tables))
        least = 1 if words.concepts else min(similarity.MIN_SHARED, len(words.about))
        for other in (entries[number] for number, count in shared.items() if count >= least):
            if similarity.is_same(similarity.words(other.text), words):
                told = f'says what {other.id} says: "{shown_text(other.text)}"'
                yield Finding(id=entry.id, other=other.id, problem=told, text=shown(entry.text))
                break
        own = scopes.setdefault(entry.scope, {})
        for each in handles:
            own.setdefault(each, []).append(place)


def _stale(entries: list[Entry], shelf: WorkspaceFiles, rows: list[Row]) -> Iterator[Finding]:
    folders = _folders(shelf, rows)
    projects: dict[str, ProjectFolders] = {}
    for entry in entries:
        if entry.is_global:
            continue
        if entry.scope not in projects:
            there = [Path(cwd) for cwd in sorted(folders.get(entry.scope, ())) if _is_of(cwd, entry.scope)]
            projects[entry.scope] = ProjectFolders(there)
        for gone in projects[entry.scope].stale_names(entry):
            yield Finding(
                id=entry.id,
                problem=gone.problem,
                text=shown_text(entry.text),
                name=shown_text(gone.name),
                kind=gone.what,
            )


def _folders(shelf: WorkspaceFiles, rows: list[Row]) -> dict[str, set[str]]:
    """Return where each project is, as its sessions and the memory itself tell."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found[row["project"]].add(row["cwd"])
    for block in handbook.parse(shelf.text(layout.MEMORY) or "")[0]:
        cwd = known_entries.cwd_of(block)
        if cwd:
            found[block.scope].add(cwd)
    for scope in list(found):
        if scope.startswith("/"):
            found[scope].add(scope)
    return found


def _is_of(cwd: str, scope: str) -> bool:
    """Say whether a folder is there and still that of a project: another may stand in its place."""
    place = look(cwd)
    return place.exists and (place.identity in (None, scope) or scope.startswith("/"))


def _unused(
    store: MemoryStore, entries: list[KnownEntry], shown: Callable[[str], str] = shown_text
) -> Iterator[Finding]:
    """Yield old entries that nobody asked for; what a person wrote or pinned never ages."""
    if not store.home.has_index():
        return
    days = store.home.settings.memory.max_unused_days
    cutoff = store.home.now_s() - days * _DAY
    for each in entries:
        entry = each.entry
        by_hand = entry.pinned or any(source.note for source in entry.sources)
        if not (by_hand or each.retrieved or each.cited) and entry.last_seen_s < cutoff:
            seen = wire_second(entry.last_seen_s)
            problem = f"never retrieved nor cited, last learned {seen[:10]}"
            yield Finding(id=entry.id, problem=problem, text=shown(entry.text), last_seen=seen)


def _loops(entries: list[Entry], rows: list[Row]) -> Iterator[Finding]:
    """Yield entries that rest on nothing but what memory itself told."""
    paths = {row["thread_id"]: row["path"] for row in rows}
    looked = 0
    for entry in entries:
        verdicts: list[bool] = []
        for source in entry.sources[:_MAX_SOURCES]:
            if looked >= _MAX_LOOKED:
                break
            looked += 1
            verdicts.append(_is_recalled(source, paths.get(source.thread_id or "")))
            if not verdicts[-1]:
                break
        if verdicts and all(verdicts):
            problem = "it was learned only from what memory itself had told"
            yield Finding(id=entry.id, problem=problem, text=shown_text(entry.text))


def _is_recalled(source: Source, path: str | None) -> bool:
    """Say whether a source is a text that came from memory; a source that cannot be read does not count as one."""
    if path is None or source.byte_start is None:
        return False
    try:
        line = next(iter(reader.forward(Path(path), start=source.byte_start)), None)
        if not isinstance(line, Line) or line.offset != source.byte_start or line.type != "response_item":
            return False
        view = items.view(bytes(line.payload))
    except (CommonplaceError, OSError, msgspec.DecodeError, RecursionError):
        return False
    if isinstance(view, items.Message):
        return checks.is_recalled(source.quote, "\n".join(part.text or "" for part in view.content))
    if isinstance(view, items.FunctionCall):
        return is_memory_tool(view.name, view.namespace)
    return False
