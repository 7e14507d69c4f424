"""From what a survey found to objects: only files that do not look as they did when they were last read are read.

`seen` remembers what every file looked like and which object its content became. A file counts as unchanged when it
looks the same in every respect; the time of its last change of any kind cannot be set by programs. A file that changed
in the same instant in which it was read could change once more and look the same, so such a file is not remembered (git
calls this racily clean). What was remembered counts only while its object is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from commonplace.agent.undo import reading
from commonplace.agent.undo.packs import PackWriter, object_id
from commonplace.agent.undo.store import Entry, Left, Store, missing, tree_data
from commonplace.agent.undo.survey import UNREADABLE, Folder, Look, Survey

if TYPE_CHECKING:
    from pygit2 import Odb

_SEEN: Final = "seen"
_SECOND: Final = 10**9
_MILLISECOND: Final = 10**6

Known = tuple[Look, bytes]
"""What a file looked like, and its object."""


class Seen(msgspec.Struct):
    """What files looked like when they were last read, by folder and name."""

    borrowed: bytes
    """What the folders of the user's objects looked like: unchanged, they still have all that they had."""
    folders: dict[bytes, dict[bytes, Known]]


def load(store: Store) -> Seen:
    """Return what is remembered; nothing if it cannot be read."""
    try:
        return msgspec.msgpack.decode((store.place / _SEEN).read_bytes(), type=Seen)
    except (OSError, msgspec.DecodeError):
        return Seen(b"", {})


def save(store: Store, seen: Seen) -> None:
    """Remember; without it the next snapshot reads everything again."""
    store.put(_SEEN, msgspec.msgpack.encode(seen))


def forget(store: Store, gone: set[bytes]) -> None:
    """Forget files whose contents are about to leave the store; what is remembered and not ours must be borrowed."""
    seen = load(store)
    kept = {
        path: {name: known for name, known in files.items() if known[1] not in gone}
        for path, files in seen.folders.items()
    }
    if kept != seen.folders:
        save(store, Seen(seen.borrowed, kept))


def instant(store: Store) -> int:
    """Return the time that the file system would give a change made now."""
    descriptor = os.open(store.place / "clock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.utime(descriptor)
        return os.fstat(descriptor).st_ctime_ns
    finally:
        os.close(descriptor)


def looks_of(folders: list[Path]) -> bytes:
    """Return what folders of objects look like; removing an object changes the folder that it was in."""
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
    """A tree's state as objects."""

    tree: bytes = b""
    mode: int = 0
    files: int = 0
    size: int = 0
    entries: dict[bytes, Entry] = {}
    """Everything by path; only where it was asked for."""
    looks: dict[bytes, Look] = {}
    left: list[Left] = []
    left_list: bytes = b""
    """The object that has the list of what is left out."""
    parts: list[bytes] = []
    incomplete: str = ""


class Capture:
    """Turns folders into objects; without a writer they are named but not stored."""

    def __init__(
        self, root: int, seen: Seen, own: set[bytes], odb: Odb, borrowed: list[Path], writer: PackWriter | None
    ) -> None:
        self._root = root
        self._seen = seen
        self._own = own
        self._odb = odb
        self._writer = writer
        self._borrows = bool(borrowed)
        self._look = looks_of(borrowed)
        self._is_steady = self._borrows and self._look == seen.borrowed
        self._now: dict[bytes, dict[bytes, Known]] = {}
        self.is_changed = self._look != seen.borrowed

    @property
    def seen(self) -> Seen:
        """What is to be remembered."""
        return Seen(self._look, self._now)

    def run(
        self, found: Survey, start: int, until: float, clock: Callable[[], float], *, bound: int, detailed: bool = False
    ) -> Captured:
        """Make objects of what a survey found at an instant of the file system."""
        out = Captured(entries={}, looks={}, left=found.left, parts=found.parts, incomplete=found.incomplete)
        trees: dict[bytes, tuple[int, bytes]] = {}
        if found.incomplete:
            self._now.update(self._seen.folders)
        for folder in reversed(found.folders):
            if not out.incomplete and clock() > until:
                out.incomplete = "time"
            if out.incomplete:  # what is remembered of the rest stays
                self._now[folder.path] = self._seen.folders.get(folder.path, {})
                continue
            entries = self._files(folder, start, out, bound, lambda: clock() > until)
            if detailed:
                out.looks[folder.path[:-1]] = folder.look
                out.looks.update((folder.path + name, look) for name, look in folder.files.items())
                out.entries.update((folder.path + name, Entry(mode, identity)) for name, mode, identity in entries)
                out.entries.update((path[:-1], Entry(trees[path][0])) for path in folder.folders)
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

    def _files(
        self, folder: Folder, start: int, out: Captured, bound: int, is_late: Callable[[], bool]
    ) -> list[tuple[bytes, int, bytes]]:
        known = self._seen.folders.get(folder.path, {})
        entries: list[tuple[bytes, int, bytes]] = []
        fresh: list[tuple[bytes, Look]] = []
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
            self._read(folder, fresh, start, out, bound, is_late, entries, now)
        self._now[folder.path] = now
        return entries

    def _read(
        self,
        folder: Folder,
        fresh: list[tuple[bytes, Look]],
        start: int,
        out: Captured,
        bound: int,
        is_late: Callable[[], bool],
        entries: list[tuple[bytes, int, bytes]],
        now: dict[bytes, Known],
    ) -> None:
        try:
            with reading.opened(self._root, folder.path) as descriptor:
                for name, expected in fresh:
                    if out.incomplete or is_late():
                        out.incomplete = "time"
                        return
                    try:
                        data, look, is_still = reading.read(descriptor, name, max(bound, expected[1]))
                    except FileNotFoundError:  # somebody removed it just now
                        continue
                    except OSError:
                        out.left.append(Left(folder.path + name, UNREADABLE, expected[1], expected[4], expected[2]))
                        continue
                    identity = self._store(data)
                    folder.files[name] = look
                    entries.append((name, look[0], identity))
                    out.files += 1
                    out.size += len(data)
                    if is_still and _is_settled(look[3], start):
                        now[name] = (look, identity)
        except OSError:  # the folder was replaced by something else meanwhile
            out.left.append(Left(folder.path, UNREADABLE, 0, 0, 0))

    def _store(self, data: bytes) -> bytes:
        identity = object_id("blob", data)
        if self._writer is not None and identity not in self._own and not self._has(identity):
            self._writer.add(identity, "blob", data)
            self._own.add(identity)
        return identity

    def _has(self, identity: bytes) -> bool:
        """Say whether an object that is not our own can be borrowed."""
        from pygit2 import Oid

        try:
            return self._borrows and self._odb.exists(Oid(raw=identity))
        except missing():  # what is damaged there is stored here
            return False


def _is_settled(changed: int, start: int) -> bool:
    """Say whether a change after the start of the survey would show; coarse clocks need a wider margin."""
    margin = 2 * _SECOND if changed % _SECOND == 0 else 20 * _MILLISECOND if changed % _MILLISECOND == 0 else 0
    return changed + margin < start
