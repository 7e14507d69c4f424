"""Reading one session file, from the front or from the back, in memory that no file can exhaust.

`forward` streams a plain or compressed file; `backward` scans a plain one from its end, so that whoever needs only
the newest lines reads only those. Both yield the same records in opposite order: a `Line` for each usable line and
a `Skipped` for each stretch that is not (torn, not JSON, too long, …). Blank lines are no records.

A session that another host keeps in a store is read from there (`store.stubs`); `_opened` is the one place that knows.

A line above `max_line` is measured and reported but never held. A last line without a newline counts when it is
whole; otherwise it is reported as torn: a crash in the middle of a write looks like that.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from commonplace.errors import LedgerError, NotASession
from commonplace.protocol.rollout import (
    MAX_LINE_BYTES,
    MAX_LINE_VALUES,
    Line,
    LineError,
    Skipped,
    decode,
    decode_envelope,
)
from commonplace.rollout import zstd_frames
from commonplace.rollout.store import stubs
from commonplace.rollout.zstd_frames import ReadAt

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Record = Line | Skipped

_FIRST_CHUNK: Final = 64 * 1024
_LARGEST_CHUNK: Final = 256 * 1024
"""Backward reads start small, for the many short tails, and grow for the few long ones."""
_SMALLEST_BUFFER: Final = 4096
_PLAIN_BYTES: Final = MAX_LINE_VALUES
"""Lines up to this size cannot hold too many values."""
_ZSTD_WINDOW: Final = 2**27
"""Refuse frames that ask for more than 128 MiB of window: bounds the decompressor's memory."""


_MANY_EMPTY: Final = 4096
"""After so many empty lines in a row it pays to look at a buffer as a whole."""
_FREE_LINES: Final = 10_000
_LINES_PER_BYTE: Final = 4
"""A compressed file may hold so many lines, and so many for each of its bytes; sessions hold fewer than one."""
_FREE_BYTES: Final = 64 * 2**20
_EXPANSION: Final = 500
"""The same for bytes, and how many times its size; sessions take 5 to 50 times."""
_FREE_BYTES_OF_LONG_LINES: Final = 2 * 2**30
"""The same with the lines that are too long: each costs little, and is told."""


DAMAGE: Final = frozenset({"damaged", "cut_short"})
"""Why a compressed file cannot be read to its end."""


class Meter:
    """Counts the bytes that a reader took from its file."""

    __slots__ = ("bytes_read",)

    def __init__(self) -> None:
        self.bytes_read = 0


def is_compressed(path: Path) -> bool:
    """Say whether a file is a compressed rollout, by its name."""
    return path.name.endswith(".zst")


@contextmanager
def open_session(path: Path, damage: list[str] | None = None) -> Generator[BinaryIO]:
    """Open a session file for reading, decompressed if need be.

    With a list for `damage`, a compressed file that is damaged or was cut short ends where it can be read no further,
    and the list gets why; without one, that is an error while it is read.

    Raises:
        NotASession: there is no such file, or it is not a file.
        LedgerError: it cannot be opened.
    """
    with _opened(path) as (file, read_at, size):
        frames = _Frames(file, read_at, size, path, damage) if is_compressed(path) else None
        yield file if frames is None else io.BufferedReader(frames, _LARGEST_CHUNK)


@contextmanager
def _opened(path: Path) -> Generator[tuple[BinaryIO, ReadAt, int]]:
    """Open a file, here or in a store: as a stream, as what reads bytes at any place, and its size."""
    if stubs.is_remote(path):
        there = stubs.of_path(path).open(path)
        with there.stream() as file:
            yield file, there.read_at, there.size
        return
    try:
        # O_NONBLOCK keeps a FIFO in a session folder from hanging the reader; regular files ignore it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotASession(f"There is no file {path}.", hint="Check the path.", path=str(path)) from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NotASession(f"{path} is not a file.", hint="Name a session file, a thread id or a thread name.")
    buffering = max(_SMALLEST_BUFFER, min(status.st_size, _LARGEST_CHUNK))
    with os.fdopen(descriptor, "rb", buffering=buffering) as file:
        yield file, partial(_pread, descriptor), status.st_size


def _pread(descriptor: int, length: int, offset: int) -> bytes:
    return os.pread(descriptor, length, offset)


def _unreadable(path: Path, error: Exception) -> LedgerError:
    reason = getattr(error, "strerror", None) or str(error)
    return LedgerError(f"{path} cannot be read: {reason}.", hint="Check its permissions.")


class _Frames(io.RawIOBase):
    """The text inside a compressed file; damage becomes an error of ours, and so does a file that was cut short."""

    def __init__(self, file: BinaryIO, read_at: ReadAt, size: int, path: Path, damage: list[str] | None = None) -> None:
        import zstandard

        self._path = path
        self._damage = damage
        """Gets why the text ends early; None: that is an error."""
        self._is_whole = partial(zstd_frames.is_whole, read_at, size)
        self._bytes_left = _FREE_BYTES_OF_LONG_LINES + _EXPANSION * size
        self._text_left = _FREE_BYTES + _EXPANSION * size
        self._begun = 0
        """How many bytes were read since a line ended."""
        self._lines_left = _FREE_LINES + _LINES_PER_BYTE * size
        self._error = zstandard.ZstdError
        self._stream = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(
            file, read_size=_LARGEST_CHUNK, read_across_frames=True
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if self._damage:
            return 0
        try:
            count = self._stream.readinto(buffer)  # pyright: ignore[reportUnknownMemberType]
        except self._error as error:
            return self._ends("damaged", str(error))
        if not count and not self._is_whole():
            return self._ends("cut_short", "it was cut short")
        lines = bytes(memoryview(buffer)[:count]).count(b"\n")
        self._bytes_left -= count
        self._begun += count
        if lines:
            self._text_left -= self._begun if self._begun <= MAX_LINE_BYTES else count
            self._begun = 0
        self._lines_left -= lines
        if min(self._bytes_left, self._text_left, self._lines_left) < 0:
            raise self._damaged("it unpacks to far more lines or bytes than a session of its size has")
        return count

    def _ends(self, reason: str, why: str) -> int:
        if self._damage is None:
            raise self._damaged(why)
        self._damage.append(reason)
        return 0

    def _damaged(self, why: str) -> LedgerError:
        return LedgerError(f"{self._path} is damaged: {why}.", hint="Restore the file from a backup.")


def forward(
    path: Path, *, start: int = 0, end: int | None = None, max_line: int = MAX_LINE_BYTES, meter: Meter | None = None
) -> Iterator[Record]:
    """Yield the records of a file from byte `start` to byte `end` (of the decompressed text), oldest first.

    Raises:
        NotASession, LedgerError: see `open_session`.
    """
    meter = meter or Meter()
    damage: list[str] = []
    with open_session(path, damage) as file:
        if start:
            _skip_to(file, start, compressed=is_compressed(path))
        offset, limit, empty = start, max_line + 1, 0
        # Bound once, and the common case without a call: this loop decides how fast anything is indexed.
        readline, parse, plain_bytes = file.readline, decode_envelope, _PLAIN_BYTES
        try:
            while raw := readline(limit if end is None else max(0, min(limit, end - offset))):
                size = len(raw)
                if size <= plain_bytes and raw.isascii() and raw[-1] == 10:
                    try:
                        line = parse(raw)
                    except (msgspec.DecodeError, RecursionError):
                        line = None
                    if line is not None:
                        line.offset, line.size = offset, size - 1
                        offset += size
                        yield line
                        continue
                if raw == b"\n":
                    empty += 1
                    offset += size + (_skip_breaks(file) if end is None and empty % _MANY_EMPTY == 0 else 0)
                    continue
                empty = 0
                record, size = _careful(file, raw, offset, end, max_line)
                offset += size
                if record is not None:
                    yield record
            if damage:
                yield Skipped(offset, 0, damage[0])
        except OSError as error:
            raise _unreadable(path, error) from error
        finally:
            meter.bytes_read += offset - start


def _skip_to(file: BinaryIO, start: int, *, compressed: bool) -> None:
    if not compressed:
        file.seek(start)
        return
    left = start
    while left and (piece := file.read(min(left, _LARGEST_CHUNK))):
        left -= len(piece)


def _skip_breaks(file: BinaryIO) -> int:
    """Pass over the line breaks that come next, and return how many; millions of empty lines must cost nothing."""
    if not isinstance(file, io.BufferedReader):
        return 0
    count = 0
    while (ahead := file.peek()) and (breaks := len(ahead) - len(ahead.lstrip(b"\n"))):
        file.read(breaks)
        count += breaks
    return count


def _careful(file: BinaryIO, raw: bytes, offset: int, end: int | None, max_line: int) -> tuple[Record | None, int]:
    """Return the record of a line that is not plainly one, and how many bytes it took."""
    size = len(raw)
    terminated = raw.endswith(b"\n")
    if size <= max_line or terminated:
        return record_of(raw[:-1] if terminated else raw, offset, terminated=terminated), size
    while not terminated and (end is None or offset + size < end):  # too long: measure it, a bounded piece at a time
        piece = file.readline(_LARGEST_CHUNK if end is None else min(_LARGEST_CHUNK, end - offset - size))
        if not piece:
            break
        size += len(piece)
        terminated = piece.endswith(b"\n")
    return Skipped(offset, size - terminated, "too_long"), size


def record_of(raw: bytes, offset: int, *, terminated: bool) -> Record | None:
    """Make the record of one line's bytes (without its newline); None for a blank line."""
    try:
        line = decode(raw if offset else raw.removeprefix(codecs.BOM_UTF8))
    except LineError as error:
        if not raw.strip():
            return None
        return Skipped(offset, len(raw), str(error) if terminated else "torn")
    line.offset = offset
    return line


def _plain(raw: bytes, offset: int, max_line: int) -> Line | None:
    """Make the record of a line if it is plainly a usable one."""
    if len(raw) > min(_PLAIN_BYTES, max_line) or not raw.isascii():
        return None
    try:
        line = decode_envelope(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    line.offset, line.size = offset, len(raw)
    return line


class _OpenLine:
    """The part of a line that was read so far, from its end towards its start; if too long it is only measured."""

    __slots__ = ("length", "limit", "pieces")

    def __init__(self, limit: int) -> None:
        self.pieces: list[bytes] = []
        self.length = 0
        self.limit = limit

    def add(self, piece: bytes) -> None:
        self.length += len(piece)
        if self.length > self.limit:
            self.pieces.clear()
        elif piece:
            self.pieces.append(piece)

    def close(self, offset: int, *, terminated: bool) -> Record | None:
        """Return the finished line's record and begin with the line before it."""
        length, raw = self.length, b"".join(reversed(self.pieces))
        self.pieces, self.length = [], 0
        if length > self.limit:
            return Skipped(offset, length, "too_long")
        return record_of(raw, offset, terminated=terminated)


def backward(
    path: Path, *, end: int | None = None, max_line: int = MAX_LINE_BYTES, meter: Meter | None = None
) -> Iterator[Record]:
    """Yield the records of a plain file before byte `end`, newest first, reading no more than is asked for.

    Raises:
        NotASession, LedgerError: see `open_session`.
    """
    if is_compressed(path):
        raise LedgerError(f"{path} is compressed and cannot be read from its end.", hint="Read it forwards.")
    with _opened(path) as (_, read_at, size):
        stop = size if end is None else max(0, min(end, size))
        try:
            yield from _split_backward(read_at, stop, max_line, meter or Meter())
        except OSError as error:
            raise _unreadable(path, error) from error


def _split_backward(read_at: ReadAt, position: int, max_line: int, meter: Meter) -> Iterator[Record]:
    terminated = position == 0 or read_at(1, position - 1) == b"\n"
    position -= terminated and position > 0
    line = _OpenLine(max_line)
    chunk = _FIRST_CHUNK
    while position > 0:
        start = max(0, position - chunk)
        data = read_at(position - start, start)
        meter.bytes_read += len(data)
        chunk = min(chunk * 2, _LARGEST_CHUNK)
        stop = len(data)
        while (newline := data.rfind(b"\n", 0, stop)) >= 0:
            raw, stop = data[newline + 1 : stop], newline
            record = None if line.length else _plain(raw, start + newline + 1, max_line)
            if record is None:
                line.add(raw)
                record = line.close(start + newline + 1, terminated=terminated)
            terminated = True
            if record is not None:
                yield record
        line.add(data[:stop])
        position = start
    if (record := line.close(0, terminated=terminated)) is not None:
        yield record
