"""Turn surveyed files into objects; only files whose status changed since they were last read are read.

The file `seen` keeps the status (mode, size, times, inode) of every file and the object of its content. A file counts
as unchanged when its status is the same in every respect; programs cannot set its ctime. A file that changed in the
same instant in which it was read could change once more with the same status, so such a file is not kept in `seen` (git
calls this racily clean). An entry counts only while its object exists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from commonplace.agent.undo import safe_open
from commonplace.agent.undo.packs import PackWriter, object_id
from commonplace.agent.undo.store import Store, StoredOmission, TreeEntry, missing_errors, tree_data
from commonplace.agent.undo.survey import UNREADABLE, FileLook, SurveyedFolder, TreeSurvey

if TYPE_CHECKING:
    from pygit2 import Odb

_SEEN: Final = "seen"
_SECOND: Final = 10**9
_MILLISECOND: Final = 10**6

SeenFile = tuple[FileLook, bytes]
"""The status of a file, and its object."""


class SeenFiles(msgspec.Struct):
    """The status of files when they were last read, by folder and name."""

    borrowed: bytes
    """The status of the folders of the user's objects: while it is the same, no object was removed."""
    folders: dict[bytes, dict[bytes, SeenFile]]


def load_seen(store: Store) -> SeenFiles:
    """Return the files that were seen; none if the file cannot be read."""
    try:
        return msgspec.msgpack.decode((store.place / _SEEN).read_bytes(), type=SeenFiles)
    except (OSError, msgspec.DecodeError):
        return SeenFiles(b"", {})


def save_seen(store: Store, seen: SeenFiles) -> None:
    """Store the files that were seen; without them the next snapshot reads everything again."""
    store.put(_SEEN, msgspec.msgpack.encode(seen))


def forget_seen(store: Store, gone: set[bytes]) -> None:
    """Forget files whose contents are about to leave the store: other objects in `seen` must be borrowed."""
    seen = load_seen(store)
    kept = {
        path: {name: known for name, known in files.items() if known[1] not in gone}
        for path, files in seen.folders.items()
    }
    if kept != seen.folders:
        save_seen(store, SeenFiles(seen.borrowed, kept))


def file_system_time(store: Store) -> int:
    """Return the time that the file system would give a change made now."""
    descriptor = os.open(store.place / "clock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.utime(descriptor)
        return os.fstat(descriptor).st_ctime_ns
    finally:
        os.close(descriptor)


def object_folder_looks(folders: list[Path]) -> bytes:
    """Return the status of folders of objects; removing an object changes the status of its folder."""
    looks: list[tuple[int, int]] = []
    for folder in folders:
        for name in ("", "pack", *(f"{number:02x}" for number in range(256))):
            try:
                about = os.stat(folder / name)
                looks.append((about.st_ino, about.st_mtime_ns))
            except OSError:
                looks.append((0, 0))
    return msgspec.msgpack.encode(looks) if folders else b""


class Captured(msgspec.Struct):
    """The state of a tree as objects."""

    tree: bytes = b""
    mode: int = 0
    files: int = 0
    size: int = 0
    entries: dict[bytes, TreeEntry] = {}
    """Everything by path; filled only for a restore."""
    looks: dict[bytes, FileLook] = {}
    left: list[StoredOmission] = []
    left_list: bytes = b""
    """The object with the list of omissions."""
    parts: list[bytes] = []
    incomplete: str = ""


class KnownObjects(NamedTuple):
    """The objects that need not be stored again."""

    own: set[bytes]
    odb: Odb
    borrowed: list[Path]
    """The folders of the user's own objects."""


class ReadBounds(NamedTuple):
    """How far files are read."""

    start: int
    """The file system's time when the survey began."""
    most_bytes: int
    is_late: Callable[[], bool]


class Capture:
    """Turns folders into objects; without a writer their ids are computed but nothing is stored."""

    def __init__(self, root: int, seen: SeenFiles, known: KnownObjects, writer: PackWriter | None) -> None:
        self._root = root
        self._seen = seen
        self._own = known.own
        self._odb = known.odb
        self._writer = writer
        self._borrows = bool(known.borrowed)
        self._look = object_folder_looks(known.borrowed)
        self._is_steady = self._borrows and self._look == seen.borrowed
        self._now: dict[bytes, dict[bytes, SeenFile]] = {}
        self.is_changed = self._look != seen.borrowed

    @property
    def seen(self) -> SeenFiles:
        """The files to be kept in `seen`."""
        return SeenFiles(self._look, self._now)

    def run(self, found: TreeSurvey, bounds: ReadBounds, *, detailed: bool = False) -> Captured:
        """Turn a survey into objects."""
        out = Captured(entries={}, looks={}, left=found.left, parts=found.parts, incomplete=found.incomplete)
        trees: dict[bytes, tuple[int, bytes]] = {}
        if found.incomplete:
            self._now.update(self._seen.folders)
        for folder in reversed(found.folders):
            if not out.incomplete and bounds.is_late():
                out.incomplete = "time"
            if out.incomplete:  # what is remembered of the rest stays
                self._now[folder.path] = self._seen.folders.get(folder.path, {})
                continue
            entries = self._files(folder, bounds, out)
            if detailed:
                out.looks[folder.path[:-1]] = folder.look
                out.looks.update((folder.path + name, look) for name, look in folder.files.items())
                out.entries.update((folder.path + name, TreeEntry(mode, identity)) for name, mode, identity in entries)
                out.entries.update((path[:-1], TreeEntry(trees[path][0])) for path in folder.folders)
            entries += [(path[len(folder.path) : -1], *trees[path]) for path in folder.folders]
            data = tree_data(entries)
            identity = object_id("tree", data)
            if self._writer is not None and identity not in self._own:
                self._writer.add(identity, "tree", data)
                self._own.add(identity)
            trees[folder.path] = (folder.look[0], identity)
        if not out.incomplete:
            out.mode, out.tree = trees[b""]
        self.is_changed = self.is_changed or len(self._now) != len(self._seen.folders)
        return out

    def _files(self, folder: SurveyedFolder, bounds: ReadBounds, out: Captured) -> list[tuple[bytes, int, bytes]]:
        known = self._seen.folders.get(folder.path, {})
        entries: list[tuple[bytes, int, bytes]] = []
        fresh: list[tuple[bytes, FileLook]] = []
        own, is_steady = self._own, self._is_steady
        for name, look in folder.files.items():
            before = known.get(name)
            if before is not None and before[0] == look and (before[1] in own or is_steady or self._has(before[1])):
                entries.append((name, look[0], before[1]))
                out.size += look[1]
            else:
                fresh.append((name, look))
        out.files += len(entries)
        if not fresh and len(entries) == len(known):
            self._now[folder.path] = known
            return entries
        self.is_changed = True
        now = {name: known[name] for name, _, _ in entries}
        if fresh:
            for name, look, identity, is_settled in self._read(folder, fresh, bounds, out):
                entries.append((name, look[0], identity))
                if is_settled:
                    now[name] = (look, identity)
        self._now[folder.path] = now
        return entries

    def _read(
        self,
        folder: SurveyedFolder,
        fresh: list[tuple[bytes, FileLook]],
        bounds: ReadBounds,
        out: Captured,
    ) -> Iterator[tuple[bytes, FileLook, bytes, bool]]:
        """Store files and yield each with its id, and whether it will be known by its look the next time."""
        try:
            with safe_open.open_folder(self._root, folder.path) as descriptor:
                for name, expected in fresh:
                    most = max(bounds.most_bytes, expected[1])
                    if out.incomplete or bounds.is_late():
                        out.incomplete = "time"
                        return
                    try:
                        data, look, is_still = safe_open.read_file(descriptor, name, most)
                    except FileNotFoundError:  # somebody removed it just now
                        continue
                    except OSError:
                        out.left.append(
                            StoredOmission(folder.path + name, UNREADABLE, expected[1], expected[4], expected[2])
                        )
                        continue
                    identity = self._store(data)
                    folder.files[name] = look
                    out.files += 1
                    out.size += len(data)
                    yield name, look, identity, is_still and _is_settled(look[3], bounds.start)
        except OSError:  # the folder was replaced by something else meanwhile
            out.left.append(StoredOmission(folder.path, UNREADABLE, 0, 0, 0))

    def _store(self, data: bytes) -> bytes:
        identity = object_id("blob", data)
        if self._writer is not None and identity not in self._own and not self._has(identity):
            self._writer.add(identity, "blob", data)
            self._own.add(identity)
        return identity

    def _has(self, identity: bytes) -> bool:
        """Return whether the user's repository has an object."""
        from pygit2 import Oid

        try:
            return self._borrows and self._odb.exists(Oid(raw=identity))
        except missing_errors():  # what is damaged there is stored here
            return False


def _is_settled(changed: int, start: int) -> bool:
    """Return whether a later change would have another ctime; coarse clocks need a wider margin."""
    margin = 2 * _SECOND if changed % _SECOND == 0 else 20 * _MILLISECOND if changed % _MILLISECOND == 0 else 0
    return changed + margin < start
