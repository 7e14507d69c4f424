"""What undo speaks of: bounds, snapshots, what they leave out, and what going back did.

Paths in these values are for people and JSON: from the root of the tree, with `/`, folders with one at the end, and
what is not UTF-8 in a name replaced. The store keeps the exact bytes.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

_SHOWN: Final = 20
"""How many left-out paths the JSON form of a snapshot names; it counts them all."""

Kind = Literal["turn", "redo"]
"""Whether a snapshot was taken before a turn or before a restore."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much undo may cost."""

    file_bytes: int = 32 * 2**20
    """A larger file is left out."""
    total_bytes: int = 2 * 2**30
    """All files of one snapshot together; beyond it the largest are left out."""
    files: int = 400_000
    """With more files and folders than this the snapshot is incomplete."""
    seconds: float = 60.0
    """A snapshot that takes longer is incomplete; what it stored makes the next one faster."""
    snapshots: int = 200
    """Snapshots kept per tree."""
    days: int = 30
    """How long a snapshot is kept."""
    store_bytes: int = 4 * 2**30
    """What all snapshots of one tree may take on disk; the oldest go first, the newest always stays."""


class LeftOut(msgspec.Struct, frozen=True):
    """Something that a snapshot does not hold, or that a restore did not touch, and why."""

    path: str
    reason: str
    bytes: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a working tree that can be gone back to."""

    id: str
    tree: str
    time: datetime
    kind: Kind
    files: int
    bytes: int
    left_out: tuple[LeftOut, ...] = ()
    incomplete: str = ""
    """Which bound it stopped at; then it cannot be restored."""

    def payload(self) -> dict[str, Any]:
        """Return the small JSON form that a session writes into its ledger."""
        counts = Counter(one.reason for one in self.left_out)
        shown: list[dict[str, Any]] = [msgspec.to_builtins(one) for one in self.left_out[:_SHOWN]]
        return {
            "kind": "snapshot",
            "id": self.id,
            "tree": self.tree.encode("utf-8", "replace").decode(),
            "time": instant(self.time),
            "taken": self.kind,
            "files": self.files,
            "bytes": self.bytes,
            "left_out": {"count": len(self.left_out), "reasons": dict(sorted(counts.items())), "first": shown},
            "incomplete": self.incomplete,
        }


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore would do now."""

    snapshot: str
    tree: str
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    left_alone: tuple[LeftOut, ...] = ()


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did."""

    snapshot: str
    tree: str
    redo: str
    """The snapshot of what was there before; restoring it takes the restore back."""
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    left_alone: tuple[LeftOut, ...] = ()
    """What the restore did not touch although it is not as it was, and why."""


class Pruned(msgspec.Struct, frozen=True):
    """What pruning removed."""

    snapshots: tuple[str, ...] = ()
    bytes: int = 0


def instant(time: datetime) -> str:
    """Return a time as JSON has it: UTC, ISO-8601, with `Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def shown(path: bytes) -> str:
    """Return a path as people and JSON see it."""
    return path.decode("utf-8", "replace")
