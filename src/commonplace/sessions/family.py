"""The family of a thread: what it was forked from, what was forked from it, and its sub-agents."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import msgspec

from commonplace.rollout import chain, layout, sidechains
from commonplace.rollout.chain import Ledger, LedgerPart
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
    """Return the family of the thread in a file (raises NotASession, LedgerError)."""

    def read() -> tuple[Ledger, list[str]]:
        head, meta = chain.read_head(path)
        ledger = Ledger(path, meta, head, (LedgerPart(path, None),))
        return ledger, [each.thread_id for each in sidechains.find(ledger, None)]

    ledger, inside = await anyio.to_thread.run_sync(read)
    named = layout.parse_name(path.name)
    rollout_ids = [ledger.thread_id] if named is None else [ledger.thread_id, named.rollout_id]
    forks = await (await home.index()).forks_of(ledger.thread_id, rollout_ids)
    return Family(ledger.meta.parent_thread_id, ledger.meta.forked_from_id, forks, inside)
