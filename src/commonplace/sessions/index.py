"""The thread index of a home, as operations on threads use it: refreshed, corrected after a change, read in pages.

Files are the truth and the index mirrors them. So a failing database costs a warning here, never an operation: the next
listing finds what the index missed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from commonplace.errors import BadInput, StateError
from commonplace.projects import assignment
from commonplace.rollout import layout
from commonplace.state.home import Home
from commonplace.state.thread_pages import ThreadRow
from commonplace.state.threads import ThreadIndex

T = TypeVar("T")
_PAGE: Final = 100
"""How many threads `own_threads` asks for at a time."""


async def use(home: Home, action: Callable[[ThreadIndex], Awaitable[T]]) -> T:
    """Run an action on the index; if the database fails meanwhile, run it again on an index built from the files."""
    try:
        return await action(await home.index())
    except StateError as error:
        await home.degrade(str(error).rstrip("."))
        return await action(await home.index())


async def touch(home: Home, path: Path, *, is_new: bool = False) -> None:
    """Mirror a change that the files already have, here and in the store; a new thread also gets its project."""
    home.ledger_changed(path)
    try:
        await (await home.index()).touch(home.path, path)
        if is_new:
            await assignment.settle(home)
    except (StateError, OSError) as error:
        home.warn(f"The index was not brought up to date: {error}")


async def own_threads(home: Home, folder: Path | None, limit: int) -> list[ThreadRow]:
    """Return the newest threads that can be resumed, of one folder or of all: those in our home, not other agents'."""
    if not (home.path / layout.SESSIONS).is_dir():
        return []
    cwd = None if folder is None else str(folder.expanduser().absolute())
    threads: list[ThreadRow] = []
    if (await use(home, lambda index: index.refresh(home.path))).read:
        await assignment.settle(home)
    index, cursor = await home.index(), None
    while True:
        page = await index.page(home.path, limit=_PAGE, cursor=cursor, cwd=cwd)
        threads += [row for row in page.threads if layout.is_under(str(Path(row.path).resolve()), home.folder)]
        cursor = page.next_cursor
        if cursor is None or len(threads) >= limit:
            return threads[:limit]


async def newest_thread(home: Home, folder: Path | None) -> ThreadRow:
    """Return the newest thread that can be resumed (raises BadInput: there is none)."""
    threads = await own_threads(home, folder, 1)
    if not threads:
        where = "" if folder is None else " in this folder"
        raise BadInput(f"There is no session{where} to go on with.", hint="Start one, or give its id.")
    return threads[0]
