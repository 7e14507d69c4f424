"""Restoring database rows from the memory's files: what each session taught, after the database was lost."""

from __future__ import annotations

import anyio.to_thread

from commonplace.memory.files import raw_memories
from commonplace.memory.files.raw_memories import RawMemory
from commonplace.state import outputs
from commonplace.state.database import Transaction
from commonplace.state.home import Home
from commonplace.state.outputs import Output


async def missing_outputs(home: Home) -> tuple[list[RawMemory], int]:
    """Return what the files hold and no row does, and how many rows there are."""
    stored = await anyio.to_thread.run_sync(raw_memories.read, home.path)
    database = await home.database()
    known = await database.read(lambda tx: {row["thread_id"] for row in tx.query("outputs.ids")})
    return [one for one in stored if one.thread_id not in known], len(known)


async def restore_outputs(home: Home) -> int:
    """Give a database that has no outputs at all those that the files hold; return how many."""
    missing, known = await missing_outputs(home)
    if not missing or known:
        return 0
    await store_outputs(home, missing)
    return len(missing)


async def store_outputs(home: Home, missing: list[RawMemory]) -> None:
    """Store what sessions taught, as the files have it."""

    def body(tx: Transaction) -> None:
        for one in missing:
            output = Output(one.raw_memory, one.rollout_summary, one.rollout_slug)
            outputs.put(tx, one.thread_id, one.updated_s, output, now=home.now_s())
        tx.execute("threads.restore_learned", home=home.key)

    await (await home.database()).write(body)
