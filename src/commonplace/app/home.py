"""Settings become a home and its memory: the objects that every feature takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from commonplace.config import Settings
from commonplace.memory.entries import Entry
from commonplace.memory.store import MemoryStore
from commonplace.projects import scope
from commonplace.projects.identity import Repositories
from commonplace.rollout import decisions
from commonplace.rollout.store import stubs
from commonplace.state.database import Row
from commonplace.state.home import Home, Mask, Warn
from commonplace.state.threads import ReferredFiles

_MAX_FOLDERS: Final = 1_024
"""Of so many folders it is kept in mind whose they are."""


def open_home(settings: Settings, warn: Warn, environment: Mapping[str, str] | None = None) -> Home:
    """Return the home that the settings name; nothing is opened or read yet."""
    variables = os.environ if environment is None else environment
    return Home(
        settings,
        variables,
        warn,
        referred=lambda: _referred(settings),
        mask=lambda: _forgotten_mask(settings.home),
        person=_person_of(variables),
    )


def _person_of(environment: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that says whose the sessions in a folder are, as rows store it; empty if nobody is known."""

    @lru_cache(_MAX_FOLDERS)
    def person(cwd: str) -> str:
        from commonplace.projects import people  # only homes that share a memory ask

        found = people.of_folder(cwd, environment)
        return people.encode(found) if found is not None else ""

    return person


def open_memory(home: Home) -> MemoryStore:
    """Return the memory of a home."""
    return MemoryStore(home, _derive_entries)


def _derive_entries(home: Path) -> list[Entry]:
    # Learning takes long to import, and entries are derived only where there is no database.
    from commonplace.learning.relearn import derive_entries

    return derive_entries(home)


def _forgotten_mask(home: Path) -> Mask | None:
    """Return the function that takes forgotten words out of a text; None if nothing was forgotten."""
    lines = decisions.forgotten(home)
    if not lines:
        return None
    # The comparison of words takes long to import, and most people forgot nothing.
    from commonplace.memory.edits.forgotten import FORGOTTEN, Forgotten

    forgotten = Forgotten(lines)
    return lambda text: forgotten.without_forgotten(text, FORGOTTEN)


def _referred(settings: Settings) -> ReferredFiles:
    """Return the sessions elsewhere that the home lists as its own."""
    look = Repositories()
    deleted = decisions.tombstones(settings.home)
    patterns = settings.memory.exclude

    def why_not(row: Row) -> str | None:
        if row["thread_id"] in deleted:
            return "deleted"
        if stubs.is_remote(row["path"]):
            return None
        noted = row["project"] != row["cwd"] or not patterns
        project = row["project"] if noted else look(row["cwd"]).identity or row["project"]
        named = {"project": project, "cwd": row["cwd"], "path": row["path"]}
        left_out = any(scope.excluded(patterns, source=source, **named) for source in ("codex", row["source"]))
        return "excluded" if left_out else None

    others = stubs.roots(settings.home) if settings.ledger else []
    return ReferredFiles((*decisions.referred_paths(settings.home), *others), why_not)
