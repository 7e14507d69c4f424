"""Lines of another program's JSON file: their bytes, where they stand, and what is wrong with them.

`read_lines` cuts a file at its newlines, a block at a time, and says at which byte each line begins. What it yields is
UTF-8 without newlines, at most `limit` bytes long; whether it is JSON is for whoever decodes it to find out. A
last line without its newline counts when it is a whole object or array, which nothing that is appended could change;
otherwise it is torn, and reading may begin there again when the file has grown.

`repair` makes up for one habit of JavaScript: its strings may hold half of a surrogate pair, which JSON can spell but
no Unicode text can hold.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import msgspec

from commonplace.errors import LedgerError
from commonplace.importers.converter import MAX_RECORD_BYTES, TORN
from commonplace.patterns import regex
from commonplace.protocol.rollout import Skipped
from commonplace.rollout.reader import is_compressed, open_session

T = TypeVar("T")

NOT_JSON: Final = "not_json"
TOO_LONG: Final = "too_long"
INVALID_UTF8: Final = "invalid_utf8"
NUL_BYTES: Final = "nul_bytes"
"""Blocks of zeros that a crash of the machine left in place of text; a line may go on behind them."""
NOT_A_RECORD: Final = "not_a_record"
"""JSON, but without what every record of its kind has."""
UNKNOWN_TYPE: Final = "unknown_type"
TOO_DENSE: Final = "too_dense"
EMPTY: Final = "empty"
DUPLICATE: Final = "duplicate"

MAX_DOCUMENT_BYTES: Final = 64 * 2**20
"""Longest document that is one JSON value from its first byte to its last: such a thing must be loaded whole."""

_raw: Final = msgspec.json.Decoder(msgspec.Raw)
_BLOCK: Final = 2**20
"""How many bytes are read at a time."""
_BOM: Final = codecs.BOM_UTF8

_HEX2 = rb"[0-9a-fA-F]{2}"
_HIGH = rb"\\u[dD][89abAB]" + _HEX2
_LOW = rb"\\u[dD][c-fC-F]" + _HEX2
_SUSPECT = regex(
    rb"\\\\u[dD]" + rb"|" + _HIGH + rb"(?!" + _LOW + rb")" + rb"|" + rb"(?<!" + _HIGH + rb")" + _LOW, re.DOTALL
)
"""Finds every lone half, and a little more: escaped backslashes in front of a `u` are looked at closely."""
_PAIR = regex(_HIGH + _LOW)
_HALVES = regex(rb"(?<!\\)(?P<before>(?:\\\\)*)(?:" + _HIGH + _LOW + rb"|(?P<lone>" + _HIGH + rb"|" + _LOW + rb"))")
"""Whole pairs and lone halves; in front of each, the escaped backslashes that are none of its own."""


def repair(raw: bytes) -> bytes:
    r"""Return JSON text in which each half of a surrogate pair that stands alone has become `\ufffd`."""
    halves = raw.count(b"\\ud") + raw.count(b"\\uD") if b"\\u" in raw else 0
    if not halves:
        return raw
    # Where all stand in pairs, a look at each place would find nothing, and takes ten times as long.
    are_paired = b"\\\\u" not in raw and halves == 2 * len(_PAIR.findall(raw))
    if are_paired or _SUSPECT.search(raw) is None:
        return raw
    return _HALVES.sub(lambda found: found["before"] + rb"\ufffd" if found["lone"] else found[0], raw)


def decode_repaired(decode: Callable[[bytes], T], raw: bytes) -> T:
    """Return what a decoder makes of JSON text; the text is repaired only where the decoder refuses it.

    Raises:
        msgspec.DecodeError, RecursionError: it is not JSON, or not what the decoder takes.
    """
    try:
        return decode(raw)
    except msgspec.DecodeError:
        repaired = repair(raw)
        if repaired is raw:
            raise
        return decode(repaired)


def read_lines(path: Path, start: int = 0, limit: int = MAX_RECORD_BYTES) -> Iterator[tuple[int, bytes] | Skipped]:
    """Yield the offset and the bytes of each line from byte `start` on; blank lines are no lines.

    Raises:
        NotASession, LedgerError: the file is not there, is no file, or cannot be read.
    """
    try:
        with open_session(path) as file:
            offset = _begin(file, start, compressed=is_compressed(path))
            yield from _cut(file, offset, limit)
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror}.", hint="Check the disk.") from error


def _cut(file: BinaryIO, offset: int, limit: int) -> Iterator[tuple[int, bytes] | Skipped]:
    pieces: list[bytes] = []
    length = 0
    while block := file.read(_BLOCK):
        newline = block.find(b"\n")
        if newline < 0:
            length += len(block)
            _hold(pieces, block, length, limit)
            continue
        begin = 0
        if length:  # the line that reaches into this block
            length += newline
            _hold(pieces, block[:newline], length, limit)
            line, pieces = b"".join(pieces), []  # not both: they may be long
            yield from _line(line, offset, length, limit)
            offset, begin = offset + length + 1, newline + 1
        end = block.rfind(b"\n") + 1
        if end > begin:
            chunk = block[begin : end - 1]
            yield from _lines(chunk, offset, limit)
            offset += end - begin
        pieces = [block[end:]]
        length = len(block) - end
    if length:
        yield from _tail(b"".join(pieces), offset, length, limit)


def _begin(file: BinaryIO, start: int, *, compressed: bool) -> int:
    """Move to the first byte that is wanted, past the mark that some editors put in front."""
    if compressed:
        left = start
        while left and (piece := file.read(min(left, _BLOCK))):
            left -= len(piece)
        return start
    file.seek(start)
    if start == 0 and file.read(len(_BOM)) == _BOM:
        return len(_BOM)
    file.seek(start)
    return start


def _hold(pieces: list[bytes], piece: bytes, length: int, limit: int) -> None:
    """Keep the next piece of an open line, or none of it once the line is too long."""
    if length > limit:
        pieces.clear()
    else:
        pieces.append(piece)


def _lines(chunk: bytes, offset: int, limit: int) -> Iterator[tuple[int, bytes] | Skipped]:
    """Return the lines of a chunk, without a step of Python for each if nothing in it is odd."""
    lines = chunk.split(b"\n")
    odd = b"\0" in chunk or b"\r" in chunk or b"" in lines or any(map(bytes.isspace, lines))
    if not odd and len(chunk) <= limit and all(map(is_text, lines)):
        starts = accumulate(map(len, lines), lambda start, length: start + length + 1, initial=offset)
        return zip(starts, lines, strict=False)
    return _careful(lines, offset, limit)


def _careful(lines: list[bytes], offset: int, limit: int) -> Iterator[tuple[int, bytes] | Skipped]:
    for line in lines:
        yield from _line(line, offset, len(line), limit)
        offset += len(line) + 1


def _line(line: bytes, offset: int, length: int, limit: int) -> Iterator[tuple[int, bytes] | Skipped]:
    """Yield one line after a close look; `length` is its true length, whatever was kept of it."""
    if length > limit:
        yield Skipped(offset, length, TOO_LONG)
        return
    if line.startswith(b"\0"):
        rest = line.lstrip(b"\0")
        zeros = len(line) - len(rest)
        yield Skipped(offset, zeros, NUL_BYTES)
        line, offset = rest, offset + zeros
    if line.endswith(b"\r"):
        line = line[:-1]
    if not line or line.isspace():
        return
    if is_text(line):
        yield offset, line
    else:
        yield Skipped(offset, len(line), INVALID_UTF8)


def _tail(line: bytes, offset: int, length: int, limit: int) -> Iterator[tuple[int, bytes] | Skipped]:
    """Yield what stands behind the last newline."""
    if length <= limit and (line.isspace() or is_whole(line)):
        yield from _line(line, offset, length, limit)
    else:
        yield Skipped(offset, length, TORN)


def is_whole(raw: bytes) -> bool:
    """Say whether bytes are one finished JSON object or array."""
    if raw.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        decode_repaired(_raw.decode, raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def is_text(raw: bytes) -> bool:
    """Say whether bytes are UTF-8, looking at a block at a time: whole, the text may take four times the space."""
    if raw.isascii():
        return True
    if len(raw) <= _BLOCK:
        return _is_utf8(raw)
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(raw)
    try:
        for start in range(0, len(raw), _BLOCK):
            decoder.decode(view[start : start + _BLOCK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_document(path: Path) -> bytes | Skipped:
    """Return the bytes of a file that is one JSON value, repaired; Skipped where it is too long or no text.

    Raises:
        NotASession, LedgerError: see `read_lines`.
    """
    raw = read_text(path)
    return raw if isinstance(raw, Skipped) else repair(raw)


def read_text(path: Path) -> bytes | Skipped:
    """Return the bytes of a file that is UTF-8, without a mark in front; Skipped where it is too long or no text.

    Raises:
        NotASession, LedgerError: see `read_lines`.
    """
    with open_session(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_DOCUMENT_BYTES:
            return Skipped(0, size, TOO_LONG)
        # Not the limit at once: that much would be set aside first, however short the file is.
        raw = file.read(MAX_DOCUMENT_BYTES + 1 if is_compressed(path) else size + 1)
    if len(raw) > MAX_DOCUMENT_BYTES:
        return Skipped(0, len(raw), TOO_LONG)
    if not is_text(raw):
        return Skipped(0, len(raw), INVALID_UTF8)
    return raw.removeprefix(_BOM)


def walk(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder in the order of their names; links to folders are not followed."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(place, name)
            if path.is_file():
                yield path
