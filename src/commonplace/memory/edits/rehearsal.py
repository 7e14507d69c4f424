"""Rehearsal: the memory is copied to a folder that is thrown away, so that a change can be tried there first.

A copy holds all that the memory is made of besides rows: its files, its history and the decisions. Edits by hand that
no run has seen yet are notes in the copy, as they would be after the next run.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from commonplace.memory.edits import history, manual_edits
from commonplace.memory.store import MemoryStore
from commonplace.memory.workspace import layout
from commonplace.rollout import decisions
from commonplace.state import entries as mirror
from commonplace.state import outputs
from commonplace.state.database import Row, Transaction


class RehearsalRows(msgspec.Struct):
    """The rows that a memory is made of, and the state that its rows mirror."""

    rows: list[Row]
    mirrored: str | None


async def stored_rows(store: MemoryStore) -> RehearsalRows:
    """Return the rows that the next consolidation would take."""
    home, memory = store.home, store.home.settings.memory

    def body(tx: Transaction) -> RehearsalRows:
        rows = outputs.select(
            tx, home.sources_key, limit=memory.max_raw_memories, max_unused_days=memory.max_unused_days
        )
        return RehearsalRows(rows, mirror.mirrored_fingerprint(tx, home.memory_key))

    return await (await store.home.database()).read(body)


@contextmanager
def copied_home(store: MemoryStore) -> Generator[Path]:
    """Yield a copy of the home's memory, history and decisions; it is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="commonplace-rehearsal-") as folder:
        copy = Path(folder)
        root = copy / layout.FOLDER
        if store.root.is_dir():
            shutil.copytree(store.root, root, symlinks=True)
        for name in (history.FILE, decisions.FILE):
            if (store.home.path / name).is_file():
                shutil.copy(store.home.path / name, copy / name)
        layout.ensure(root)
        if (root / layout.GIT).is_dir():
            manual_edits.adopt(copy, root, store.home.now())
        yield copy
