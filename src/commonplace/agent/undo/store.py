"""One store per working tree: `home/snapshots/<key>`, a bare git repository that is nobody's but ours.

    HEAD, config, refs/, objects/pack/    contents and folders, as git's blobs and trees
    records/<number>-<digest>.json        the snapshots; a snapshot is there when its record is
    seen                                  what files looked like when they were last read (derived)
    tree                                  the working tree's path

Trees hold the whole permissions where git keeps one bit, and folders without files; git itself reads them nevertheless.
What the user's own repository has is borrowed and not stored. Everything that changes a store holds its lock; records
are written last and removed first, so that a crash leaves objects that nothing refers to, never the reverse.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
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
from commonplace.rollout import locks, private_folders

if TYPE_CHECKING:
    from pygit2 import Odb

FOLDER: Final = "snapshots"
_ID: Final = re.compile(r"([0-9a-f]{24})-([0-9]{8}-[0-9a-f]{12})")
_CONFIG: Final = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"
"""Nothing refers to our objects in git's way, so git must not clean up here."""


class Left(msgspec.Struct, frozen=True, array_like=True):
    """Something that a snapshot does not hold; what it looked like tells it again under another name."""

    path: bytes
    reason: str
    size: int
    inode: int
    modified: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot, as the store has it."""

    number: int
    time: datetime
    kind: Kind
    files: int
    bytes: int
    mode: int = 0
    """Permissions of the tree's top."""
    tree: str = ""
    left_out: str = ""
    incomplete: str = ""

    @property
    def name(self) -> str:
        """The record's file name, unlike any that was ever used for another snapshot."""
        digest = hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:12]
        return f"{self.number:08d}-{digest}"


class Entry(msgspec.Struct, frozen=True):
    """What stands at a path: type and permissions, and the object that has its content (none for a folder)."""

    mode: int
    object: bytes = b""


def key_of(tree: Path) -> str:
    """Return the name of a resolved tree's store."""
    return hashlib.sha256(os.fsencode(tree)).hexdigest()[:24]


def parse(snapshot: str) -> tuple[str, str]:
    """Split a snapshot's id into the names of its store and its record.

    Raises:
        UnknownSnapshot: it is no such id.
    """
    found = _ID.fullmatch(snapshot)
    if found is None:
        raise unknown(snapshot)
    return found[1], found[2]


def unknown(snapshot: str) -> UnknownSnapshot:
    """Return the error for an id that names nothing."""
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
        """Make the store's folders and files, as far as they are missing."""
        if (self.place / "tree").is_file() and self.packs.is_dir() and self.records_folder.is_dir():
            return
        for folder in (self.packs, self.place / "objects" / "info", self.place / "refs", self.records_folder):
            private_folders.make_private(folder)
        self.put("config", _CONFIG)
        self.put("HEAD", b"ref: refs/heads/none\n")
        self.put("tree", os.fsencode(tree))  # last: with it the store is whole

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Replace a file of the store; nobody ever sees a part of it."""
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

    def records(self) -> list[tuple[str, Record]]:
        """Return the snapshots with their ids, newest first; what cannot be read is none."""
        found: list[tuple[str, Record]] = []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(os.listdir(self.records_folder), reverse=True):
                with contextlib.suppress(OSError, msgspec.DecodeError):
                    data = (self.records_folder / name).read_bytes()
                    found.append((f"{self.key}-{name[:-5]}", msgspec.json.decode(data, type=Record)))
        return found

    def record(self, snapshot: str) -> Record:
        """Return one snapshot.

        Raises:
            UnknownSnapshot: the store has none of this id.
        """
        try:
            data = (self.records_folder / f"{parse(snapshot)[1]}.json").read_bytes()
            return msgspec.json.decode(data, type=Record)
        except (OSError, msgspec.DecodeError) as error:
            raise unknown(snapshot) from error

    def next_number(self) -> int:
        """Return a number larger than those of all snapshots that are there."""
        return max((int(name[:8]) for name in os.listdir(self.records_folder) if name[:8].isdigit()), default=0) + 1

    def publish(self, record: Record) -> str:
        """Make a snapshot of which everything else is stored; return its id."""
        self.put(f"records/{record.name}.json", msgspec.json.encode(record), durable=True)
        return f"{self.key}-{record.name}"

    def withdraw(self, snapshot: str) -> None:
        """Remove a snapshot; its objects stay until they are swept."""
        (self.records_folder / f"{parse(snapshot)[1]}.json").unlink(missing_ok=True)

    # Objects

    def own_ids(self) -> set[bytes]:
        """Return the ids of all objects that the store has itself."""
        found: set[bytes] = set()
        for pack in packs.names(self.packs):
            found.update(packs.ids(pack))
        return found

    def objects(self, borrowed: list[Path]) -> Odb:
        """Open the store's objects and those of the user's repository; nothing is ever written through this."""
        from pygit2 import GitError, Odb

        odb = Odb(str(self.place / "objects"))
        for folder in borrowed[:1]:  # libgit2 follows from there to those that it borrows from
            with contextlib.suppress(GitError, OSError, ValueError):
                odb.add_disk_alternate(str(folder))
        return odb


def missing() -> tuple[type[Exception], ...]:
    """Return what is raised for objects that are missing or damaged."""
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
        ValueError: a name that leads elsewhere; we never write one.
    """
    place = 0
    while place < len(data):
        end = data.index(b"\0", place)
        mode, _, name = data[place:end].partition(b" ")
        place = end + 21
        if name in (b"", b".", b"..") or b"/" in name or name.lower() == b".git":
            raise ValueError(name)
        yield name, int(mode, 8), data[end + 1 : place]


def entries_of(odb: Odb, tree: str) -> dict[bytes, Entry]:
    """Return everything below a tree, folders before what is in them."""
    found: dict[bytes, Entry] = {}
    waiting: list[tuple[bytes, str]] = [(b"", tree)]
    while waiting:
        below, identity = waiting.pop()
        for name, mode, inner in tree_entries(odb.read(identity)[1]):
            if stat.S_ISDIR(mode):
                found[below + name] = Entry(mode)
                waiting.append((below + name + b"/", inner.hex()))
            else:
                found[below + name] = Entry(mode, inner)
    return found


def left_of(odb: Odb, record: Record) -> list[Left]:
    """Return all that a snapshot does not hold."""
    return msgspec.msgpack.decode(odb.read(record.left_out)[1], type=list[Left]) if record.left_out else []
