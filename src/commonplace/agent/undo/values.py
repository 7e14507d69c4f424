"""The values of undo: bounds, snapshots, omissions, and the results of a restore.

Paths in these values are for people and JSON: relative to the root of the tree, with `/`, folders with a `/` at the
end, and bytes that are not UTF-8 replaced. The store keeps the exact bytes.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

_SHOWN: Final = 20
"""How many omitted paths the JSON form of a snapshot names; it counts them all."""

Kind = Literal["turn", "redo"]
"""Whether a snapshot was taken before a turn or before a restore."""


class SnapshotLimits(msgspec.Struct, frozen=True, kw_only=True):
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
    """Bytes on disk of all snapshots of one tree; the oldest are removed first, the newest always stays."""


class Omission(msgspec.Struct, frozen=True):
    """A path that a snapshot does not hold, or that a restore did not change, and why."""

    path: str
    reason: str
    bytes: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A stored state of a working tree that can be restored."""

    id: str
    tree: str
    time: datetime
    kind: Kind
    files: int
    bytes: int
    left_out: tuple[Omission, ...] = ()
    incomplete: str = ""
    """The bound that it exceeded; an incomplete snapshot cannot be restored."""

    def payload(self) -> dict[str, Any]:
        """Return the small JSON form that a session writes into its ledger."""
        counts = Counter(one.reason for one in self.left_out)
        shown_path: list[dict[str, Any]] = [msgspec.to_builtins(one) for one in self.left_out[:_SHOWN]]
        return {
            "kind": "snapshot",
            "id": self.id,
            "tree": self.tree.encode("utf-8", "replace").decode(),
            "time": json_time(self.time),
            "taken": self.kind,
            "files": self.files,
            "bytes": self.bytes,
            "left_out": {"count": len(self.left_out), "reasons": dict(sorted(counts.items())), "first": shown_path},
            "incomplete": self.incomplete,
        }


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore would do now."""

    snapshot: str
    tree: str
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    left_alone: tuple[Omission, ...] = ()


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did."""

    snapshot: str
    tree: str
    redo: str
    """The snapshot of the state before; restoring it undoes the restore."""
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    left_alone: tuple[Omission, ...] = ()
    """Paths that differ from the snapshot and were not changed, and why."""


class Pruned(msgspec.Struct, frozen=True):
    """What pruning removed."""

    snapshots: tuple[str, ...] = ()
    bytes: int = 0


def json_time(time: datetime) -> str:
    """Return a time as JSON has it: UTC, ISO-8601, with `Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def shown_path(path: bytes) -> str:
    """Return a path as people and JSON see it."""
    return path.decode("utf-8", "replace")
