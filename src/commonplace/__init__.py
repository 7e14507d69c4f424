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
    from commonplace.errors import CommonplaceError
    from commonplace.runtime.book import Book, open  # noqa: A004 (the name users write is commonplace.open)

__all__ = ["Book", "CommonplaceError", "__version__", "open"]


def __getattr__(name: str) -> Any:
    """Load public names when they are first asked for (PEP 562)."""
    if name in ("Book", "open"):
        from commonplace.runtime import book

        return getattr(book, name)
    if name == "CommonplaceError":
        from commonplace.errors import CommonplaceError

        return CommonplaceError
    raise AttributeError(f"module 'commonplace' has no attribute {name!r}")
