"""Reading and searching the memory's files for a person: the agent's tools, without limits of scope."""

from __future__ import annotations

from typing import cast

import anyio.to_thread

from commonplace.memory.recall import tools
from commonplace.memory.recall.tools import MatchPage, MemoryFolder, Reading
from commonplace.memory.recall.visibility import Visibility
from commonplace.memory.store import MemoryStore
from commonplace.projects import lookup
from commonplace.search.hits import Clean, Hit
from commonplace.search.query import Query

_MOST = 200
"""The most matches of one exact search."""


async def read(
    store: MemoryStore, path: str, *, first: int = 1, lines: int | None = None, project: str | None = None
) -> Reading:
    """Return some lines of a file (raises BadInput: ToolError, or there is no such project)."""
    scope = await lookup.named_scope(store.home, project, ()) if project is not None else None
    asked = {"path": path, "line_offset": first, "max_lines": lines}
    return cast("Reading", await anyio.to_thread.run_sync(tools.call, _folder(store), "read", asked, Visibility(scope)))


async def search(store: MemoryStore, query: Query, clean: Clean, *, ignore_case: bool = False) -> list[Hit]:
    """Return the lines that hold a text, word for word, in the order of files and lines (raises BadInput)."""
    asked = {"queries": [query.query], "case_sensitive": not ignore_case, "max_results": min(query.limit, _MOST)}
    view = Visibility(query.scope)
    found = cast("MatchPage", await anyio.to_thread.run_sync(tools.call, _folder(store), "search", asked, view))
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


def _folder(store: MemoryStore) -> MemoryFolder:
    return MemoryFolder(store.root)
