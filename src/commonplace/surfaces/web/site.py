"""What the pages share while the server runs: the book, the templates, and the changes that can be taken back."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from commonplace.app.book import Book
from commonplace.learning.entry_changes import Undo
from commonplace.memory.recall import scoped_prompt
from commonplace.surfaces.web import rendering

_MOST_UNDOS: Final = 100
"""How many changes can be taken back; older ones stay."""


class Undoable(msgspec.Struct, frozen=True):
    """A change that can be taken back, in words."""

    text: str
    undo: Undo | None = None
    """None: it was taken back, or cannot be."""


class Site:
    """What the pages share: the book, the templates, and changes that can be taken back."""

    def __init__(self, book: Book, tasks: TaskGroup) -> None:
        self.book = book
        self.tasks = tasks
        self.templates = rendering.environment()
        self.changing = anyio.Lock()
        """Changes are made one at a time, so that each compares itself with what the one before left."""
        self.undos: dict[str, Undoable] = {}

    def cleaner(self) -> Callable[[str], str]:
        """Return what takes secrets and forgotten words out of a text."""
        return scoped_prompt.cleaner(self.book.home)

    def note_undo(self, done: Undoable) -> str:
        """Keep what takes a change back; return its name."""
        while len(self.undos) >= _MOST_UNDOS:
            self.undos.pop(next(iter(self.undos)))
        name = secrets.token_urlsafe(9)
        self.undos[name] = done
        return name
