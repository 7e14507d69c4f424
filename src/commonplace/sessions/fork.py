"""Making a fork: a new thread in our home, by reference or as a copy that stands alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec

from commonplace.protocol import rollout
from commonplace.protocol.ids import new_id, wire_time
from commonplace.rollout import blobs, layout
from commonplace.rollout import fork as forking
from commonplace.rollout.chain import Ledger, SkipLog, open_ledger
from commonplace.rollout.chain_blobs import ChainStore
from commonplace.rollout.fork import Cut
from commonplace.rollout.private_folders import make_private
from commonplace.rollout.recorder import Recorder, RecorderOptions
from commonplace.sessions import index
from commonplace.state.home import Home
from commonplace.version import __version__

ORIGINATOR = "commonplace"
_DROPPED_KEYS = frozenset(
    {
        "history_base",
        "forked_from_id",
        "forked_from_ordinal_exclusive",
        "parent_thread_id",
        "subagent_history_start_ordinal",
    }
)
"""What a parent's first line says about the parent alone."""


async def fork(
    ledger: Ledger,
    options: RecorderOptions,
    store: blobs.BlobStore,
    *,
    copy: bool,
    at: str | None,
    originator: str | None = None,
) -> tuple[str, Path]:
    """Make the fork; return its id and file.

    Raises:
        BadInput: there is no such turn.
        LedgerError: the parent cannot be read or the fork not written.
    """
    cut = await anyio.to_thread.run_sync(lambda: forking.after_turn(ledger, at) if at else forking.end_of(ledger))
    now = options.now()
    thread_id = new_id(now)
    path = layout.new_path(options.home, now, thread_id)
    meta = _meta(ledger, thread_id, wire_time(now), originator or ORIGINATOR)
    if copy:
        await anyio.to_thread.run_sync(_write_copy, ledger, cut, meta, path, store)
        return thread_id, path
    async with await Recorder.create(path, forking.reference_meta(meta, ledger, cut), options) as recorder:
        await recorder.persist()
        await recorder.end_turn()
    return thread_id, path


async def of_other_host(home: Home, path: Path) -> Path:
    """Make a fork by reference of a session that another host keeps in the store; return its file.

    Raises:
        LedgerError: the session cannot be read, or the fork not written.
    """
    ledger = await anyio.to_thread.run_sync(open_ledger, path, [home.path])
    store = ChainStore(blobs.BlobStore(home.path), ledger)
    _, own = await fork(ledger, home.recording(), store, copy=False, at=None)
    await index.touch(home, own, is_new=True)
    return own


def _meta(ledger: Ledger, thread_id: str, now: str, originator: str) -> dict[str, Any]:
    """Return the first line of a fork: the parent's settings under a new identity."""
    parent: dict[str, Any] = msgspec.json.decode(ledger.head.payload)
    own = {"session_id": thread_id, "id": thread_id, "forked_from_id": ledger.thread_id, "timestamp": now}
    kept = {key: value for key, value in parent.items() if key not in _DROPPED_KEYS and key not in own}
    kept.setdefault("cwd", ledger.meta.cwd)
    kept.setdefault("source", "cli")
    return {**own, **kept, "originator": originator, "cli_version": __version__}


def _write_copy(ledger: Ledger, cut: Cut, meta: dict[str, Any], path: Path, store: blobs.BlobStore) -> None:
    """Write every inherited line out, with nothing left outside of the file; it appears whole or not at all."""
    paginated = ledger.meta.history_mode == "paginated"
    meta = {**meta, "history_mode": ledger.meta.history_mode}
    make_private(path.parent)
    part = path.with_name(f".{path.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb", buffering=1024 * 1024) as file:
            first = rollout.encode("session_meta", meta, timestamp=meta["timestamp"], ordinal=0 if paginated else None)
            file.write(first)
            for number, line in enumerate(forking.copied_lines(ledger, cut, store, SkipLog()), 1):
                file.write(_copied(line, meta["timestamp"], number if paginated else None))
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


def _copied(line: rollout.Line, fallback_time: str, ordinal: int | None) -> bytes:
    return rollout.encode(
        line.type,
        line.payload,
        timestamp=line.timestamp or fallback_time,
        ordinal=ordinal,
        metadata=line.metadata if line.metadata else None,
        origin=line.source(),
    )
