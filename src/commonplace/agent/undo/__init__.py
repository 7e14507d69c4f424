"""Undo: the working tree as it was before a turn, and the way back.

    snapshot = take(home, tree, now)            # before each turn; `snapshot.payload()` goes into the ledger
    preview = diff(home, snapshot.id)           # what going back would do; changes nothing
    restored = restore(home, snapshot.id, now)  # goes back; `restored.redo` is the way forward again

A snapshot holds every file, link and folder of the tree, as bytes and permissions, whether git tracks it or not. What
it does not hold (ignored, huge, unreadable, other repositories) it lists, and a restore never removes or overwrites any
of that. A restore first keeps what is there now, and removes and overwrites only what it has kept.

Nothing is ever written inside the user's `.git`, and no program, hook or filter is run. The functions are synchronous
and take a lock per tree, so that sessions in the same tree take turns; run them in a thread.
"""

from __future__ import annotations

from commonplace.agent.undo.pruning import drop, prune
from commonplace.agent.undo.restoring import diff, restore
from commonplace.agent.undo.taking import listed, take
from commonplace.agent.undo.values import (
    LeftOut,
    Limits,
    Preview,
    Pruned,
    Restored,
    Snapshot,
)
from commonplace.agent.undo.worktree import root_of

__all__ = [
    "LeftOut",
    "Limits",
    "Preview",
    "Pruned",
    "Restored",
    "Snapshot",
    "diff",
    "drop",
    "listed",
    "prune",
    "restore",
    "root_of",
    "take",
]
