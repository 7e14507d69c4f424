"""Resolving what a person typed to a session file: an id, the beginning of one, a name, or a path.

Files inside our home are ours; all others are foreign: read, referred to, forked, never changed.
"""

from __future__ import annotations

import os
from pathlib import Path

import anyio.to_thread
import msgspec

from commonplace.errors import ForeignFile, NotASession, StateError, UnknownThread
from commonplace.rollout import layout, thread_names
from commonplace.rollout.store import stubs
from commonplace.state.home import Home
from commonplace.state.threads import ambiguous


class SessionFile(msgspec.Struct, frozen=True):
    """A session file, its home, and whether it belongs to our home."""

    path: Path
    home: Path
    is_ours: bool

    def must_be_ours(self, action: str) -> None:
        """Refuse to change a foreign file."""
        if not self.is_ours and stubs.is_remote(self.path):
            raise ForeignFile(
                f"Another host keeps this session; it cannot be {action} here.",
                hint=f"Make a thread of your own from it: commonplace sessions fork {self.path}",
                path=str(self.path),
            )
        if not self.is_ours:
            raise ForeignFile(
                f"{self.path} belongs to another program; it cannot be {action}.",
                hint=f"Make a thread of your own from it: commonplace sessions fork {self.path}",
                path=str(self.path),
            )


async def resolve(home: Home, text: str, elsewhere: Path | None = None) -> SessionFile:
    """Return the file that a text names, in our home or in another.

    Raises:
        UnknownThread: nothing has this id, name or path.
        AmbiguousThread: several threads do.
    """
    home.ledger_store()  # the file may be there
    if _looks_like_path(text):
        path = Path(text)
        if not path.exists():
            raise UnknownThread(f"There is no file {text}.", hint="Check the path.", thread=text)
        if path.is_dir():
            raise NotASession(f"{text} is a folder.", hint="Name a session file, or give a home with --home.")
        return _target(home, path.absolute(), layout.home_of(path.absolute()))
    place = elsewhere or home.path
    found = await _find(home, place, text)
    if found is None:
        raise UnknownThread(
            f"No thread in {place} is called {text!r}, and no id begins with it.",
            hint="`commonplace sessions list` shows what there is; --home names another home.",
            thread=text,
        )
    return _target(home, found, place)


async def _find(home: Home, place: Path, text: str) -> Path | None:
    if (
        not home.has_index() and home.settings.ledger is None
    ):  # asking for a thread leaves no trace: without an index the files' names must do
        return await anyio.to_thread.run_sync(_find_by_file_name, place, text)
    try:
        index = await home.index()
        found = await index.find(place, text)
        if found is None or not found.exists():
            if place == home.path:
                await home.list_store()
            await index.refresh(place)
            found = await index.find(place, text)
    except StateError as error:
        home.warn(f"The index is not available: {error}")
        return await anyio.to_thread.run_sync(_find_by_file_name, place, text)
    return found


def _find_by_file_name(home: Path, text: str) -> Path | None:
    called = {name: thread_id for thread_id, name in thread_names.read(home).items()}
    wanted = called.get(text, text.lower())
    found: dict[str, tuple[str, Path]] = {}
    for file in layout.walk(home):
        named = layout.parse_name(file.path.name)
        if named is not None and wanted and named.thread_id.startswith(wanted):
            known = found.get(named.thread_id)
            if known is None or named.rollout_id > known[0]:
                found[named.thread_id] = (named.rollout_id, file.path)
    if len(found) > 1:
        raise ambiguous(text, sorted(found))
    return next((path for _, path in found.values()), None)


def _target(home: Home, path: Path, place: Path | None) -> SessionFile:
    ours = home.path.resolve()
    folders = (ours / layout.SESSIONS, ours / layout.ARCHIVED)
    is_ours = any(folder in path.resolve().parents for folder in folders)
    return SessionFile(path, home.path if is_ours else place or path.parent, is_ours)


def _looks_like_path(text: str) -> bool:
    return os.sep in text or text.endswith((".jsonl", ".zst", ".json", ".traj")) or Path(text).is_file()
