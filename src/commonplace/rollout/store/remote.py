"""Ledgers that other hosts keep in the store, as files that any reader opens.

A listing of the store becomes a folder of *stubs*, `home/cache/ledgers/<root>/sessions/…`: empty files with the names
and sizes of the ledgers, so that whoever walks, compares or looks for a parent needs to know nothing. Their bytes are
read from the store, in blocks that stay in `home/cache/blocks/` up to a bound. The whole of `cache/` is derived and may
be deleted.

No ledger of another host is ever written.
"""

from __future__ import annotations

import io
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from commonplace.errors import LedgerError, NotASession, StoreUnavailable
from commonplace.patterns import regex
from commonplace.rollout import layout
from commonplace.rollout.private_folders import make_private
from commonplace.rollout.store.block_cache import BlockCache
from commonplace.rollout.store.object_store import ObjectGone, ObjectStore, StoredObject
from commonplace.rollout.store.segments import SegmentManifest
from commonplace.rollout.store.stubs import CACHE, folder_of, roots

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOBS: Final = "blobs"
_CHUNK: Final = 1024 * 1024
"""A request to a store takes as long as reading a mebibyte from it."""
_ROOT: Final = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")
_PLACE: Final = regex(rf"(?:{layout.SESSIONS}/\d{{4}}/\d\d/\d\d|{layout.ARCHIVED})/[^/]+")


class RemoteLedgers:
    """The ledgers of other homes in one store, for one home; used from any thread."""

    def __init__(self, home: Path, store: ObjectStore, own_root: Callable[[], str]) -> None:
        self.home = home.resolve()
        self.store = store
        self._own_root = own_root
        self._folder = folder_of(home)
        self._blocks = BlockCache(self.home / CACHE / "blocks", store)
        self._manifests: dict[str, SegmentManifest] = {}
        self._changing = threading.Lock()

    def sync(self) -> None:
        """Make the stubs what the store has now (raises StoreUnavailable: they stay as they were)."""
        own, found = self._own_root(), set[str]()
        names = [name for name in self.store.folders() if _ROOT.fullmatch(name) and name not in (own, BLOBS)]
        for root in names:
            for folder, manifest in self._listed(root):
                self._put(folder, manifest)
                found.add(folder)
        for root in roots(self.home):
            for file in layout.walk(root):
                if str(file.path.relative_to(self._folder)) not in found:
                    file.path.unlink(missing_ok=True)

    def _listed(self, root: str) -> Iterator[tuple[str, SegmentManifest]]:
        ledgers: dict[str, list[StoredObject]] = defaultdict(list)
        for top in (layout.SESSIONS, layout.ARCHIVED):
            for each in self.store.list(f"{root}/{top}"):
                ledgers[each.key.rpartition("/")[0]].append(each)
        for folder, objects in ledgers.items():
            name = folder.rpartition("/")[2]
            if _PLACE.fullmatch(folder.partition("/")[2]) and layout.parse_name(name) is not None:
                yield folder, SegmentManifest(folder, objects)

    def refresh(self, path: Path) -> bool:
        """Look up how far a ledger goes now; what is known stands where the store cannot be asked.

        A ledger that is gone, because it was archived or deleted where it was written, loses its stub.
        """
        try:
            is_there = self._look_up(self._key(path)).end > 0
        except StoreUnavailable:
            return True
        if not is_there:
            path.unlink(missing_ok=True)
        return is_there

    def open(self, path: Path) -> RemoteFile:
        """Open a ledger for reading (raises NotASession: the store has none; StoreUnavailable)."""
        folder = self._key(path)
        manifest = self._manifests.get(folder) or self._look_up(folder)
        if not manifest.end:
            raise NotASession(f"{path} is not in the store any more.", hint="List the sessions again.", path=str(path))
        return RemoteFile(self, manifest)

    def find(self, rollout_id: str) -> Path | None:
        """Return the stub of the file with this id, looking into the store if it is new (raises StoreUnavailable)."""
        for look in (False, True):
            if look:
                self.sync()
            if found := layout.find_rollout(rollout_id, near=None, homes=roots(self.home)):
                return found
        return None

    def blob(self, name: str) -> bytes | None:
        """Return a spilled value; None if the store does not have it (raises StoreUnavailable)."""
        try:
            return self.store.get(f"{BLOBS}/{name}")
        except ObjectGone:
            return None

    def read(self, manifest: SegmentManifest, start: int, end: int) -> bytes:
        """Return bytes of a ledger; holes are zero bytes (raises StoreUnavailable, LedgerError)."""
        for _ in range(3):
            try:
                return b"".join(
                    bytes(piece.end - piece.start)
                    if piece.segment is None
                    else self._blocks.read(
                        piece.segment, piece.start - piece.segment.start, piece.end - piece.segment.start
                    )
                    for piece in manifest.pieces(start, end)
                )
            except ObjectGone:  # the host that writes it merged segments meanwhile
                newer = self._look_up(manifest.folder)
                if newer.end < end:
                    break
                manifest.take_over(newer)
        raise LedgerError(f"{manifest.folder} left the store while it was read.", hint="Try again.")

    def _key(self, path: Path) -> str:
        return str(path.resolve().relative_to(self._folder))

    def _look_up(self, folder: str) -> SegmentManifest:
        manifest = SegmentManifest(folder, self.store.list(folder))
        if manifest.end:
            self._put(folder, manifest)
        else:
            self._manifests.pop(folder, None)
        return manifest

    def _put(self, folder: str, manifest: SegmentManifest) -> None:
        """Keep a manifest, and give its stub the ledger's size; one that has it already is not touched."""
        self._manifests[folder] = manifest
        stub = self._folder / folder
        with self._changing:
            if not stub.exists() or stub.stat().st_size != manifest.end:
                make_private(stub.parent)
                descriptor = os.open(stub, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    os.ftruncate(descriptor, manifest.end)
                finally:
                    os.close(descriptor)


class RemoteFile(io.RawIOBase):
    """A ledger in the store as a file of bytes, as long as it was when it was opened."""

    def __init__(self, ledgers: RemoteLedgers, manifest: SegmentManifest) -> None:
        self._ledgers = ledgers
        self._manifest = manifest
        self._position = 0
        self.size = manifest.end

    def read_at(self, length: int, offset: int) -> bytes:
        """Return at most `length` bytes from `offset` on."""
        end = min(offset + length, self.size)
        return self._ledgers.read(self._manifest, offset, end) if offset < end else b""

    def stream(self) -> BinaryIO:
        """Return a buffered file over this one."""
        return io.BufferedReader(self, _CHUNK)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read_at(len(view), self._position)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)
