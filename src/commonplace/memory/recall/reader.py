"""The files of the memory as a person reads and searches them: the agent's own tools, with everything in view."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import anyio.to_thread

from commonplace.memory import listing
from commonplace.memory.recall import tools
from commonplace.memory.recall.tools import Folder, Found, Reading
from commonplace.memory.recall.visibility import View
from commonplace.memory.workspace import layout
from commonplace.search.hits import Hit

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.search.search import Wish

_MOST = 200


async def read(
    book: Book, path: str, *, first: int = 1, lines: int | None = None, project: str | None = None
) -> Reading:
    """Return some lines of a file (raises BadInput: ToolError, or there is no such project)."""
    scope = await listing.scope_of(book, project, ()) if project is not None else None
    asked = {"path": path, "line_offset": first, "max_lines": lines}
    return cast("Reading", await anyio.to_thread.run_sync(tools.call, _folder(book), "read", asked, View(scope)))


async def search(book: Book, wish: Wish, *, ignore_case: bool = False) -> list[Hit]:
    """Return the lines that hold a text, word for word, in the order of files and lines (raises BadInput)."""
    clean = book.search.cleaner()
    asked = {"queries": [wish.query], "case_sensitive": not ignore_case, "max_results": min(wish.limit, _MOST)}
    view = View(wish.scope)
    found = cast("Found", await anyio.to_thread.run_sync(tools.call, _folder(book), "search", asked, view))
    return [
        Hit(
            thread_id=None,
            item=None,
            source_id=None,
            turn=None,
            role=None,
            time=None,
            score=1.0,
            text=clean(match.content),
            project=None,
            kind="file",
            entry_id=None,
            path=match.path,
            line=match.match_line_number,
        )
        for match in found.matches
    ]


def _folder(book: Book) -> Folder:
    return Folder(book.home / layout.FOLDER)
