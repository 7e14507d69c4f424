"""Going back to the files as they were before a turn: the newest snapshot of a thread that was not gone back to yet.

The ledger says which snapshots a thread took (`snapshot` lines) and which it went back to (`undo` lines, with the
snapshot of what was there before; `redo` lines alike). So undoing twice goes back two turns, `redo` takes the last step
forward again, and what was taken forward can be undone again. What a turn changed afterwards ends all ways forward.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from commonplace.agent import undo as snapshots
from commonplace.agent.undo import Preview, Restored
from commonplace.errors import BadInput, CommonplaceError
from commonplace.protocol.rollout import OWN_TYPE, Line
from commonplace.rollout import archive, reader
from commonplace.rollout.chain import open_ledger
from commonplace.rollout.checkpoint import Tail
from commonplace.rollout.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.agent.session import Session
    from commonplace.state.home import Home


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
    taken = 0  # steps in the other direction that are met first; each stands for one of those that are looked for
    for own in _noted(newest_first):
        if own.kind == "snapshot" and redo:
            break
        if (own.kind == "undo") is not redo:
            taken += 1
        elif taken:
            taken -= 1
        elif own.incomplete:
            reason = f"There is no way back from the last turn: the folder was too large ({own.incomplete})."
            raise BadInput(reason, hint="Use your version control.")
        else:
            return own.id or own.redo
    raise _nothing(redo)


def _nothing(redo: bool) -> BadInput:
    what = "taken back" if redo else "undone"
    return BadInput(f"There is nothing to be {what}.", hint="Snapshots are taken before each turn of the agent.")


def _noted(lines: Iterable[Line]) -> Iterator[_Own]:
    """Yield what lines say of snapshots."""
    for line in lines:
        if line.type == OWN_TYPE:
            with contextlib.suppress(msgspec.DecodeError):
                own = msgspec.json.decode(line.payload, type=_Own)
                if own.kind in ("snapshot", "undo", "redo"):
                    yield own


def delete_files(home: Path, thread_id: str, files: list[Path]) -> None:
    """Remove a thread's files and the snapshots that they name; what cannot be dropped goes when it is old.

    Raises:
        ThreadBusy, LedgerError: the files cannot be removed; nothing was.
    """
    found: set[str] = set()
    for path in files if snapshots.listed(home) else ():
        with contextlib.suppress(CommonplaceError, OSError):
            lines = (record for record in reader.forward(path) if isinstance(record, Line))
            found |= {own.id or own.redo for own in _noted(lines)}
    archive.delete(home, thread_id, files)
    with contextlib.suppress(CommonplaceError, OSError):
        snapshots.drop(home, sorted(found))


async def undo(home: Home, path: Path, *, redo: bool = False) -> dict[str, Any]:
    """Go back one turn, or forward again, and note it in the thread's ledger."""
    snapshot = await anyio.to_thread.run_sync(_wanted, path, [home.path], redo)
    async with await Recorder.resume(path, home.recording()) as recorder:
        return await _go(home, recorder, snapshot, redo=redo)


async def undo_open(home: Home, session: Session, *, redo: bool = False) -> dict[str, Any]:
    """Do so in a thread that is open: its own recorder notes it (raises BadInput: a turn is running)."""
    recorder = session.ledger.recorder
    if session.turn is not None:
        raise BadInput("A turn is running.", hint="Wait for its end, or interrupt it.")
    if recorder is None or not recorder.path.exists():
        raise _nothing(redo)
    await recorder.flush()
    snapshot = await anyio.to_thread.run_sync(_wanted, recorder.path, [home.path], redo)
    return await _go(home, recorder, snapshot, redo=redo)


async def _go(home: Home, recorder: Recorder, snapshot: str, *, redo: bool) -> dict[str, Any]:
    done = await restore(home, snapshot)
    recorder.record(OWN_TYPE, {"kind": "redo" if redo else "undo", "snapshot": snapshot, "redo": done.redo})
    await recorder.end_turn()
    return {"thread_id": recorder.thread_id, **told(done)}


async def restore(home: Home, snapshot: str) -> Restored:
    """Put a working tree back to a snapshot (raises UndoError)."""
    now = home.now()
    return await anyio.to_thread.run_sync(lambda: snapshots.restore(home.path, snapshot, now))


async def preview(home: Home, path: Path, *, redo: bool = False) -> dict[str, Any]:
    """Return what going back would change; nothing is changed."""
    snapshot = await anyio.to_thread.run_sync(_wanted, path, [home.path], redo)
    found = await anyio.to_thread.run_sync(snapshots.diff, home.path, snapshot)
    return told(found)


def told(done: Restored | Preview) -> dict[str, Any]:
    """Return what changed, as JSON has it."""
    found: dict[str, Any] = msgspec.to_builtins(done)
    return {key: found[key] for key in ("snapshot", "tree", "changed", "removed", "recreated", "left_alone")}


def _wanted(path: Path, homes: list[Path], redo: bool) -> str:
    return wanted(Tail(open_ledger(path, homes)), redo=redo)
