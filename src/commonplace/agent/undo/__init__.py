"""Undo: snapshots of the working tree, taken before turns, and restored on request.

    snapshot = take(home, tree, now)            # before a turn; `snapshot.payload()` goes into the ledger
    preview = diff(home, snapshot.id)           # what a restore would do; changes nothing
    restored = restore(home, snapshot.id, now)  # `restored.redo` is the snapshot that takes the restore back

    values          the results: snapshots, previews, bounds
    snapshots       take a snapshot, list snapshots
    survey          which files belong to a snapshot, and which are left out and why
    worktree        what the user's repository says: tracked files, ignore rules, objects
    gitignore       the ignore rules of Git, on bytes (pure)
    capture         files → objects; only files that changed are read
    store, packs    the store of one tree, and its pack files
    restoration     restore a snapshot, or say what that would do
    restore_plan    the steps of a restore (pure)
    restore_steps   the steps, carried out
    safe_open       files below a folder, opened without following links
    retention       old snapshots and unused objects are removed

A snapshot holds every file, link and folder of the tree, as bytes and permissions, whether git tracks it or not. Files
that it does not hold (ignored, huge, unreadable, other repositories) are listed in it, and a restore never removes or
overwrites them. A restore first stores what is there now, and removes and overwrites only what it has stored.

Nothing is ever written inside the user's `.git`, and no program, hook or filter is run. The functions are synchronous
and take a lock per tree, so that sessions in the same tree wait for each other; run them in a thread.
"""

from __future__ import annotations

from commonplace.agent.undo.restoration import diff, restore
from commonplace.agent.undo.retention import drop
from commonplace.agent.undo.snapshots import listed, take
from commonplace.agent.undo.values import Omission, Preview, Pruned, Restored, Snapshot, SnapshotLimits
from commonplace.agent.undo.worktree import root_of

__all__ = [
    "Omission",
    "Preview",
    "Pruned",
    "Restored",
    "Snapshot",
    "SnapshotLimits",
    "diff",
    "drop",
    "listed",
    "restore",
    "root_of",
    "take",
]
