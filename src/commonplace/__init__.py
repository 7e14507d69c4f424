"""Commonplace gives coding agents a durable past.

    async with commonplace.open() as book:
        page = await book.sessions.list(limit=10)
        context = await book.sessions.context(page.threads[0].thread_id)

What is exported here is public, documented and tested; everything else may change. Importing this package does nothing
but define names; the heavy parts load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.version import __version__

if TYPE_CHECKING:
    from commonplace.agent import events
    from commonplace.agent.thread import Thread
    from commonplace.app.book import Book, open  # noqa: A004 (the name users write is commonplace.open)
    from commonplace.errors import CommonplaceError
    from commonplace.models import scripted
    from commonplace.models.scripted import ScriptedModel

__all__ = ["Book", "CommonplaceError", "ScriptedModel", "Thread", "__version__", "events", "open", "scripted"]

_PLACES = {
    "Book": "commonplace.app.book",
    "CommonplaceError": "commonplace.errors",
    "ScriptedModel": "commonplace.models.scripted",
    "Thread": "commonplace.agent.thread",
    "open": "commonplace.app.book",
}
_MODULES = {"events": "commonplace.agent.events", "scripted": "commonplace.models.scripted"}


def __getattr__(name: str) -> Any:
    """Load public names when they are first asked for (PEP 562)."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'commonplace' has no attribute {name!r}")
