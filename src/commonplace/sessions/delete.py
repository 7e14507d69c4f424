"""Deleting a thread: its files, its name, what it taught, and the payloads that nothing else refers to.

A thread whose file belongs to another program keeps its file; it is no longer listed or learned from. A tombstone keeps
another agent's session from coming back with the next import.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import anyio.from_thread
import anyio.to_thread

from commonplace.errors import ThreadInUse
from commonplace.protocol.ids import wire_time
from commonplace.rollout import archive, decisions, layout, sidechains, thread_names
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger
from commonplace.sessions import index
from commonplace.sessions.open_thread import open_head
from commonplace.sessions.resolve import SessionFile, resolve
from commonplace.state import outputs, spawn_edges
from commonplace.state.database import Transaction
from commonplace.state.home import Home
from commonplace.state.threads import ThreadIndex


class DeleteFiles(Protocol):
    """Removes a thread's files together with the snapshots of working trees that they name."""

    def __call__(self, home: Path, thread_id: str, files: list[Path]) -> None:
        """Remove them (raises ThreadBusy, LedgerError: nothing was removed)."""
        ...


async def delete(home: Home, thread: str, elsewhere: Path | None, delete_files: DeleteFiles) -> dict[str, Any]:
    """Delete a thread, and with an imported one its sub-agents; return what went.

    Raises:
        UnknownThread, AmbiguousThread: no single thread is meant.
        ForeignFile: the file belongs to another program and is not listed here.
        ThreadInUse: forks go on from it.
    """
    target = await resolve(home, thread, elsewhere)
    if not target.is_ours and await (await home.index()).row(home.path, target.path) is not None:
        return await _release(home, target)
    target.must_be_ours("deleted")
    ledger = await open_head(target)
    files = await anyio.to_thread.run_sync(archive.files_of, home.path, ledger.thread_id) or [target.path]
    await home.list_store()  # forks of it may be on other hosts
    await index.use(home, lambda threads: threads.refresh(home.path, complete=True))
    threads = await home.index()
    await _refuse_if_forked(threads, ledger.thread_id, files)
    gone: list[Path] = []
    if ledger.meta.imported is not None:
        await _write_tombstone(home, ledger.thread_id)
    children = {*await _agents_below(home, ledger.thread_id)}
    children.update(await anyio.to_thread.run_sync(_sub_agents, home, ledger))
    for child in sorted(children):  # they hold what the thread told them
        gone.extend(await _remove(home, child, None, delete_files))
    gone.extend(await _remove(home, ledger.thread_id, files, delete_files))
    blobs = BlobStore(home.path)

    def referenced() -> set[str]:  # asked while no writer can add a reference, of the files as they are then
        return anyio.from_thread.run(_referenced, home, threads, blobs)

    collected = await anyio.to_thread.run_sync(blobs.collect, referenced)
    return {"thread_id": ledger.thread_id, "deleted": [str(path) for path in gone], "blobs_removed": len(collected)}


async def _refuse_if_forked(threads: ThreadIndex, thread_id: str, files: list[Path]) -> None:
    rollouts = [named.rollout_id for path in files if (named := layout.parse_name(path.name))]
    if forks := await threads.forks_of(thread_id, rollouts):
        raise ThreadInUse(
            f"Thread {thread_id} is continued by {len(forks)} fork(s): {', '.join(forks[:5])}.",
            hint="Delete those first, or make copies of them: commonplace sessions fork ID --copy",
            forks=forks,
        )


async def _agents_below(home: Home, thread_id: str) -> set[str]:
    """Return the sub-agents of a thread that the index knows in our home, and those that they started."""
    database = await home.database()
    return await database.read(lambda tx: spawn_edges.below(tx, home.key, thread_id))


def _sub_agents(home: Home, ledger: Ledger) -> list[str]:
    """Return the threads of a thread's sub-agents in our home."""
    chains = sidechains.find(ledger, wire_time(home.now()))
    return [each.thread_id for each in chains if layout.is_under(str(Path(each.path).resolve()), home.folder)]


async def _remove(home: Home, thread_id: str, files: list[Path] | None, delete_files: DeleteFiles) -> list[Path]:
    """Remove a thread and what it taught; return the files that were its."""
    files = files or await anyio.to_thread.run_sync(archive.files_of, home.path, thread_id)
    await _forget_outputs(home, thread_id)
    await anyio.to_thread.run_sync(delete_files, home.path, thread_id, files)
    await anyio.to_thread.run_sync(thread_names.remove, home.path, thread_id)
    for path in files:
        await index.touch(home, path)
    return files


async def _release(home: Home, target: SessionFile) -> dict[str, Any]:
    """Stop listing a thread whose file is another program's, and forget what it taught."""
    thread_id = (await open_head(target)).thread_id
    await _forget_outputs(home, thread_id)
    await _write_tombstone(home, thread_id)
    await anyio.to_thread.run_sync(thread_names.remove, home.path, thread_id)
    await (await home.index()).release(home.path, target.path, "deleted")
    return {"thread_id": thread_id, "deleted": [], "kept": str(target.path)}


async def _write_tombstone(home: Home, thread_id: str) -> None:
    """Write a tombstone, so that another agent's session does not come back with the next import."""
    moment = wire_time(home.now())
    await anyio.to_thread.run_sync(lambda: decisions.append(home.path, "tombstone", moment, thread_id=thread_id))


async def _forget_outputs(home: Home, thread_id: str) -> None:
    """Forget what a thread taught, before the thread itself goes."""
    database = await home.database()

    def body(tx: Transaction) -> None:
        outputs.delete_thread(tx, thread_id, root=home.memory_key, now=home.now_s())
        spawn_edges.drop(tx, home.key, thread_id)

    await database.write(body)


async def _referenced(home: Home, threads: ThreadIndex, blobs: BlobStore) -> set[str]:
    """Return the payloads to keep: all of them, while some file of ours cannot tell what it refers to."""
    await threads.refresh(home.path, complete=True)
    known = await threads.stamps(home.path)
    here = await anyio.to_thread.run_sync(lambda: [*layout.walk(home.path.resolve())])
    if unread := [file.name for file in here if file.size and file.name not in known]:
        home.warn(f"No payloads were removed: {len(unread)} file(s) cannot be read, {unread[0]} among them.")
        return await anyio.to_thread.run_sync(blobs.names)
    return await threads.referenced_blobs()
