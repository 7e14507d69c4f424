"""Writing what a converter yields: one ledger per thread, appended to when its source grew, never left half written.

A ledger that exists is compared with the new pieces record by record. Where it is their beginning, only the rest is
added. Where it is not (records came in another order, a file was rewritten) a second file of the same thread is written
and takes its place; the first stays, for whatever refers to it. A source that lost records changes nothing.

Files appear whole: they are written beside their place and moved there. That they survive a loss of power is seen to
once for many (`run`); a ledger that did not is written again. However many threads a source holds, no file is kept open
and what waits to be written is bounded.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import ThreadBusy
from commonplace.importers import converter, existing_ledger, session_citations
from commonplace.importers.converter import ConvertedRecord, Converter, Payload, SessionHead
from commonplace.importers.existing_ledger import LedgerRecord, SessionLeftOut
from commonplace.importers.forks import ForkMatcher, OriginIndex, marks_of
from commonplace.importers.session_citations import CitingAnswer
from commonplace.protocol import ids, rollout
from commonplace.protocol.rollout import BlobRef, Origin, Skipped
from commonplace.rollout import blobs, layout, locks
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.private_folders import make_private

_BATCH: Final = 256 * 1024
"""How many bytes of lines wait before they are written."""
_MAX_WAITING: Final = 16 * 2**20
"""How many bytes may wait to be written, over all threads of a source."""
_COPY_BYTES: Final = 2**20
"""How many bytes are copied at a time."""
_MAX_SIDE_FILE: Final = 32 * 2**20
"""Larger files with whole outputs are not kept."""
_MAX_NOTES: Final = 1000
"""How many skipped stretches a ledger notes."""
_AFRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_ADDING: Final = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_TORN: Final = "torn:"
"""How the record id of a note about an unfinished last line begins; such a note goes when the line is finished."""


class LedgerDestination(msgspec.Struct):
    """The home that ledgers are written to, and the ledgers that it has already."""

    home: Path
    now: Callable[[], datetime]
    bound: int
    ledgers: dict[str, Path] = {}
    """The newest file of each thread in this home; what is written is added."""
    why_not: Callable[[SessionHead], str | None] = lambda _: None
    """Why a session is left out (None: it is not)."""
    owners: dict[str, str] = {}
    """The file that each thread was imported from."""
    project: Callable[[str], str | None] = lambda _: None
    """The identity of the project that a folder belongs to, as far as that can be told now."""
    origins: OriginIndex = msgspec.field(default_factory=OriginIndex)


class WrittenThread(msgspec.Struct):
    """The result of writing one thread."""

    head: SessionHead
    path: Path
    size: int
    status: str
    """`imported`, `updated` or `unchanged`."""
    cited: list[CitingAnswer] = []
    """Threads whose memories the new answers name."""


class _Diverged(Exception):
    """A ledger is not the beginning of what its source says now."""


def write(path: Path, convert: Converter, place: LedgerDestination) -> tuple[list[WrittenThread], list[Skipped]]:
    """Convert one source file into the ledgers of its threads; return what was done, and what could not be used.

    Raises:
        SessionLeftOut: settings or decisions say so, or it is a copy of a session that says something else.
        ThreadBusy: another process writes to one of the threads.
        LedgerError, NotASession, OSError: the source cannot be read or a ledger not written.
    """
    anew: set[str] = set()
    while True:
        try:
            return _Attempt(path, convert, place, anew).run()
        except _Diverged as diverged:
            anew.add(str(diverged))


class _Attempt:
    """One pass over a source."""

    def __init__(self, path: Path, convert: Converter, place: LedgerDestination, anew: set[str]) -> None:
        self.pieces = convert(path)
        self.place = place
        self.anew = anew
        self.targets: dict[str, _OpenLedger] = {}
        self.skipped: list[Skipped] = []
        self.left_out: dict[str, str] = {}
        self.waiting = 0

    def run(self) -> tuple[list[WrittenThread], list[Skipped]]:
        # Blobs must not be collected before the lines that refer to them are in place.
        with locks.shared(self.place.home, blobs.LOCK):
            try:
                for found in self.pieces:
                    self._see(found)
                if self.left_out and not self.targets:
                    raise SessionLeftOut(next(iter(self.left_out.values())))
                return [target.finish() for target in self.targets.values()], self.skipped
            finally:
                for target in self.targets.values():
                    target.clean()

    def _see(self, found: SessionHead | ConvertedRecord | Skipped) -> None:
        if isinstance(found, ConvertedRecord):
            if found.thread_id not in self.left_out:
                self._give(self.targets[found.thread_id], found)
        elif isinstance(found, SessionHead):
            if (reason := self.place.why_not(found)) is not None:
                self.left_out[found.thread_id] = reason
            elif found.thread_id not in self.targets:
                try:
                    self.targets[found.thread_id] = _OpenLedger(found, self.place, anew=found.thread_id in self.anew)
                except SessionLeftOut as taken:
                    self.left_out[found.thread_id] = str(taken)
        else:
            self.skipped.append(found)
            first = next(iter(self.targets.values()), None)
            if first is not None and len(self.skipped) <= _MAX_NOTES:
                self._give(first, _note(first.head.thread_id, found))

    def _give(self, target: _OpenLedger, piece: ConvertedRecord) -> None:
        before = target.waiting
        target.take(piece)
        self.waiting += target.waiting - before
        if self.waiting > _MAX_WAITING:
            for each in self.targets.values():
                each.flush()
            self.waiting = 0


def _note(thread_id: str, skipped: Skipped) -> ConvertedRecord:
    prefix = _TORN if skipped.reason == converter.TORN else "skip:"
    return ConvertedRecord(thread_id, f"{prefix}{skipped.offset}:{skipped.bytes}", "", [converter.skip_note(skipped)])


class _OpenLedger:
    """One thread's ledger, while pieces come in."""

    def __init__(self, head: SessionHead, place: LedgerDestination, *, anew: bool) -> None:
        self.head = head
        self.place = place
        self.waiting = 0
        self._lines: list[bytes] = []
        self._store = BlobStore(place.home, durable=False)
        self._time = head.started
        self._cited: list[CitingAnswer] = []
        self._path: Path | None = None
        self._part: Path | None = None
        self._made = False
        """Whether the part's file is there."""
        self._existing, self._owner = existing_ledger.usable(place.ledgers.get(head.thread_id), head.source)
        if self._existing is not None and head.source not in existing_ledger.COPIED:
            anew = anew or existing_ledger.is_copied(self._existing)
        if self._owner is None or not is_there(self._owner):  # it was moved, or its folder was
            self._owner = place.owners.get(head.thread_id)
        self._grows = self._existing is not None and not anew
        self._end = 0
        """How much of the existing ledger stands."""
        self._shared = 0
        """How many records the existing ledger leaves to the one that it continues."""
        self._known: Iterator[LedgerRecord] | None = None
        """Records of the existing ledger that are still to be met."""
        self._is_copy = self._owner is not None and self._owner != head.path and is_there(self._owner)
        self._is_copy = self._is_copy and not (anew and self._existing is not None)
        """The thread was imported from another file, which is still there: equal ids do not make it the same."""
        self._match: ForkMatcher | None = None
        if self._grows and self._existing is not None:
            self._size = self._end = self._existing.stat().st_size
            self._shared, self._known = existing_ledger.records(self._existing, marked=self._is_copy)
        elif self._existing is None:
            self._match = place.origins.match(head)

    def take(self, piece: ConvertedRecord) -> None:
        """Take in the next record: pass over it if the ledger has it, else write it."""
        if self._shared:
            self._shared -= 1
            return
        if self._known is not None and self._has(piece):
            return
        if self._match is not None:
            if self._match.take(piece):
                return
            self._begin()
        elif self._part is None:
            self._begin()
        self._put(piece)

    def _has(self, piece: ConvertedRecord) -> bool:
        assert self._known is not None
        known = next(self._known, None)
        if known is not None and known.record.startswith(_TORN):
            if known.record == piece.record:
                return True
            self._end, known = known.offset, None  # the line was finished since
        if known is None:
            self._known = None
            return False
        if piece.record.startswith(_TORN):  # a source that was cut off changes nothing
            return True
        if self._is_copy and (known.record != piece.record or known.marks != marks_of(piece)):
            raise SessionLeftOut("copy")
        if known.record != piece.record:
            raise _Diverged(self.head.thread_id)
        return True

    def finish(self) -> WrittenThread:
        """Put the ledger in its place."""
        if self._known is not None and (left := next(self._known, None)) and left.record.startswith(_TORN):
            self._end = left.offset  # the line was finished, and says nothing
            self._begin()
        if self._part is None and self._grows and self._existing is not None:
            self.place.origins.add(self.head, self._existing)
            return WrittenThread(self.head, self._existing, self._size, "unchanged")
        if self._part is None:  # a session that adds nothing to the one that it continues
            self._begin()
        assert self._part is not None
        assert self._path is not None
        self.flush()
        with contextlib.ExitStack() as stack:
            if self._grows:
                self._claim(stack)
            size = self._part.stat().st_size
            self._part.replace(self._path)
        self._part = None
        self.place.origins.add(self.head, self._path)
        self.place.owners[self.head.thread_id] = self.head.path
        self.place.ledgers[self.head.thread_id] = self._path
        status = "imported" if self._existing is None else "updated"
        return WrittenThread(self.head, self._path, size, status, self._newly_cited())

    def _newly_cited(self) -> list[CitingAnswer]:
        """Return what new answers cite; in a file that was written anew, the old answers do so again."""
        if self._existing is None or self._grows:
            return self._cited
        return list(
            (Counter(self._cited) - Counter(session_citations.citations_since(self._existing, 0)[0])).elements()
        )

    def _claim(self, stack: contextlib.ExitStack) -> None:
        """Make sure that nobody writes to a ledger, or did since it was read."""
        lock = locks.WriterLock(self.place.home, self.head.thread_id)
        lock.acquire()
        stack.callback(lock.release)
        assert self._existing is not None
        if self._existing.stat().st_size != self._size:
            raise ThreadBusy(f"Thread {self.head.thread_id} was written to meanwhile.", hint="Import again.")

    def clean(self) -> None:
        """Leave nothing behind of a ledger that was not finished."""
        if self._part is not None:
            self._part.unlink(missing_ok=True)
            self._part = None

    def _begin(self) -> None:
        """Make the file that new lines go to, with what stands already at its beginning."""
        if self._grows and self._existing is not None:
            self._path = self._existing
        else:
            self._path = self._new_path()
        make_private(self._path.parent)
        self._part = self._path.with_name(f".{self._path.name}.part")
        if self._grows:
            os.close(os.open(self._part, _AFRESH, 0o600))
            self._made = True
            _copy(self._path, self._part, self._end)
            return
        folders = [folder for folder in (self.head.cwd, self.head.made_from) if folder]
        project = next((found for folder in folders if (found := self.place.project(folder))), None)
        meta = converter.meta(self.head, project)
        held: list[ConvertedRecord] = []
        if self._match is not None:
            meta, held = self._match.meta(meta), self._match.held
            self._match = None
        self._write(rollout.encode("session_meta", meta, timestamp=self.head.started))
        for piece in held:
            self._put(piece)

    def _new_path(self) -> Path:
        started = ids.parse_time(self.head.started) or self.place.now()
        path = layout.new_path(self.place.home, started, self.head.thread_id)
        if self._existing is None:
            return path
        generation = ids.new_id(self.place.now())
        return path.with_name(f"{path.stem}_{generation}.jsonl")

    def _put(self, piece: ConvertedRecord) -> None:
        self._time = piece.time or self._time
        for payload in piece.payloads:
            self._write(self._encode(payload, piece))

    def _encode(self, payload: Payload, piece: ConvertedRecord) -> bytes:
        refs: list[BlobRef] = []
        encoded = msgspec.json.encode(payload.value)
        if b"<oai-mem-citation>" in encoded and not piece.record.startswith(rollout.REPEATED):
            self._cited.extend(session_citations.citations_in_item(encoded))
        if len(encoded) > self.place.bound or payload.type == "compacted":
            # What cannot be taken apart (nested too deep, numbers out of range) stays whole in its line.
            with contextlib.suppress(ValueError, RecursionError):
                whole = msgspec.json.decode(encoded)
                value, refs = blobs.spill(payload.type, whole, self._store, self.place.bound)
                encoded = msgspec.json.encode(value) if refs else encoded
        if payload.side_file is not None and (ref := _side_blob(payload.side_file, self._store)):
            refs = [*refs, ref]
        origin = payload.origin or Origin(piece.record)
        return rollout.encode(payload.type, msgspec.Raw(encoded), timestamp=self._time, blob=refs, origin=origin)

    def _write(self, line: bytes) -> None:
        self._lines.append(line)
        self.waiting += len(line)
        if self.waiting >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits; the file is open no longer than that takes."""
        if self._lines and self._part is not None:
            descriptor = os.open(self._part, _ADDING if self._made else _AFRESH, 0o600)
            self._made = True
            try:
                view = memoryview(b"".join(self._lines))
                while view:
                    view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)
        self._lines, self.waiting = [], 0


def is_there(owner: str) -> bool:
    """Say whether what a thread was imported from is there: a file, or a row of a database."""
    return Path(owner).exists() or Path(owner).parent.is_file()


def _copy(path: Path, part: Path, end: int) -> None:
    """Copy the first bytes of a ledger."""
    with path.open("rb") as source, part.open("ab") as target:
        left = end
        while left > 0 and (block := source.read(min(left, _COPY_BYTES))):
            target.write(block)
            left -= len(block)


def _side_blob(path: Path, store: BlobStore) -> BlobRef | None:
    """Keep the file that holds the whole of an output; the agent will remove it in time."""
    try:
        if path.stat().st_size > _MAX_SIDE_FILE:
            return None
        data = path.read_bytes()
        data.decode()
    except (OSError, UnicodeDecodeError):
        return None
    return BlobRef("/output", store.put(data), len(data), "text/plain")
