"""Restore a snapshot: store the present state, compare, change what differs; or only say what would change.

The present state becomes a snapshot of its own before anything is changed, so a restore can itself be undone. That
snapshot holds every path that the older one holds, whatever ignore rules and bounds say now, so that nothing is
overwritten of which there is no copy. What is ignored is told by the `.gitignore` files of the older one.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.agent.undo.capture import Captured
from commonplace.agent.undo.restore_plan import RestorePlan, TreeState, effects, plan
from commonplace.agent.undo.restore_steps import PlanRunner
from commonplace.agent.undo.safe_open import open_folder
from commonplace.agent.undo.snapshots import OpenTree, TreeCapture, open_root, publish, resolve_tree
from commonplace.agent.undo.store import (
    FOLDER,
    SnapshotRecord,
    Store,
    entries_of,
    missing_errors,
    omissions_of,
    parse_id,
)
from commonplace.agent.undo.survey import UNREADABLE
from commonplace.agent.undo.values import Omission, Preview, Restored, SnapshotLimits, shown_path
from commonplace.agent.undo.worktree import find_working_tree
from commonplace.errors import DamagedSnapshot, IncompleteSnapshot, UndoError

if TYPE_CHECKING:
    from pygit2 import Odb

_PATIENT: Final = SnapshotLimits(seconds=900.0, files=4_000_000)
"""A person waits for a restore, and half a restore would be worse than none."""
_TRIES: Final = 20
"""How many levels of unreadable folders are made readable, one after the other."""
_SHOWN: Final = 5
"""How many names an error lists."""


def diff(
    home: Path, snapshot: str, *, limits: SnapshotLimits = _PATIENT, clock: Callable[[], float] = time.monotonic
) -> Preview:
    """Return what restoring a snapshot would do now; nothing is changed or stored.

    Raises:
        UnknownSnapshot: no snapshot has this id.
        IncompleteSnapshot: the snapshot is incomplete, or the tree exceeds the bounds.
        DamagedSnapshot: contents that would be needed are gone.
    """
    store, record, place = _open(home, snapshot)
    with _failures(home, place), store.lock(exclusive=False), open_root(place) as root:
        before = _state(store, place, snapshot, record)
        tree = OpenTree(store, place, root)
        look = TreeCapture(tree, limits, clock, before.entries.keys(), _ignore_files(tree, before))
        captured = look.compare()
        steps, now = _steps(place, before, captured)
        _check(look.odb, look.own, steps, snapshot)
    found = effects(steps, before, now)
    return Preview(
        snapshot=snapshot,
        tree=str(place),
        changed=_shown(found.changed),
        removed=_shown(found.removed),
        recreated=_shown(found.recreated),
        left_alone=_sorted(steps.left_alone),
    )


def restore(
    home: Path,
    snapshot: str,
    now: datetime,
    *,
    limits: SnapshotLimits = _PATIENT,
    clock: Callable[[], float] = time.monotonic,
) -> Restored:
    """Restore a snapshot, after storing the present state as a snapshot.

    Raises:
        UnknownSnapshot: no snapshot has this id.
        IncompleteSnapshot: the snapshot is incomplete, or the present state exceeds the bounds.
        DamagedSnapshot: contents that are needed are gone; nothing was changed.
        UndoError: the tree is gone, or the disk is full; a restore that stopped can be repeated.
    """
    store, record, place = _open(home, snapshot)
    with _failures(home, place), store.lock(exclusive=True), open_root(place) as root:
        before = _state(store, place, snapshot, record)
        captured, look = _keep(OpenTree(store, place, root), limits, clock, before)
        redo = publish(store, place, captured, now, "redo")
        steps, present = _steps(place, before, captured)
        _check(look.odb, look.own, steps, snapshot)
        odb = store.objects(look.borrowed)
        applied = PlanRunner(root, present, lambda identity: _content(odb, identity))
        applied.run(steps, captured.parts)
    found = effects(steps, before, present, applied.failed)
    failed = [Omission(shown_path(path), reason) for path, reason in applied.failed.items()]
    return Restored(
        snapshot=snapshot,
        tree=str(place),
        redo=redo.id,
        changed=_shown(found.changed),
        removed=_shown(found.removed),
        recreated=_shown(found.recreated),
        left_alone=_sorted([*steps.left_alone, *failed]),
    )


def _shown(paths: list[bytes]) -> tuple[str, ...]:
    return tuple(shown_path(path) for path in paths)


def _sorted(left: list[Omission]) -> tuple[Omission, ...]:
    return tuple(sorted(left, key=lambda one: one.path))


@contextmanager
def _failures(home: Path, place: Path):
    try:
        yield
    except OSError as error:
        raise UndoError(
            f"{place} could not be restored: {error.strerror or error}.",
            hint=f"Check the disk of the folder and of {home / FOLDER}, then try again; it goes on from there.",
            tree=str(place),
        ) from error


def _open(home: Path, snapshot: str) -> tuple[Store, SnapshotRecord, Path]:
    store = Store(home, parse_id(snapshot)[0])
    record = store.record(snapshot)
    if record.incomplete or not record.tree:
        raise IncompleteSnapshot(
            f"Snapshot {snapshot} is incomplete: it stopped at the bound on {record.incomplete or 'time'}.",
            hint="The tree was too large to be kept; choose an older or newer snapshot, or go back with git.",
            snapshot=snapshot,
        )
    return store, record, resolve_tree(store.tree())


def _state(store: Store, place: Path, snapshot: str, record: SnapshotRecord) -> TreeState:
    odb = store.objects(find_working_tree(place).objects())
    try:
        return TreeState(entries_of(odb, record.tree), omissions_of(odb, record), record.mode)
    except missing_errors() as error:
        raise DamagedSnapshot(
            f"Snapshot {snapshot} cannot be read.", hint="Choose another one.", snapshot=snapshot
        ) from error


def _keep(
    tree: OpenTree, limits: SnapshotLimits, clock: Callable[[], float], before: TreeState
) -> tuple[Captured, TreeCapture]:
    """Store the present state, after making readable what the snapshot has and a person made unreadable."""
    rules = _ignore_files(tree, before)
    for tries in range(_TRIES):
        look = TreeCapture(tree, limits, clock, before.entries.keys(), rules)
        captured = look.store(detailed=True)
        closed = [one.path.rstrip(b"/") for one in captured.left if one.reason == UNREADABLE]
        opened_now = [_make_readable(tree.root, path) for path in closed if path in before.entries]
        if not any(opened_now) or tries == _TRIES - 1:
            return captured, look
    raise AssertionError("the last try returns")


def _ignore_files(tree: OpenTree, before: TreeState) -> dict[bytes, bytes]:
    """Return the `.gitignore` files of the snapshot: one that came later must not hide what came with it."""
    odb = tree.store.objects(find_working_tree(tree.place).objects())
    files = {
        path: entry.object
        for path, entry in before.entries.items()
        if path.rpartition(b"/")[2] == b".gitignore" and stat.S_ISREG(entry.mode)
    }
    return {path: _content(odb, identity) for path, identity in files.items()}


def _make_readable(root: int, path: bytes) -> bool:
    """Let the owner read a path that the restore changes anyway; return whether its permissions were changed."""
    above, _, name = path.rpartition(b"/")
    try:
        with open_folder(root, above) as folder:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
            needed = 0o700 if stat.S_ISDIR(about.st_mode) else 0o400
            if about.st_uid != os.geteuid() or about.st_mode & needed == needed or stat.S_ISLNK(about.st_mode):
                return False
            mode = stat.S_IMODE(about.st_mode) | needed
            if not hasattr(os, "O_PATH"):
                os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
                return True
            # Linux cannot do that; through a descriptor that only names the file no link can be swapped in.
            handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                is_same = os.path.samestat(os.fstat(handle), about)
                if is_same:
                    Path(f"/proc/self/fd/{handle}").chmod(mode)
                return is_same
            finally:
                os.close(handle)
    except PermissionError:  # a folder above is closed too
        return bool(above) and _make_readable(root, above)
    except OSError:
        return False


def _steps(place: Path, before: TreeState, captured: Captured) -> tuple[RestorePlan, TreeState]:
    if captured.incomplete:
        raise IncompleteSnapshot(
            f"What is in {place} now cannot be kept within the bound on {captured.incomplete}; nothing was changed.",
            hint="Allow more, or remove what need not be kept.",
            tree=str(place),
        )
    now = TreeState(captured.entries, captured.left, captured.mode, captured.looks)
    return plan(before, now), now


def _check(odb: Odb, own: set[bytes], steps: RestorePlan, snapshot: str) -> None:
    """Raise DamagedSnapshot if an object is missing that the steps need; nothing was changed yet."""
    from pygit2 import Oid

    lost = [path for path, entry in steps.write if entry.object not in own and not odb.exists(Oid(raw=entry.object))]
    if lost:
        names = [shown_path(path) for path in lost]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise DamagedSnapshot(
            f"Snapshot {snapshot} has lost the contents of {', '.join(names[:_SHOWN])}{more}; nothing was changed.",
            hint="They were borrowed from the repository's own objects, which were removed since.",
            snapshot=snapshot,
            lost=names,
        )


def _content(odb: Odb, identity: bytes) -> bytes:
    try:
        return odb.read(identity.hex())[1]
    except missing_errors() as error:
        raise OSError(f"its content {identity.hex()} is damaged") from error
