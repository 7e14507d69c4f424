"""The newest sessions of ours, in a folder or anywhere: what can be gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.errors import BadInput
from commonplace.rollout import layout

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.state.threads import ThreadRow

_PAGE: Final = 100


async def ours(book: Book, folder: Path | None, most: int) -> list[ThreadRow]:
    """Return some sessions, newest first; those of other agents are listed too, may be newer, and are passed over."""
    if not (book.home / layout.SESSIONS).is_dir():
        return []
    cwd = None if folder is None else str(folder.expanduser().absolute())
    home = str(book.home.resolve())
    found: list[ThreadRow] = []
    cursor: str | None = None
    while True:
        page = await book.sessions.list(limit=_PAGE, cwd=cwd, cursor=cursor, refresh=cursor is None)
        found += [row for row in page.threads if layout.is_under(str(Path(row.path).resolve()), home)]
        cursor = page.next_cursor
        if cursor is None or len(found) >= most:
            return found[:most]


async def newest(book: Book, folder: Path | None) -> ThreadRow:
    """Return the newest session (raises BadInput: there is none)."""
    found = await ours(book, folder, 1)
    if not found:
        where = "" if folder is None else " in this folder"
        raise BadInput(f"There is no session{where} to go on with.", hint="Start one, or give its id.")
    return found[0]
