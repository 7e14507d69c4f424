"""Going back to the files as they were before a turn: the newest snapshot of a thread that was not gone back to yet.

The ledger says which snapshots a thread took (`snapshot` lines) and which it went back to (`undo` lines, with the
snapshot of what was there before). So undoing twice goes back two turns, and `redo` takes the last step forward again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from commonplace.agent import undo
from commonplace.agent.undo import Preview, Restored
from commonplace.errors import BadInput
from commonplace.protocol.rollout import OWN_TYPE, Line
from commonplace.rollout.chain import open_ledger
from commonplace.rollout.checkpoint import Tail
from commonplace.rollout.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.runtime.book import Book


class _Own(msgspec.Struct):
    kind: str = ""
    id: str = ""
    snapshot: str = ""
    redo: str = ""
    incomplete: str = ""


def wanted(newest_first: Iterable[Line], *, redo: bool = False) -> str:
    """Return the snapshot to go to.

    Raises:
        BadInput: there is none.
    """
    undone: set[str] = set()
    for line in newest_first:
        if line.type != OWN_TYPE:
            continue
        try:
            own = msgspec.json.decode(line.payload, type=_Own)
        except msgspec.DecodeError:
            continue
        if own.kind == "undo":
            if redo and own.redo not in undone:
                return own.redo
            undone |= {own.snapshot, own.redo}
        elif own.kind == "redo":
            undone.add(own.snapshot)
            undone.discard(own.redo)
        elif own.kind == "snapshot" and not redo and own.id not in undone and not own.incomplete:
            return own.id
        elif own.kind == "snapshot" and redo:
            break
    what = "taken back" if redo else "undone"
    raise BadInput(f"There is nothing to be {what}.", hint="Snapshots are taken before each turn of the agent.")


async def undo_last(book: Book, path: Path, *, redo: bool = False) -> dict[str, Any]:
    """Go back one turn, or forward again, and note it in the thread's ledger."""
    snapshot = await anyio.to_thread.run_sync(_wanted, path, [book.home], redo)
    async with await Recorder.resume(path, book.sessions.options()) as recorder:
        done = await restore(book, snapshot)
        recorder.record(OWN_TYPE, {"kind": "redo" if redo else "undo", "snapshot": snapshot, "redo": done.redo})
        await recorder.end_turn()
    return {"thread_id": recorder.thread_id, **told(done)}


async def restore(book: Book, snapshot: str) -> Restored:
    """Put a working tree back to a snapshot (raises UndoError)."""
    now = book.settings.now()
    return await anyio.to_thread.run_sync(lambda: undo.restore(book.home, snapshot, now))


async def preview(book: Book, path: Path, *, redo: bool = False) -> dict[str, Any]:
    """Return what going back would change; nothing is changed."""
    snapshot = await anyio.to_thread.run_sync(_wanted, path, [book.home], redo)
    found = await anyio.to_thread.run_sync(undo.diff, book.home, snapshot)
    return told(found)


def told(done: Restored | Preview) -> dict[str, Any]:
    """Return what changed, as JSON has it."""
    found: dict[str, Any] = msgspec.to_builtins(done)
    return {key: found[key] for key in ("snapshot", "tree", "changed", "removed", "recreated", "left_alone")}


def _wanted(path: Path, homes: list[Path], redo: bool) -> str:
    return wanted(Tail(open_ledger(path, homes)), redo=redo)
