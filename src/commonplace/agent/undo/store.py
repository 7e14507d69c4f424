"""The store of one working tree: `home/snapshots/<key>`, a bare git repository of our own.

    HEAD, config, refs/, objects/pack/    contents and folders, as git's blobs and trees
    records/<number>-<digest>.json        the snapshots; a snapshot exists when its record does
    seen                                  the status of files when they were last read (derived)
    tree                                  the working tree's path

Trees hold full permissions where git keeps one bit, and empty folders; git can read them nevertheless. Objects of the
user's own repository are borrowed and not stored again. Everything that changes a store holds its lock; records are
written last and removed first, so that a crash leaves objects without a record, never a record without its objects.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from commonplace.agent.undo import packs
from commonplace.agent.undo.values import Kind
from commonplace.errors import UnknownSnapshot
from commonplace.patterns import regex
from commonplace.rollout import locks, private_folders

if TYPE_CHECKING:
    from pygit2 import Odb

FOLDER: Final = "snapshots"
_ID: Final = regex(r"([0-9a-f]{24})-([0-9]{8}-[0-9a-f]{12})")
_CONFIG: Final = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"
"""No git reference names our objects, so git must not collect garbage here."""


class StoredOmission(msgspec.Struct, frozen=True, array_like=True):
    """A path that a snapshot does not hold; inode and time recognise the file under another name."""

    path: bytes
    reason: str
    size: int
    inode: int
    modified: int


class SnapshotRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as it is stored."""

    number: int
    time: datetime
    kind: Kind
    files: int
    bytes: int
    mode: int = 0
    """The permissions of the top folder."""
    tree: str = ""
    left_out: str = ""
    incomplete: str = ""

    @property
    def name(self) -> str:
        """The file name of the record; no other snapshot ever has the same."""
        digest = hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]
        return f"{self.number:08d}-{digest}"


class TreeEntry(msgspec.Struct, frozen=True):
    """The file, link or folder at a path: type and permissions, and the object of its content (none for a folder)."""

    mode: int
    object: bytes = b""


def key_of(tree: Path) -> str:
    """Return the name of a resolved tree's store."""
    return hashlib.sha256(os.fsencode(tree)).hexdigest()[:24]


def parse_id(snapshot: str) -> tuple[str, str]:
    """Split a snapshot's id into the names of its store and its record.

    Raises:
        UnknownSnapshot: the text is no id of a snapshot.
    """
    found = _ID.fullmatch(snapshot)
    if found is None:
        raise unknown_snapshot(snapshot)
    return found[1], found[2]


def unknown_snapshot(snapshot: str) -> UnknownSnapshot:
    """Return the error for an id without a snapshot."""
    return UnknownSnapshot(
        f"There is no snapshot {snapshot!r}.",
        hint="Snapshots are removed when they are old or take too much room; look at those that are left.",
        snapshot=snapshot,
    )


class Store:
    """The snapshots of one working tree."""

    def __init__(self, home: Path, key: str) -> None:
        self.home = home
        self.key = key
        self.place = home / FOLDER / key
        self.packs = self.place / "objects" / "pack"
        self.records_folder = self.place / "records"

    def lock(self, *, exclusive: bool) -> AbstractContextManager[None]:
        """Wait for the right to read the store, or to change it and the tree."""
        return locks.shared(self.home, f"{FOLDER}-{self.key}", exclusive=exclusive)

    def prepare(self, tree: Path) -> None:
        """Make those of the store's folders and files that are missing."""
        if (self.place / "tree").is_file() and self.packs.is_dir() and self.records_folder.is_dir():
            return
        for folder in (self.packs, self.place / "objects" / "info", self.place / "refs", self.records_folder):
            private_folders.make_private(folder)
        self.put("config", _CONFIG)
        self.put("HEAD", b"ref: refs/heads/none\n")
        self.put("tree", os.fsencode(tree))  # last: with it the store is whole

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Replace a file of the store atomically."""
        target = self.place / name
        with tempfile.NamedTemporaryFile(dir=self.place, prefix="part-", delete=False) as file:
            try:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
                Path(file.name).replace(target)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        if durable:
            private_folders.sync(target.parent)

    def tree(self) -> Path:
        """Return the working tree's path."""
        return Path(os.fsdecode((self.place / "tree").read_bytes()))

    # Records

    def records(self) -> list[tuple[str, SnapshotRecord]]:
        """Return the snapshots with their ids, newest first; records that cannot be read are left out."""
        found: list[tuple[str, SnapshotRecord]] = []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(os.listdir(self.records_folder), reverse=True):
                with contextlib.suppress(OSError, msgspec.DecodeError):
                    data = (self.records_folder / name).read_bytes()
                    found.append((f"{self.key}-{name[:-5]}", msgspec.json.decode(data, type=SnapshotRecord)))
        return found

    def record(self, snapshot: str) -> SnapshotRecord:
        """Return one snapshot.

        Raises:
            UnknownSnapshot: the store has none of this id.
        """
        try:
            data = (self.records_folder / f"{parse_id(snapshot)[1]}.json").read_bytes()
            return msgspec.json.decode(data, type=SnapshotRecord)
        except (OSError, msgspec.DecodeError) as error:
            raise unknown_snapshot(snapshot) from error

    def next_number(self) -> int:
        """Return a number larger than those of all snapshots."""
        return max((int(name[:8]) for name in os.listdir(self.records_folder) if name[:8].isdigit()), default=0) + 1

    def publish(self, record: SnapshotRecord) -> str:
        """Write the record of a snapshot whose objects are stored; return its id."""
        self.put(f"records/{record.name}.json", msgspec.json.encode(record), durable=True)
        return f"{self.key}-{record.name}"

    def withdraw(self, snapshot: str) -> None:
        """Remove a snapshot; its objects stay until they are swept."""
        (self.records_folder / f"{parse_id(snapshot)[1]}.json").unlink(missing_ok=True)

    # Objects

    def own_ids(self) -> set[bytes]:
        """Return the ids of the store's own objects."""
        found: set[bytes] = set()
        for pack in packs.pack_names(self.packs):
            found.update(packs.object_ids(pack))
        return found

    def objects(self, borrowed: list[Path]) -> Odb:
        """Open the store's objects and those of the user's repository, for reading only."""
        from pygit2 import GitError, Odb

        odb = Odb(str(self.place / "objects"))
        for folder in borrowed[:1]:  # libgit2 follows from there to those that it borrows from
            with contextlib.suppress(GitError, OSError, ValueError):
                odb.add_disk_alternate(str(folder))
        return odb


def missing_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that a missing or damaged object raises."""
    from pygit2 import GitError

    return (GitError, KeyError, ValueError, OSError)


def tree_data(entries: list[tuple[bytes, int, bytes]]) -> bytes:
    """Return a folder as git writes it: name, mode and object of each entry, in git's order."""
    # Git sorts a folder as if its name ended in a slash.
    entries.sort(key=lambda one: one[0] + b"/" if stat.S_ISDIR(one[1]) else one[0])
    return b"".join([b"%o %s\0%s" % (mode, name, identity) for name, mode, identity in entries])


def tree_entries(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield name, mode and object of each entry of a folder.

    Raises:
        ValueError: a name could lead out of the folder; we never write one.
    """
    place = 0
    while place < len(data):
        end = data.index(b"\0", place)
        mode, _, name = data[place:end].partition(b" ")
        place = end + 21
        if name in (b"", b".", b"..") or b"/" in name or name.lower() == b".git":
            raise ValueError(name)
        yield name, int(mode, 8), data[end + 1 : place]


def entries_of(odb: Odb, tree: str) -> dict[bytes, TreeEntry]:
    """Return everything below a tree, folders before what is in them."""
    found: dict[bytes, TreeEntry] = {}
    waiting: list[tuple[bytes, str]] = [(b"", tree)]
    while waiting:
        below, identity = waiting.pop()
        for name, mode, inner in tree_entries(odb.read(identity)[1]):
            if stat.S_ISDIR(mode):
                found[below + name] = TreeEntry(mode)
                waiting.append((below + name + b"/", inner.hex()))
            else:
                found[below + name] = TreeEntry(mode, inner)
    return found


def omissions_of(odb: Odb, record: SnapshotRecord) -> list[StoredOmission]:
    """Return the paths that a snapshot does not hold."""
    return msgspec.msgpack.decode(odb.read(record.left_out)[1], type=list[StoredOmission]) if record.left_out else []
