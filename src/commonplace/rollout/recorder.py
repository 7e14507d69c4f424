"""The recorder: the only way a line gets into a session file.

`record` never waits: it stamps the line and queues it. A background thread owns the file and writes in order; it ends
when nothing came for a moment, and another one begins with the next line, so that a session that rests costs no thread.
A barrier (`flush`, `end_turn`, `close`) returns when everything recorded before it is in the file, and raises
`WriteFailed` if it is not; then the lines stay queued, and a later barrier writes them without a gap or a duplicate.
Acknowledged means: a barrier returned.

The file is made by the first barrier that has something to write (`persist` forces it), so that a session in which
nothing happened leaves nothing behind. One writer per thread, across processes, is kept by a lock.

How hard a barrier works is a setting: `never` trusts the operating system (lines survive the death of the process),
`turn` makes them survive a loss of power at the end of each turn, `line` at every barrier.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec

from commonplace.config import Fsync
from commonplace.errors import CommonplaceError, LedgerError, WriteFailed
from commonplace.protocol import ids, rollout
from commonplace.rollout import blobs, chain, compression, locks, reader
from commonplace.rollout.appender import Appender

_BATCH_BYTES: Final = 1024 * 1024
_BATCH_LINES: Final = 4096
"""Queued lines are written together up to this size and number."""
_LAST_ORDINAL: Final = 2**64 - 1
"""The largest ordinal that 64 bits hold."""


_REST_SECONDS: Final = 1.0
"""How long a writer waits for more before it ends; beginning one takes a tenth of a millisecond."""


class RecorderOptions(msgspec.Struct, frozen=True):
    """What a recorder needs besides its thread."""

    home: Path
    now: Callable[[], datetime]
    fsync: Fsync = "turn"
    blob_bytes: int = blobs.DEFAULT_BOUND
    write: Callable[[int, bytes], int] = os.write
    """The system call that writes; tests make it fail."""
    landed: Callable[[Path], None] | None = None
    """Gets the file's path when a turn is in it, and at the end; it must return at once."""


class _Pending(msgspec.Struct):
    """A line that is not in the file yet; encoded on the writer's thread, where its blobs are stored first."""

    line_type: str
    payload: bytes
    timestamp: str
    ordinal: int | None
    metadata: msgspec.Raw | None


class _Barrier(msgspec.Struct):
    sync: bool
    last: bool = False
    create: bool = False
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    error: CommonplaceError | None = None


class Recorder:
    """Appends to one thread; make one with `create` or `resume`, end it with `close`."""

    def __init__(
        self, thread_id: str, path: Path, options: RecorderOptions, *, ordinal: int | None, exists: bool
    ) -> None:
        self.thread_id = thread_id
        self.path = path
        self._options = options
        self._ordinal = ordinal
        self._exists = exists
        self._lock = locks.WriterLock(options.home, thread_id)
        self._appender = Appender(path, write=options.write)
        self._store = blobs.BlobStore(options.home)
        self._changed = threading.Condition()
        self._queue: deque[_Pending] = deque()
        self._barriers: deque[_Barrier] = deque()
        self._written = 0
        """How much of the queue's first line is in the file already."""
        self._failed = False
        self._abandoned = False
        self._ended = False
        self._writer: threading.Thread | None = None
        """The thread that writes; None while there is nothing to write."""

    @classmethod
    async def create(cls, path: Path, meta: dict[str, Any], options: RecorderOptions) -> Recorder:
        """Begin a thread; `meta` is the payload of its first line. No file is made yet.

        Raises:
            ThreadBusy: another writer has the thread.
        """
        ordinal: int | None = None
        if meta.get("history_mode") == "paginated":
            base: dict[str, Any] = meta.get("history_base") or {}
            ordinal = base.get("end_ordinal_exclusive") or 0
        recorder = cls(meta["id"], path, options, ordinal=ordinal, exists=False)
        await anyio.to_thread.run_sync(recorder._lock.acquire)
        recorder.record("session_meta", meta)
        return recorder

    @classmethod
    async def resume(cls, path: Path, options: RecorderOptions) -> Recorder:
        """Go on with a thread that has a file; a torn last line is closed off first.

        Raises:
            NotASession, LedgerError: the file cannot be used.
            ThreadBusy: another writer has the thread.
        """
        return await anyio.to_thread.run_sync(cls._resume, path, options)

    @classmethod
    def _resume(cls, path: Path, options: RecorderOptions) -> Recorder:
        meta = chain.read_head(path)[1]
        recorder = cls(meta.id, path, options, ordinal=None, exists=True)
        recorder._lock.acquire()
        try:
            if reader.is_compressed(path):
                path = compression.materialise(path)
                recorder.path, recorder._appender = path, Appender(path, write=options.write)
            if meta.history_mode == "paginated":
                recorder._ordinal = _next_ordinal(path)
            recorder._appender.open(create=False)
        except OSError as error:
            recorder._give_up()
            raise LedgerError(f"{path} cannot be written: {error.strerror}.", hint="Check its permissions.") from error
        except BaseException:
            recorder._give_up()
            raise
        return recorder

    def record(self, line_type: str, payload: Any, metadata: Any = None) -> None:
        """Queue one line, stamped with the present time; it is written in the background, in order.

        Raises:
            LedgerError: the recorder was closed.
        """
        encoded = msgspec.json.encode(payload)
        note = None if metadata is None else msgspec.Raw(msgspec.json.encode(metadata))
        with self._changed:
            if self._ended or self._abandoned:
                raise LedgerError(f"{self.path} was closed; nothing can be added.", hint="Resume the thread.")
            timestamp = ids.wire_time(self._options.now())
            self._queue.append(_Pending(line_type, encoded, timestamp, self._ordinal, note))
            if self._ordinal is not None:
                self._ordinal += 1
            self._wake()

    async def flush(self) -> None:
        """Return when everything recorded so far is in the file.

        Raises:
            WriteFailed: it is not; the lines stay queued for the next barrier.
        """
        await self._pass(_Barrier(sync=self._options.fsync == "line"))

    async def persist(self) -> None:
        """Make the file now, even if nothing but the first line is recorded (raises WriteFailed)."""
        await self._pass(_Barrier(sync=self._options.fsync == "line", create=True))

    async def end_turn(self) -> None:
        """Return when everything recorded so far would survive a loss of power, if settings ask for that.

        Raises:
            WriteFailed: as for `flush`.
        """
        await self._pass(_Barrier(sync=self._options.fsync != "never"))
        self._tell_landed()

    async def close(self) -> None:
        """Write what is left and give the thread up; after an error the recorder is still open and can be retried.

        Raises:
            WriteFailed: as for `flush`.
        """
        await self._pass(_Barrier(sync=self._options.fsync != "never", last=True))
        await anyio.to_thread.run_sync(self._join)
        self._tell_landed()

    def abandon(self) -> None:
        """Give the thread up without writing what is queued: for a caller that cannot wait any longer."""
        with self._changed:
            if not self._ended:
                self._abandoned = True
                self._queue.clear()
                self._barriers.append(_Barrier(sync=False, last=True))
                self._wake()
        self._join()

    async def __aenter__(self) -> Recorder:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):  # a cancelled session still writes what it recorded
            await self.close()

    async def _pass(self, barrier: _Barrier) -> None:
        with self._changed:
            if self._ended:
                self._settle(barrier)
            else:
                self._barriers.append(barrier)
                self._wake()
        await anyio.to_thread.run_sync(barrier.done.wait)
        if barrier.error is not None:
            raise barrier.error

    def _settle(self, barrier: _Barrier) -> None:
        """Answer a barrier that came when all was over."""
        if self._abandoned and not barrier.last:
            barrier.error = WriteFailed(f"{self.path} was abandoned.", hint="Resume the thread.", queued=0)
        barrier.done.set()

    def _wake(self) -> None:
        """Have a writer look for work; `_changed` is held."""
        if self._writer is not None:
            self._changed.notify()
        elif self._has_work():
            self._writer = threading.Thread(target=self._run, name=f"recorder-{self.thread_id[:8]}", daemon=True)
            self._writer.start()

    def _tell_landed(self) -> None:
        if self._options.landed is not None and self._exists:
            self._options.landed(self.path)

    def _join(self) -> None:
        """Wait for the end of the writer."""
        writer = self._writer
        if writer is not None:
            writer.join()

    # The rest runs on the writer's thread.

    def _run(self) -> None:
        while not self._ended:
            with self._changed:
                if not self._changed.wait_for(self._has_work, _REST_SECONDS):
                    self._writer = None
                    return
                barrier = self._barriers.popleft() if self._barriers else None
            if barrier is None:
                self._attempt(self._drain)
            else:
                self._serve(barrier)

    def _has_work(self) -> bool:
        """Say whether there is something to write: between barriers anything queued, after a failure only the next
        barrier.
        """
        return bool(self._barriers) or (bool(self._queue) and self._appender.is_open and not self._failed)

    def _attempt(self, action: Callable[[], None]) -> Exception | None:
        """Do something with the file; whatever goes wrong, the writer lives on to tell the next barrier."""
        try:
            action()
        except Exception as error:
            self._failed = True
            return error
        self._failed = False
        return None

    def _serve(self, barrier: _Barrier) -> None:
        error = None if self._abandoned else self._attempt(lambda: self._reach(barrier))
        if self._abandoned or (error is None and barrier.last):
            self._end(barrier)
            return
        if error is not None:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            barrier.error = WriteFailed(
                f"{self.path} could not be written: {reason.rstrip('.')}.",
                hint="Nothing is lost: free space or restore the folder, and it is written with the next step.",
                thread_id=self.thread_id,
                queued=len(self._queue),
            )
            barrier.error.__cause__ = error
        barrier.done.set()

    def _reach(self, barrier: _Barrier) -> None:
        self._materialise(create=barrier.create)
        if self._appender.is_open:
            self._drain()
            self._appender.check()
            if barrier.sync:
                self._appender.sync()

    def _end(self, barrier: _Barrier) -> None:
        """Give the thread up after a last barrier, unless something was recorded meanwhile."""
        with self._changed:
            if not self._abandoned and (self._queue if self._appender.is_open else len(self._queue) > 1):
                self._barriers.appendleft(barrier)
                return
            self._ended = True
            left = [barrier, *self._barriers]
            self._barriers.clear()
        self._give_up()
        for each in left:
            self._settle(each)

    def _give_up(self) -> None:
        with contextlib.suppress(OSError):
            self._appender.close()
        self._lock.release()

    def _materialise(self, *, create: bool) -> None:
        """Make the file once there is more to say than who is speaking."""
        if self._appender.is_open:
            return
        if self._exists or create or len(self._queue) > 1:
            self._appender.open(create=not self._exists)
            self._exists = True

    def _drain(self) -> None:
        while True:
            with self._changed:
                waiting = list(itertools.islice(self._queue, _BATCH_LINES))
            if not waiting:
                return
            self._lock.renew()
            # Blobs are safe from collection until their lines are in the file. What did not get there this time is
            # encoded again: that gives the same bytes, and stores blobs again that were collected meanwhile.
            with contextlib.ExitStack() as guard:
                lines = self._batch(waiting, guard)
                landed = self._appender.append(b"".join(lines)[self._written :])
            self._advance(lines, landed)

    def _batch(self, waiting: list[_Pending], guard: contextlib.ExitStack) -> list[bytes]:
        """Encode lines up to the batch size; blobs they need are safe from collection until `guard` ends."""
        lines: list[bytes] = []
        size = 0
        guarded = False
        for pending in waiting:
            if size >= _BATCH_BYTES:
                break
            spills = len(pending.payload) > self._options.blob_bytes or pending.line_type == "compacted"
            if spills and not guarded:
                guard.enter_context(locks.shared(self._options.home, blobs.LOCK))
                guarded = True
            lines.append(self._encode(pending, spills=spills))
            size += len(lines[-1])
        return lines

    def _advance(self, lines: list[bytes], landed: int) -> None:
        """Take out of the queue what is in the file: whole lines, and a part of the next."""
        self._written += landed
        with self._changed:
            for line in lines:
                if self._written < len(line) or not self._queue:
                    return
                self._written -= len(line)
                self._queue.popleft()

    def _encode(self, pending: _Pending, *, spills: bool) -> bytes:
        payload: Any = msgspec.Raw(pending.payload)
        refs: list[rollout.BlobRef] = []
        if spills:
            # What cannot be taken apart (nested too deep, numbers out of range) stays whole in its line.
            with contextlib.suppress(ValueError, RecursionError):
                whole = msgspec.json.decode(pending.payload)
                payload, refs = blobs.spill(pending.line_type, whole, self._store, self._options.blob_bytes)
        return rollout.encode(
            pending.line_type,
            payload,
            timestamp=pending.timestamp,
            ordinal=pending.ordinal,
            metadata=pending.metadata,
            blob=refs,
        )


def _next_ordinal(path: Path) -> int:
    """Return the ordinal after that of the newest line that has one."""
    for record in reader.backward(path):
        if isinstance(record, rollout.Line) and record.ordinal is not None and record.ordinal >= 0:
            if record.ordinal >= _LAST_ORDINAL:
                raise LedgerError(f"{path} has no ordinal left to go on with.", hint="Fork the thread as a copy.")
            return record.ordinal + 1
    return 0
