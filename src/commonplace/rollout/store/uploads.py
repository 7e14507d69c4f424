"""Uploading the ledgers of a home: what was added, as a segment; what was moved or deleted, likewise.

The file in the home is what a session is written to; the store follows. Only whole lines go up, their spilled values
before them. A segment is created, never changed: one that is there already is compared with the file. The same bytes
mean that an earlier upload was not noted; other bytes mean that another home has the same name (a copied folder), and
then nothing is written. A file that this home wrote anew (an import may) replaces its segments, which are kept under
`<root>/replaced/`.

Uploads of one home are made by one process at a time.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from commonplace.errors import BlobDamaged, CommonplaceError
from commonplace.patterns import regex
from commonplace.protocol.rollout import Line
from commonplace.rollout import layout, locks, reader
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.store import segments
from commonplace.rollout.store.object_store import ObjectGone, ObjectStore
from commonplace.rollout.store.remote import BLOBS
from commonplace.rollout.store.segments import Segment, SegmentManifest
from commonplace.rollout.store.upload_notes import UploadNote, UploadNotes, root_of

LOCK: Final = "uploads"
REPLACED: Final = "replaced"
_CHECKED: Final = 65_536
"""How many bytes before its end tell whether a file is the one that was uploaded."""
_COMPARED: Final = 2**20
_BLOB: Final = regex(rb'"sha256":"([0-9a-f]{64})"')


class Pending(msgspec.Struct, frozen=True):
    """What the store does not have yet."""

    files: int
    waiting: int
    """Files with lines that are not in the store, or to be removed from it."""
    bytes: int
    conflicts: int


class _Conflict(Exception):
    """The store has other bytes where ours would go."""


class Uploads:
    """The ledgers of one home, on their way into a store."""

    def __init__(self, home: Path, store: ObjectStore) -> None:
        self.home = home.resolve()
        self.notes = UploadNotes(self.home)
        self._store = store
        self._blobs = BlobStore(self.home)

    def sweep(self, *, check: bool = False, is_interrupted: Callable[[], bool] = lambda: False) -> bool:
        """Upload whatever is not in the store yet, and remove from it what was deleted; say whether all of it was done.

        With `check`, the notes are not believed: the store is asked about each file.

        Raises:
            StoreUnavailable, LedgerError: the rest waits for another time.
        """
        with locks.shared(self.home, LOCK, exclusive=True):
            for path in [*self._waiting(check=check)]:
                if is_interrupted():
                    return False
                self._bring_up_to_date(path, check=check)
        return True

    def upload(self, path: Path) -> None:
        """Bring one file up to date in the store (raises StoreUnavailable, LedgerError)."""
        with locks.shared(self.home, LOCK, exclusive=True):
            self._bring_up_to_date(path)

    def note_gone(self, path: Path) -> None:
        """Remember that a file was moved or deleted here on purpose: only then is it removed from the store."""
        file = self._name(path)
        note = self.notes.read().get(file) if file else None
        if file is not None and note is not None:
            self.notes.write(UploadNote(file, note.end, note.check, "gone"))

    def other_places(self, path: Path) -> list[Path]:
        """Return where a file is now that was archived, or brought back."""
        if layout.parse_name(path.name) is None:
            return []
        places = (layout.archived_path(self.home, path), layout.unarchived_path(self.home, path))
        return [place for place in places if place != path and place.exists()]

    def pending(self) -> Pending:
        """Say what is not in the store yet, by the notes alone."""
        notes = self.notes.read()
        files = [*layout.walk(self.home)]
        left = [max(file.size - notes.get(self._name(file.path) or "", UploadNote("")).end, 0) for file in files]
        gone = sum(note.state == "gone" for note in notes.values())
        conflicts = sum(note.state == "conflict" for note in notes.values())
        return Pending(len(files), sum(size > 0 for size in left) + gone, sum(left), conflicts)

    def _waiting(self, *, check: bool) -> Iterator[Path]:
        notes = self.notes.read()
        for file in layout.walk(self.home):
            note = notes.get(self._name(file.path) or "")
            if check or note is None or note.state or note.end != file.size:
                yield file.path
        for note in [*notes.values()]:
            if note.state == "gone":
                yield self.home / note.file

    def _name(self, path: Path) -> str | None:
        """Return a file's path in the home; None if it is not one of the home's own ledgers."""
        name = str(path if path.is_relative_to(self.home) else path.parent.resolve() / path.name)
        return str(Path(name).relative_to(self.home)) if layout.is_under(name, str(self.home)) else None

    def _bring_up_to_date(self, path: Path, *, check: bool = False) -> None:
        file = self._name(path)
        if file is None:
            return
        note = self.notes.read().get(file, UploadNote(file))
        if note.state == "conflict":  # until a person decides
            return
        try:
            source = path.open("rb")
        except FileNotFoundError:
            if note.state == "gone":
                self._remove(note)
            return
        with source:
            try:
                self._add(source, path, note, check=check)
            except _Conflict:
                self.notes.write(UploadNote(file, note.end, note.check, "conflict"))

    def _add(self, source: BinaryIO, path: Path, note: UploadNote, *, check: bool) -> None:
        """Upload what a file has and the store has not."""
        end = _whole_end(source, compressed=reader.is_compressed(path))
        is_ours = note.state in ("", "gone") and note.end <= end and _checksum(source, note.end) == note.check
        if is_ours and note.end == end and not note.state and not check:
            return
        folder = self._folder(note.file)
        manifest = SegmentManifest(folder, self._store.list(folder))
        if not manifest.all and not note.end:
            note, manifest = self._moved(source, path, note, manifest)
        if not is_ours:
            manifest = self._replace(manifest, note)
        elif not _is_same(self._store, manifest, source, min(note.end, manifest.end), manifest.end, end):
            raise _Conflict
        self._upload_blobs(source, path, min(note.end, manifest.end), end)
        for start, stop in [*((hole.start, hole.end) for hole in manifest.holes()), *_cut(manifest.end, end)]:
            self._create(folder, source, start, stop)
        self.notes.write(UploadNote(note.file, end, _checksum(source, end)))
        if len(manifest.all) + 1 >= segments.MERGED or manifest.leftovers():
            self._merge(folder, source)

    def _create(self, folder: str, source: BinaryIO, start: int, stop: int) -> None:
        """Make a segment; a torn one in its place is left to be covered."""
        data = os.pread(source.fileno(), stop - start, start)
        if self._store.create(segments.key(folder, start), data):
            return
        repaired = segments.key(folder, start, len(data))
        if not self._store.create(repaired, data) and self._store.get(repaired) != data:
            raise _Conflict

    def _merge(self, folder: str, source: BinaryIO) -> None:
        """Make one segment of many small ones; the parts go last, so that nothing is missing at any moment."""
        manifest = SegmentManifest(folder, self._store.list(folder))
        run = manifest.to_merge()
        if run:
            start, stop = run[0].start, run[-1].end
            data = os.pread(source.fileno(), stop - start, start)
            if not self._store.create(segments.key(folder, start, len(data)), data):
                return
        self._store.delete(each.key for each in [*run, *manifest.leftovers()])

    def _replace(self, manifest: SegmentManifest, note: UploadNote) -> SegmentManifest:
        """Put the segments of a file that was written anew aside; what another home added is a conflict."""
        if note.state != "replacing" and manifest.end > note.end:
            raise _Conflict
        self.notes.write(UploadNote(note.file, note.end, note.check, "replacing"))
        self._move_segments(manifest.all, manifest.folder, self._folder(f"{REPLACED}/{note.check:08x}/{note.file}"))
        return SegmentManifest(manifest.folder, [])

    def _moved(
        self, source: BinaryIO, path: Path, note: UploadNote, manifest: SegmentManifest
    ) -> tuple[UploadNote, SegmentManifest]:
        """Take over the segments of a file that was archived, or brought back, inside the store."""
        if layout.parse_name(path.name) is None:
            return note, manifest
        places = (layout.archived_path(self.home, path), layout.unarchived_path(self.home, path))
        for before in (place for place in places if place != path and not place.exists()):
            file = self._name(before)
            known = self.notes.read().get(file or "")
            if file is not None and known is not None and _checksum(source, known.end) == known.check:
                for each in SegmentManifest(self._folder(file), self._store.list(self._folder(file))).all:
                    self._store.copy(each.key, f"{manifest.folder}/{each.key.rpartition('/')[2]}")
                there = SegmentManifest(manifest.folder, self._store.list(manifest.folder))
                return UploadNote(note.file, min(known.end, there.end), known.check), there
        return note, manifest

    def _remove(self, note: UploadNote) -> None:
        """Remove the segments of a file that was deleted or moved here."""
        folder = self._folder(note.file)
        self._store.delete(each.key for each in SegmentManifest(folder, self._store.list(folder)).all)
        self.notes.write(UploadNote(note.file, state="dropped"))

    def _move_segments(self, found: list[Segment], folder: str, target: str) -> None:
        for each in found:
            try:
                self._store.copy(each.key, f"{target}/{each.key.removeprefix(f'{folder}/')}")
            except ObjectGone:  # an earlier attempt got this far
                continue
            self._store.delete([each.key])

    def _upload_blobs(self, source: BinaryIO, path: Path, start: int, end: int) -> None:
        """Upload the spilled values that new lines refer to."""
        for name in dict.fromkeys(_blob_names(source, path, start, end)):
            try:
                self._store.create(f"{BLOBS}/{name}", self._blobs.get(name))
            except BlobDamaged:  # `doctor` and `verify` tell
                continue

    def _folder(self, file: str) -> str:
        return f"{root_of(self.home)}/{file}"


def _whole_end(source: BinaryIO, *, compressed: bool) -> int:
    """Return where the last whole line ends; a compressed file is never added to."""
    size = position = os.fstat(source.fileno()).st_size
    while position and not compressed:
        start = max(0, position - _CHECKED)
        found = os.pread(source.fileno(), position - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return size if compressed else 0


def _checksum(source: BinaryIO, end: int) -> int:
    start = max(0, end - _CHECKED)
    return zlib.crc32(os.pread(source.fileno(), end - start, start)) if end else 0


def _cut(start: int, end: int) -> Iterator[tuple[int, int]]:
    for offset in range(start, end, segments.LONGEST):
        yield offset, min(offset + segments.LONGEST, end)


def _is_same(store: ObjectStore, manifest: SegmentManifest, source: BinaryIO, start: int, stop: int, end: int) -> bool:
    """Say whether the store has what the file has, from `start` on: what an upload that was not noted left there."""
    if stop > end:
        return False
    for offset in range(start, stop, _COMPARED):
        for piece in manifest.pieces(offset, min(offset + _COMPARED, stop)):
            if piece.segment is None:
                continue
            begin = piece.segment.start
            try:
                theirs = store.read(piece.segment.key, piece.start - begin, piece.end - begin)
            except ObjectGone:
                return False
            if theirs != os.pread(source.fileno(), piece.end - piece.start, piece.start):
                return False
    return True


def _blob_names(source: BinaryIO, path: Path, start: int, end: int) -> Iterator[str]:
    """Yield what the lines between two offsets may refer to."""
    if reader.is_compressed(path):
        try:
            for record in reader.forward(path):
                if isinstance(record, Line):
                    yield from (ref.sha256 for ref in record.blobs())
        except CommonplaceError:
            return
        return
    for offset in range(start, end, _COMPARED):
        # A name that lies across the end of this piece begins the next one, too.
        piece = os.pread(source.fileno(), _COMPARED + 80, offset)
        yield from (found[1].decode() for found in _BLOB.finditer(piece))
