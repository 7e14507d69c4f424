"""From what a person typed to a session file: an id, the beginning of one, a name, or a path.

Files inside our home are ours; all others are foreign: read, referred to, forked, never changed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import ForeignFile, UnknownThread
from commonplace.rollout import layout

if TYPE_CHECKING:
    from commonplace.runtime.book import Book


@dataclass(frozen=True, slots=True)
class Target:
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
        return _target(book, path.absolute(), layout.home_of(path.absolute()))
    place = home or book.home
    index = await book.index()
    found = await index.find(place, text)
    if found is None or not found.exists():
        await index.refresh(place)
        found = await index.find(place, text)
    if found is None:
        raise UnknownThread(
            f"No thread in {place} is called {text!r}, and no id begins with it.",
            hint="`commonplace sessions list` shows what there is; --home names another home.",
            thread=text,
        )
    return _target(book, found, place)


def _target(book: Book, path: Path, home: Path | None) -> Target:
    ours = book.home.resolve()
    folders = (ours / layout.SESSIONS, ours / layout.ARCHIVED)
    is_ours = any(folder in path.resolve().parents for folder in folders)
    return Target(path, book.home if is_ours else home or path.parent, is_ours)


def _looks_like_path(text: str) -> bool:
    return os.sep in text or text.endswith((".jsonl", ".zst", ".json", ".traj")) or Path(text).is_file()
