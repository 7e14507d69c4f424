"""The output of a command: kept in bounded memory, and cut for a model without reading all of it back.

Text is kept as UTF-8, first in memory, above a bound in an unnamed temporary file. Of a very large output the beginning
and the end are kept, and the text says how much is missing.

Invariant: `report` gives the same text as `context.truncate.exec_output` would give for the whole output.
"""

from __future__ import annotations

import contextlib
import tempfile
from typing import Final

from commonplace.context.tokens import BYTES_PER_TOKEN
from commonplace.context.truncate import TruncationPolicy, count_lines, exec_output, split_middle, truncate

IN_MEMORY: Final = 2**20
"""Bytes that are kept in memory before a temporary file is used."""
KEPT: Final = 64 * 2**20
"""How much of the beginning is kept; what is printed after it goes through a window of `LAST` bytes."""
LAST: Final = 2**20
"""How much of the end is kept of an output that is larger than `KEPT`."""


class CommandOutput:
    """The text that one command printed so far; `add` it as it comes."""

    def __init__(self, *, in_memory: int = IN_MEMORY, kept: int = KEPT, last: int = LAST) -> None:
        self._in_memory = in_memory
        self._kept = kept
        self._last = last
        self._file = tempfile.SpooledTemporaryFile[bytes](max_size=in_memory)
        self._stored = 0
        self._tail = bytearray()
        self._newlines = 0
        self._ends_line = True
        self.size = 0
        """In bytes of UTF-8."""
        self.characters = 0

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self._file.close()

    def add(self, text: str) -> None:
        """Append text (raises OSError: the disk has no room for it)."""
        if not text:
            return
        data = text.encode("utf-8", "replace")
        self.size += len(data)
        self.characters += len(text)
        self._newlines += data.count(b"\n")
        self._ends_line = data.endswith(b"\n")
        if self._stored < self._kept:
            end = _boundary(data, self._kept - self._stored)
            self._file.write(data[:end])
            self._stored += end
            data = data[end:]
            if data:
                self._kept = self._stored  # a character that did not fit: nothing may follow it here
        self._tail += data
        if len(self._tail) > 2 * self._last:
            del self._tail[: len(self._tail) - self._last]

    @property
    def lines(self) -> int:
        """How many lines were printed; a last line without an end counts."""
        return self._newlines + (not self._ends_line)

    @property
    def missing(self) -> int:
        """How many bytes between the beginning and the end are not kept."""
        return self.size - self._stored - len(_whole(self._tail))

    def text(self) -> str:
        """Return everything that is kept; where something is missing, a line says so."""
        begin = self._read(0, self._stored).decode()
        end = _whole(self._tail).decode()
        missing = self.missing
        return f"{begin}\n[{missing} bytes are not kept]\n{end}" if missing else begin + end

    def cut(self, policy: TruncationPolicy) -> str:
        """Return the text as a model gets it, with its middle cut out if it is over budget."""
        if self.size <= max(self._in_memory, 4 * policy.budget) and not self.missing:
            return truncate(self.text(), policy)
        front = _trimmed(self._read(0, policy.budget + 4))
        back = self._back(policy.budget + 4)
        pieces = split_middle(front + back, policy)
        assert pieces is not None  # together they hold more than the budget
        head, _, tail = pieces
        if policy.mode == "bytes":
            return f"{head}…{self.characters - len(head) - len(tail)} chars truncated…{tail}"
        return f"{head}…{-(-(self.size - policy.budget) // BYTES_PER_TOKEN)} tokens truncated…{tail}"

    def report(self, code: int, seconds: float, policy: TruncationPolicy) -> str:
        """Return exit code, time and output as a model gets them when the command has ended."""
        body = self.cut(policy)
        head = exec_output(code, seconds, "", policy)
        if self.lines != count_lines(body):
            head = head.removesuffix("Output:\n") + f"Total output lines: {self.lines}\nOutput:\n"
        return head + body

    def _read(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        data = self._file.read(size)
        self._file.seek(0, 2)
        return data

    def _back(self, size: int) -> str:
        """Return about `size` bytes of the end, without a broken first character."""
        tail = bytes(self._tail[-size:])
        if len(tail) < size and not self.missing:
            more = size - len(tail)
            tail = self._read(max(self._stored - more, 0), more) + tail
        return _whole(tail).decode()


def _boundary(data: bytes, at: int) -> int:
    """Return the largest offset up to `at` where a character begins."""
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return min(at, len(data))


def _whole(data: bytes | bytearray) -> bytes:
    """Return the bytes from the first whole character on."""
    first = 0
    while first < min(len(data), 4) and data[first] & 0xC0 == 0x80:
        first += 1
    return bytes(data[first:])


def _trimmed(data: bytes) -> str:
    """Return the text without a broken character at its end."""
    return data.decode(errors="ignore")
