"""The family of a thread: what it was forked from, what was forked from it, and its sub-agents."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import msgspec

from commonplace.rollout import chain, layout
from commonplace.state.home import Home


class Family(msgspec.Struct):
    """Threads that belong together, by their ids."""

    parent: str | None
    """The agent's thread, of a sub-agent's."""
    forked_from: str | None
    forks: list[str]
    """Threads that continue this one's file by reference."""
    children: list[str]
    """Its sub-agents."""


async def family(home: Home, path: Path) -> Family:
    """Return the family of the thread in a file, as far as the index knows it (raises NotASession, LedgerError)."""
    _, meta = await anyio.to_thread.run_sync(chain.read_head, path)
    named = layout.parse_name(path.name)
    rollout_ids = [meta.id] if named is None else [meta.id, named.rollout_id]
    index = await home.index()
    forks = await index.forks_of(meta.id, rollout_ids)
    return Family(meta.parent_thread_id, meta.forked_from_id, forks, await index.children_of(home.path, meta.id))
