"""Keeping the sections ready that agents' hooks and the memory server tell, and counting what they told.

Sections are made when they are first asked for and after learning, for the folders that hooks asked for lately and
those of the newest sessions. `memory.recall.section_cache` stores them and tells when one is out of date.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread

from commonplace import config
from commonplace.app.home import open_home, open_memory
from commonplace.memory.entries import Entry
from commonplace.memory.recall import known_entries, scoped_prompt, section_cache, usage_counts
from commonplace.memory.recall.section_cache import ANYWHERE, CLAUDE_CODE, CODEX, SERVER, Section
from commonplace.memory.store import MemoryStore
from commonplace.memory.workspace import layout
from commonplace.projects import names
from commonplace.projects.identity import identity_files
from commonplace.projects.repository_files import common_folder, find_git_folder, remote_of
from commonplace.projects.scope import GLOBAL, short_names
from commonplace.protocol.remotes import is_commit
from commonplace.state.home import Home

_READERS: Final = (CODEX, CLAUDE_CODE)
_WARM_FOLDERS: Final = 64
"""For so many folders, remotes and readers, sections are kept ready after learning."""
_LESSONS_BYTES: Final = 4_000
"""How much of the best lessons the instructions of the server hold."""


async def keep_section(
    store: MemoryStore, folder: str, reader: str, *, project: str | None = None, known: list[Entry] | None = None
) -> Section:
    """Make the section of a folder for a reader, and keep it ready; that of a named `project` is only made.

    The folder may be the remote of a repository, or `ANYWHERE`. The section of a folder is kept for its remote, too, if
    the project is called by that. `known` are all entries, if the caller has them.

    Raises:
        BadInput: no project is called that.
    """
    home = store.home
    is_folder = folder.startswith("/")
    files = await anyio.to_thread.run_sync(_identity_files, folder) if is_folder else []
    of_home = section_cache.stamps(str(home.path))
    noted = of_home | {path: section_cache.stamp(path) for path in files}
    place = None if is_folder else GLOBAL if folder == ANYWHERE else folder
    agent, _, notes = reader.partition("+")
    settings = home.settings.memory
    if reader == SERVER:
        text, scope, ids = await scoped_prompt.best_lessons(store, Path(folder), _LESSONS_BYTES, project=project)
    else:
        tools = ("list", "read", "search", "find", *(("add_ad_hoc_note",) if notes else ()))
        prompt = await scoped_prompt.prompt(
            store, folder=Path(folder), tools=tools, cites=agent == CODEX, known=known, place=place
        )
        text, scope, ids = prompt.text, prompt.scope, prompt.included
    section: Section = {
        "text": text,
        "project": _name(scope, folder),
        "lessons": len(ids),
        "ids": ids,
        "folder": folder,
        "reader": reader,
        "is_learning": settings.background and settings.generate,
    }
    if project is None and not home.is_degraded and home.path.is_dir():
        section_cache.write(str(home.path), folder, reader, home.environment, noted, section)
        # Of a shared memory, each checkout may be somebody else's.
        remote = await anyio.to_thread.run_sync(remote_of, folder) if is_folder and not home.is_shared else None
        if remote is not None and remote == scope:
            section_cache.write(str(home.path), remote, reader, home.environment, of_home, section)
    return section


def _identity_files(folder: str) -> list[str]:
    return [str(path) for path in identity_files(Path(folder))]


def _name(scope: str | None, folder: str) -> str:
    """Return how a person is told the name of a project: of a repository without a remote, its folder's."""
    if scope is None:
        return ""
    folders: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        if is_commit(scope) and (git := find_git_folder(Path(folder))) is not None:
            folders = {scope: str(common_folder(git)).removesuffix("/.git")}
    return short_names([scope], folders)[scope]


async def refresh_shared(home: Home) -> None:
    """Take in what other hosts published, if the memory is shared."""
    if home.is_shared:
        from commonplace.memory.sharing import shared_memory  # most memories are of one home

        await shared_memory.refresh(home)


def is_used(home: Home) -> bool:
    """Say whether hooks of agents, or servers that agents started, asked for sections in a home."""
    return (home.path / section_cache.FOLDER).is_dir()


async def keep_sections(store: MemoryStore) -> None:
    """Make the sections anew that hooks are likely to need.

    Those are the ones that are kept, those of the newest sessions' folders, and those of the repositories about which
    something is known, wherever they will be cloned.
    """
    home = store.home
    await refresh_shared(home)
    kept = [(folder, reader) for folder, reader in section_cache.folders(str(home.path)) if _is_there(folder)]
    readers = list(dict.fromkeys(reader for _, reader in kept if reader != SERVER)) or list(_READERS)
    known = [each.entry for each in await known_entries.known_entries(store)]
    recent = await _recent_folders(home) if home.has_index() else []
    called = (await names.read(home)).addresses if home.has_index() else {}
    places = [ANYWHERE, *recent, *(remote for remote in _remotes(known) if called.get(remote, remote) == remote)]
    wanted = dict.fromkeys([*kept[:_WARM_FOLDERS], *((place, reader) for place in places for reader in readers)])
    for folder, reader in list(wanted)[:_WARM_FOLDERS]:
        if section_cache.read(str(home.path), folder, reader, home.environment) is None:
            await keep_section(store, folder, reader, known=known)


def _remotes(known: list[Entry]) -> list[str]:
    """Return the repositories that entries are about, those with the newest first."""
    newest: dict[str, int] = {}
    for entry in known:
        if not (entry.is_global or entry.scope.startswith("/") or is_commit(entry.scope)):
            newest[entry.scope] = max(newest.get(entry.scope, 0), entry.last_seen_s)
    return sorted(newest, key=lambda scope: (-newest[scope], scope))


def prepare(environment: Mapping[str, str]) -> None:
    """Make the sections that the hooks of agents will need, if there is a memory (raises CommonplaceError)."""

    async def make() -> None:
        home = open_home(config.load(environment), lambda _: None, environment)
        try:
            await refresh_shared(home)
            if (home.path / layout.FOLDER).is_dir():
                await keep_sections(open_memory(home))
        finally:
            await home.close()

    anyio.run(make)


async def _recent_folders(home: Home) -> list[str]:
    """Return the folders of the newest sessions."""
    key, database = home.key, await home.database()
    rows = await database.read(lambda tx: tx.query("threads.recent_folders", home=key, limit=_WARM_FOLDERS))
    return [row["cwd"] for row in rows if _is_there(row["cwd"])]


def _is_there(folder: str) -> bool:
    return folder.startswith("/") and Path(folder).is_dir()


async def count_told(store: MemoryStore) -> None:
    """Count as injected what hooks told."""
    lines = section_cache.take_told(str(store.home.path))
    if not lines:
        return
    entries = {each.entry.id: each.entry for each in await store.known_entries()}
    for line in lines:
        ids = cast("list[Any]", line.get("ids")) if isinstance(line.get("ids"), list) else []
        await usage_counts.count(store, "injected", [entries[each] for each in ids if each in entries])


def server_section(environment: Mapping[str, str], folder: str, project: str | None) -> Section:
    """Make the lessons for the instructions of the server, and keep them ready; nothing stays open.

    Raises:
        CommonplaceError: the settings or the project cannot be used.
    """

    async def make() -> Section:
        home = open_home(config.load(environment), lambda _: None, environment)
        try:
            return await keep_section(open_memory(home), folder, SERVER, project=project)
        finally:
            await home.close()

    return anyio.run(make)
