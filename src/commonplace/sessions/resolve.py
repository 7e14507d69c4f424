"""From what a person typed to a session file: an id, the beginning of one, a name, or a path.

Files inside our home are ours; all others are foreign: read, referred to, forked, never changed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from commonplace.errors import ForeignFile, NotASession, StateError, UnknownThread
from commonplace.rollout import layout, thread_names
from commonplace.state.threads import ambiguous

if TYPE_CHECKING:
    from commonplace.app.book import Book


class Target(msgspec.Struct, frozen=True):
    """A session file, the home it stands in, and whether it is ours to change."""

    path: Path
    home: Path
    is_ours: bool

    def must_be_ours(self, action: str) -> None:
        """Refuse to change a foreign file."""
        if not self.is_ours:
            raise ForeignFile(
                f"{self.path} belongs to another program; it cannot be {action}.",
                hint=f"Make a thread of your own from it: commonplace sessions fork {self.path}",
                path=str(self.path),
            )


async def resolve(book: Book, text: str, home: Path | None = None) -> Target:
    """Return the file that a text names, in our home or in another.

    Raises:
        UnknownThread: nothing has this id, name or path.
        AmbiguousThread: several threads do.
    """
    if _looks_like_path(text):
        path = Path(text)
        if not path.exists():
            raise UnknownThread(f"There is no file {text}.", hint="Check the path.", thread=text)
        if path.is_dir():
            raise NotASession(f"{text} is a folder.", hint="Name a session file, or give a home with --home.")
        return _target(book, path.absolute(), layout.home_of(path.absolute()))
    place = home or book.home
    found = await _find(book, place, text)
    if found is None:
        raise UnknownThread(
            f"No thread in {place} is called {text!r}, and no id begins with it.",
            hint="`commonplace sessions list` shows what there is; --home names another home.",
            thread=text,
        )
    return _target(book, found, place)


async def _find(book: Book, home: Path, text: str) -> Path | None:
    if not book.has_index():  # asking for a thread leaves no trace: without an index the files' names must do
        return await anyio.to_thread.run_sync(_find_by_file_name, home, text)
    try:
        index = await book.index()
        found = await index.find(home, text)
        if found is None or not found.exists():
            await index.refresh(home)
            found = await index.find(home, text)
    except StateError as error:
        book.warn(f"The index is not available: {error}")
        return await anyio.to_thread.run_sync(_find_by_file_name, home, text)
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


def _target(book: Book, path: Path, home: Path | None) -> Target:
    ours = book.home.resolve()
    folders = (ours / layout.SESSIONS, ours / layout.ARCHIVED)
    is_ours = any(folder in path.resolve().parents for folder in folders)
    return Target(path, book.home if is_ours else home or path.parent, is_ours)


def _looks_like_path(text: str) -> bool:
    return os.sep in text or text.endswith((".jsonl", ".zst", ".json", ".traj")) or Path(text).is_file()
