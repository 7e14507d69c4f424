"""Exact search over all sessions, newest first: in messages, tool calls and tool output.

It reads the files themselves, so it needs no index and misses nothing; it ends when there are enough hits.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import anyio.to_thread

from commonplace.errors import CommonplaceError
from commonplace.rollout import layout
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.store import stubs
from commonplace.search import exact_text, hits
from commonplace.search.exact_text import Needle
from commonplace.search.hits import Clean, Hit
from commonplace.search.passages import inherited_turns
from commonplace.search.query import Query
from commonplace.state.database import Row
from commonplace.state.home import Home


async def search(home: Home, query: Query, clean: Clean, *, ignore_case: bool = False) -> list[Hit]:
    """Return the newest texts that hold what is looked for, word for word."""
    root = home.key
    rows = await (await home.database()).read(lambda tx: tx.query("threads.searched", home=root))
    needle = Needle(query.query, ignore_case=ignore_case)
    return await anyio.to_thread.run_sync(_search, rows, query, needle, clean, home.path)


def _search(rows: list[Row], query: Query, needle: Needle, clean: Clean, home: Path) -> list[Hit]:
    found: list[Hit] = []
    store = BlobStore(home)
    for row in rows:
        if stubs.is_remote(row["path"]):  # it would be downloaded whole
            continue
        if query.scope not in (None, row["project"]) or (query.since_s or 0) > row["updated_s"]:
            continue
        path = Path(row["path"])
        stores = store if layout.is_under(row["path"], str(home.resolve())) else None
        try:
            matches = (
                match for match in exact_text.search(path, needle, stores) if hits.is_new(match.time, query.since_s)
            )
            newest = list(deque(matches, query.limit - len(found)))[::-1]
            if newest:
                exact_text.number_turns(path, newest, inherited_turns(path))
        except CommonplaceError:
            continue
        found += [hits.of_match(row, match, clean) for match in newest]
        if len(found) >= query.limit:
            break
    return found
