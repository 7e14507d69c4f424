"""Reading one session file, from the front or from the back, in memory that no file can exhaust.

`forward` streams a plain or compressed file; `backward` scans a plain one from its end, so that whoever needs only
the newest lines reads only those. Both yield the same records in opposite order: a `Line` for each usable line and
a `Skipped` for each stretch that is not (torn, not JSON, too long, …). Blank lines are no records.

A line above `max_line` is measured and reported but never held. A last line without a newline counts when it is
whole; otherwise it is reported as torn: a crash in the middle of a write looks like that.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from commonplace.errors import LedgerError, NotASession
from commonplace.protocol.rollout import MAX_LINE_BYTES, Line, LineError, Skipped, decode

Record = Line | Skipped

_FIRST_CHUNK: Final = 64 * 1024
_LARGEST_CHUNK: Final = 1024 * 1024
"""Backward reads start small, for the many short tails, and grow for the few long ones."""
_ZSTD_WINDOW: Final = 2**27
"""Refuse frames that ask for more than 128 MiB of window: bounds the decompressor's memory."""


class Meter:
    """Counts the bytes that a reader took from its file."""

    __slots__ = ("bytes_read",)

    def __init__(self) -> None:
        self.bytes_read = 0


def is_compressed(path: Path) -> bool:
    """Say whether a file is a compressed rollout, by its name."""
    return path.name.endswith(".zst")


@contextmanager
def open_session(path: Path) -> Generator[BinaryIO]:
    """Open a session file for reading, decompressed if need be.

    Raises:
        NotASession: there is no such file, or it is not a file.
        LedgerError: it cannot be opened.
    """
    try:
        # O_NONBLOCK keeps a FIFO in a session folder from hanging the reader; regular files ignore it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotASession(f"There is no file {path}.", hint="Check the path.", path=str(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LedgerError(f"{path} cannot be read: {reason}.", hint="Check its permissions.") from error
    with os.fdopen(descriptor, "rb", buffering=_FIRST_CHUNK) as file:
        if not _is_regular(descriptor):
            raise NotASession(f"{path} is not a file.", hint="Name a session file, a thread id or a thread name.")
        yield _decompressed(file) if is_compressed(path) else file


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _decompressed(file: BinaryIO) -> BinaryIO:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(
        file, read_size=_LARGEST_CHUNK, read_across_frames=True
    )
    return io.BufferedReader(cast("io.RawIOBase", reader), _LARGEST_CHUNK)


def forward(
    path: Path,
    *,
    start: int = 0,
    end: int | None = None,
    max_line: int = MAX_LINE_BYTES,
    meter: Meter | None = None,
) -> Iterator[Record]:
    """Yield the records of a file from byte `start` to byte `end` (of the decompressed text), oldest first.

    Raises:
        NotASession, LedgerError: see `open_session`; also for damaged compression.
    """
    with open_session(path) as file:
        if start:
            _skip_to(file, start, compressed=is_compressed(path))
        try:
            yield from _split(file, start, end, max_line, meter or Meter())
        except Exception as error:
            if type(error).__module__.startswith("zstandard"):
                raise LedgerError(f"{path} is damaged: {error}.", hint="Restore the file from a backup.") from error
            raise


def _skip_to(file: BinaryIO, start: int, *, compressed: bool) -> None:
    if not compressed:
        file.seek(start)
        return
    left = start
    while left and (piece := file.read(min(left, _LARGEST_CHUNK))):
        left -= len(piece)


def _split(file: BinaryIO, start: int, end: int | None, max_line: int, meter: Meter) -> Iterator[Record]:
    offset = start
    readline = file.readline
    while end is None or offset < end:
        raw = readline(max_line + 1 if end is None else min(max_line + 1, end - offset))
        if not raw:
            return
        size = len(raw)
        meter.bytes_read += size
        terminated = raw.endswith(b"\n")
        if size > max_line and not terminated:
            rest, terminated = _discard_line(file, end, offset + size)
            meter.bytes_read += rest
            yield Skipped(offset, size + rest - terminated, "too_long")
            offset += size + rest
            continue
        record = _record(raw[:-1] if terminated else raw, offset, terminated=terminated)
        if record is not None:
            yield record
        offset += size


def _discard_line(file: BinaryIO, end: int | None, position: int) -> tuple[int, bool]:
    """Read to the end of an oversized line, a bounded piece at a time; return how much, and if it had a newline."""
    dropped = 0
    while end is None or position + dropped < end:
        piece = file.readline(_LARGEST_CHUNK if end is None else min(_LARGEST_CHUNK, end - position - dropped))
        dropped += len(piece)
        if piece.endswith(b"\n"):
            return dropped, True
        if not piece:
            break
    return dropped, False


def _record(raw: bytes, offset: int, *, terminated: bool) -> Record | None:
    """Make the record of one line's bytes (without its newline); None for a blank line."""
    try:
        line = decode(raw)
    except LineError as error:
        if not raw.strip():
            return None
        return Skipped(offset, len(raw), str(error) if terminated else "torn")
    line.offset = offset
    return line


def backward(
    path: Path, *, end: int | None = None, max_line: int = MAX_LINE_BYTES, meter: Meter | None = None
) -> Iterator[Record]:
    """Yield the records of a plain file before byte `end`, newest first, reading no more than is asked for.

    Raises:
        NotASession, LedgerError: see `open_session`.
    """
    with open_session(path) as file:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size
        yield from _split_backward(descriptor, size if end is None else min(end, size), max_line, meter or Meter())


class _OpenLine:
    """The part of a line that was read so far, from its end towards its start."""

    __slots__ = ("length", "limit", "pieces", "terminated")

    def __init__(self, limit: int, *, terminated: bool) -> None:
        self.pieces: list[bytes] = []
        self.length = 0
        self.limit = limit
        self.terminated = terminated

    def add(self, piece: bytes) -> None:
        self.length += len(piece)
        if self.length > self.limit:
            self.pieces.clear()
        elif piece:
            self.pieces.append(piece)

    def close(self, offset: int) -> Record | None:
        """Return the finished line's record and start on the line before it."""
        length, terminated = self.length, self.terminated
        raw = b"".join(reversed(self.pieces))
        self.pieces, self.length, self.terminated = [], 0, True
        if length > self.limit:
            return Skipped(offset, length, "too_long")
        return _record(raw, offset, terminated=terminated)


def _split_backward(descriptor: int, position: int, max_line: int, meter: Meter) -> Iterator[Record]:
    terminated = position == 0 or os.pread(descriptor, 1, position - 1) == b"\n"
    position -= terminated and position > 0
    line = _OpenLine(max_line, terminated=terminated)
    chunk = _FIRST_CHUNK
    while position > 0:
        start = max(0, position - chunk)
        data = os.pread(descriptor, position - start, start)
        meter.bytes_read += len(data)
        stop = len(data)
        while (newline := data.rfind(b"\n", 0, stop)) >= 0:
            line.add(data[newline + 1 : stop])
            if (record := line.close(start + newline + 1)) is not None:
                yield record
            stop = newline
        line.add(data[:stop])
        position = start
        chunk = min(chunk * 2, _LARGEST_CHUNK)
    if (record := line.close(0)) is not None:
        yield record
