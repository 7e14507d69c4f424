"""Keeping the sections ready that agents' hooks and the memory server tell, and counting what they told.

Sections are made when they are first asked for and after learning, for the folders that hooks asked for lately and
those of the newest sessions. `memory.recall.section_cache` stores them and tells when one is out of date.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread

from commonplace import config
from commonplace.app.home import open_home, open_memory
from commonplace.memory.recall import scoped_prompt, section_cache, usage_counts
from commonplace.memory.recall.section_cache import CLAUDE_CODE, CODEX, SERVER, Section
from commonplace.memory.store import MemoryStore
from commonplace.projects.identity import identity_files
from commonplace.projects.scope import short_names
from commonplace.state.home import Home

_READERS: Final = (CODEX, CLAUDE_CODE)
_WARM_FOLDERS: Final = 32
"""For so many folders and readers, sections are kept ready after learning."""
_LESSONS_BYTES: Final = 4_000
"""How much of the best lessons the instructions of the server hold."""


async def keep_section(store: MemoryStore, folder: str, reader: str, *, project: str | None = None) -> Section:
    """Make the section of a folder for a reader, and keep it ready; that of a named `project` is only made.

    Raises:
        BadInput: no project is called that.
    """
    home = store.home
    files = await anyio.to_thread.run_sync(lambda: [str(path) for path in identity_files(Path(folder))])
    noted = section_cache.stamps(str(home.path), files)
    agent, _, notes = reader.partition("+")
    settings = home.settings.memory
    if reader == SERVER:
        text, scope, ids = await scoped_prompt.best_lessons(store, Path(folder), _LESSONS_BYTES, project=project)
    else:
        tools = ("list", "read", "search", "find", *(("add_ad_hoc_note",) if notes else ()))
        prompt = await scoped_prompt.prompt(store, folder=Path(folder), tools=tools, cites=agent == CODEX)
        text, scope, ids = prompt.text, prompt.scope, prompt.included
    section: Section = {
        "text": text,
        "project": short_names([scope])[scope] if scope is not None else "",
        "lessons": len(ids),
        "ids": ids,
        "folder": folder,
        "reader": reader,
        "is_learning": settings.background and settings.generate,
    }
    if project is None and not home.is_degraded and home.path.is_dir():
        section_cache.write(str(home.path), folder, reader, home.environment, noted, section)
    return section


def is_used(home: Home) -> bool:
    """Say whether hooks of agents, or servers that agents started, asked for sections in a home."""
    return (home.path / section_cache.FOLDER).is_dir()


async def keep_sections(store: MemoryStore) -> None:
    """Make the sections anew that hooks are likely to need: those that are kept, and those of the newest sessions."""
    home = store.home
    kept = section_cache.folders(str(home.path))
    wanted = dict.fromkeys(kept[:_WARM_FOLDERS])
    if len(wanted) < _WARM_FOLDERS and home.has_index():
        readers = list(dict.fromkeys(reader for _, reader in kept)) or list(_READERS)
        for folder in await _recent_folders(home):
            wanted |= dict.fromkeys((folder, reader) for reader in readers)
    for folder, reader in list(wanted)[:_WARM_FOLDERS]:
        if Path(folder).is_dir() and section_cache.read(str(home.path), folder, reader, home.environment) is None:
            await keep_section(store, folder, reader)


async def _recent_folders(home: Home) -> list[str]:
    """Return the folders of the newest sessions."""
    key, database = home.key, await home.database()
    rows = await database.read(lambda tx: tx.query("threads.recent_folders", home=key, limit=_WARM_FOLDERS))
    return [row["cwd"] for row in rows if row["cwd"].startswith("/")]


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
