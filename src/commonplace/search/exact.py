"""Exact search over all sessions, newest first: in everything that was said, called and answered, tool output too.

It reads the files themselves, so it needs no index and misses nothing; it ends when there are enough hits.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from commonplace.errors import CommonplaceError
from commonplace.rollout import layout
from commonplace.rollout.blobs import BlobStore
from commonplace.search import exact_text, hits
from commonplace.search.exact_text import Needle
from commonplace.search.hits import Clean, Hit
from commonplace.search.passages import inherited_turns
from commonplace.state.database import Row

if TYPE_CHECKING:
    from commonplace.app.book import Book
    from commonplace.search.search import Wish


async def search(book: Book, wish: Wish, clean: Clean, *, ignore_case: bool = False) -> list[Hit]:
    """Return the newest texts that hold what is looked for, word for word."""
    root = str(book.home.resolve())
    rows = await (await book.database()).read(lambda tx: tx.query("threads.searched", home=root))
    needle = Needle(wish.query, ignore_case=ignore_case)
    return await anyio.to_thread.run_sync(_search, rows, wish, needle, clean, book.home)


def _search(rows: list[Row], wish: Wish, needle: Needle, clean: Clean, home: Path) -> list[Hit]:
    found: list[Hit] = []
    store = BlobStore(home)
    for row in rows:
        if wish.scope not in (None, row["project"]) or (wish.since_s or 0) > row["updated_s"]:
            continue
        path = Path(row["path"])
        stores = store if layout.is_under(row["path"], str(home.resolve())) else None
        try:
            matches = [
                match for match in exact_text.search(path, needle, stores) if hits.is_new(match.time, wish.since_s)
            ]
            newest = matches[::-1][: wish.limit - len(found)]
            if newest:
                exact_text.number_turns(path, newest, inherited_turns(path))
        except CommonplaceError:
            continue
        found += [hits.of_match(row, match, clean) for match in newest]
        if len(found) >= wish.limit:
            break
    return found
