"""Take a snapshot (survey, capture, publish), and list the snapshots that exist."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Set
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from commonplace.agent.undo import capture, survey, worktree
from commonplace.agent.undo.capture import Capture, Captured, KnownObjects, ReadBounds
from commonplace.agent.undo.packs import PackWriter, object_id
from commonplace.agent.undo.retention import is_due, sweep
from commonplace.agent.undo.store import FOLDER, SnapshotRecord, Store, key_of
from commonplace.agent.undo.values import Kind, Omission, Snapshot, SnapshotLimits, shown_path
from commonplace.errors import UndoError

DEFAULTS: Final = SnapshotLimits()


def take(
    home: Path,
    tree: Path,
    now: datetime,
    *,
    limits: SnapshotLimits = DEFAULTS,
    clock: Callable[[], float] = time.monotonic,
) -> Snapshot:
    """Store the state of a working tree; a tree that exceeds a bound on time or number gives an incomplete snapshot.

    Raises:
        UndoError: the tree does not exist, or the store cannot be written. The tree itself is never changed.
    """
    place = resolve_tree(tree)
    store = Store(home, key_of(place))
    try:
        with store.lock(exclusive=True), open_root(place) as root:
            store.prepare(place)
            captured = TreeCapture(OpenTree(store, place, root), limits, clock).store()
            snapshot = publish(store, place, captured, now, "turn")
            if is_due(store, now, limits):
                sweep(store, now, limits)
    except OSError as error:
        raise UndoError(
            f"The snapshot of {place} could not be taken: {error.strerror or error}.",
            hint=f"Check that {home / FOLDER} can be written and that its disk has room; this turn cannot be undone.",
            tree=str(place),
        ) from error
    return snapshot


def listed(home: Path, tree: Path | None = None) -> list[Snapshot]:
    """Return the snapshots of one tree or of all, newest first, without their omissions."""
    found: list[Snapshot] = []
    for store in stores(home) if tree is None else [Store(home, key_of(tree.resolve()))]:
        try:
            place = store.tree()
        except OSError:
            continue
        found += [_snapshot(snapshot, place, record, ()) for snapshot, record in store.records()]
    return sorted(found, key=lambda one: one.time, reverse=True)


def stores(home: Path) -> list[Store]:
    """Return the stores of all trees."""
    try:
        return [Store(home, name) for name in sorted(os.listdir(home / FOLDER))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def resolve_tree(tree: Path) -> Path:
    """Return the real path of a tree.

    Raises:
        UndoError: there is no such folder.
    """
    try:
        place = tree.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise _no_folder(tree) from error
    if not place.is_dir():
        raise _no_folder(tree)
    return place


def _no_folder(tree: Path) -> UndoError:
    return UndoError(f"There is no folder {tree}.", hint="Undo needs the working folder that was used.", tree=str(tree))


@contextmanager
def open_root(place: Path) -> Generator[int]:
    """Open the top folder of a resolved tree."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class OpenTree(NamedTuple):
    """A working tree that is open, and the store of its snapshots."""

    store: Store
    place: Path
    root: int
    """The descriptor of its top folder."""


class TreeCapture:
    """Captures the present state of a tree; the caller holds the store's lock."""

    def __init__(
        self,
        tree: OpenTree,
        limits: SnapshotLimits,
        clock: Callable[[], float],
        wanted: Set[bytes] = frozenset(),
        rules: Mapping[bytes, bytes] | None = None,
    ) -> None:
        store = tree.store
        self._store = store
        self._root = tree.root
        self._limits = limits
        self._clock = clock
        self._wanted = wanted
        self._rules = rules
        self._tree = worktree.find_working_tree(tree.place)
        self.borrowed = self._tree.objects()
        self.own = store.own_ids()
        self.odb = store.objects(self.borrowed)

    def store(self, *, detailed: bool = False) -> Captured:
        """Store the objects of the state; it becomes a snapshot when it is published."""
        writer = PackWriter(self._store.packs)
        try:
            captured, seen = self._run(writer, detailed=detailed)
            self._leave_list(captured, writer)
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
        if seen is not None:
            capture.save_seen(self._store, seen)
        return captured

    def compare(self) -> Captured:
        """Compute the ids of the state's objects without storing anything."""
        return self._run(None, detailed=True)[0]

    def _run(self, writer: PackWriter | None, *, detailed: bool) -> tuple[Captured, capture.SeenFiles | None]:
        until = self._clock() + self._limits.seconds
        # Without a writer `seen` is not stored, so it does not matter which files have settled.
        start = capture.file_system_time(self._store) if writer is not None else 0
        about = self._store.home.stat()
        exceptions = survey.Exceptions(self._wanted, (about.st_dev, about.st_ino), self._rules)
        found = survey.survey(self._root, self._tree, self._limits, self._clock, exceptions)
        known = KnownObjects(self.own, self.odb, self.borrowed)
        one = Capture(self._root, capture.load_seen(self._store), known, writer)
        bounds = ReadBounds(start, self._limits.file_bytes, lambda: self._clock() > until)
        captured = one.run(found, bounds, detailed=detailed)
        return captured, one.seen if one.is_changed else None

    def _leave_list(self, captured: Captured, writer: PackWriter) -> None:
        captured.left.sort(key=lambda one: one.path)
        data = msgspec.msgpack.encode(captured.left)
        captured.left_list = object_id("blob", data)
        if captured.left_list not in self.own:
            writer.add(captured.left_list, "blob", data)
            self.own.add(captured.left_list)


def publish(store: Store, place: Path, captured: Captured, now: datetime, kind: Kind) -> Snapshot:
    """Make a snapshot of a state whose objects are stored."""
    record = SnapshotRecord(
        number=store.next_number(),
        time=now,
        kind=kind,
        files=captured.files,
        bytes=captured.size,
        mode=captured.mode,
        tree=captured.tree.hex(),
        left_out=captured.left_list.hex(),
        incomplete=captured.incomplete,
    )
    own = (b".git", b".git/")  # the repository itself is never part of a snapshot
    left = tuple(Omission(shown_path(one.path), one.reason, one.size) for one in captured.left if one.path not in own)
    return _snapshot(store.publish(record), place, record, left)


def _snapshot(identity: str, place: Path, record: SnapshotRecord, left: tuple[Omission, ...]) -> Snapshot:
    return Snapshot(
        id=identity,
        tree=str(place),
        time=record.time,
        kind=record.kind,
        files=record.files,
        bytes=record.bytes,
        left_out=left,
        incomplete=record.incomplete,
    )
