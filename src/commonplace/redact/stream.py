"""Redacting a stream of bytes in bounded memory.

Data is collected until there is a step's worth, scanned together with the `CONTEXT` before it, and given out except for
the last `AHEAD` bytes, in which a secret may begin whose end is not there yet. So every rule sees as much as it can see
in the whole text, and the result is the same however the stream was cut. Two things go beyond that window: a key block
that is longer than it is followed by a state, and `flush` gives out complete lines at once, for input that pauses.

Memory is bounded by `CONTEXT + AHEAD + STEP` and the size of a piece, also when there is no line break at all.
"""

from __future__ import annotations

from typing import Final

from commonplace.redact import blocks, spans
from commonplace.redact.near import AHEAD, CONTEXT
from commonplace.redact.spans import SecretSpan

STEP: Final = 256 * 1024
"""How much new data makes a scan worth while; scanning the window again costs a quarter of it."""


class Redactor:
    """Takes bytes in pieces of any size, gives them back with secrets replaced. Bytes that are no text pass."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._done = 0
        self._begun = False
        self._in_block = False
        self.counts: dict[str, int] = {}

    def feed(self, data: bytes) -> bytes:
        """Take a piece; return what is certain by now."""
        out: list[bytes] = []
        for at in range(0, max(len(data), 1), STEP):
            self._data += data[at : at + STEP]
            if self._in_block:
                self._skip_block(final=False)
            if len(self._data) - self._done >= AHEAD + STEP:
                out.append(self._emit(len(self._data) - AHEAD))
        return b"".join(out)

    def flush(self) -> bytes:
        """Return the complete lines that are there, except for a key block that has not ended.

        What follows is judged with these lines before it, but not the other way round.
        """
        if self._in_block:
            self._skip_block(final=False)
        end = self._data.rfind(b"\n") + 1
        return self._emit(end) if end > self._done else b""

    def close(self) -> bytes:
        """Return the rest."""
        if self._in_block:
            self._skip_block(final=True)
        return self._emit(len(self._data), final=True)

    def _emit(self, limit: int, *, final: bool = False) -> bytes:
        """Give out what stands before the limit, whole secrets only, and forget what no rule can need again."""
        from commonplace.redact.scan import scan

        data = bytes(self._data)
        found = [one for one in scan(data, cut=self._begun) if one.start >= self._done]
        block = None if final else self._open_block(data, found)
        limit = min([limit, *([block.start] if block else []), *(one.start for one in found if one.end > limit)])
        out = self._replaced(data, found, limit)
        if block is not None and len(data) - limit >= AHEAD + STEP:
            return out + self._enter_block(data, block)
        self._keep(limit)
        return out

    def _replaced(self, data: bytes, found: list[SecretSpan], limit: int) -> bytes:
        """Return the data from what was given out up to the limit, with its secrets replaced and counted."""
        ended = [one for one in found if one.end <= limit]
        for one in ended:
            self.counts[one.kind] = self.counts.get(one.kind, 0) + 1
        moved = [SecretSpan(one.start - self._done, one.end - self._done, one.kind, one.fill) for one in ended]
        return spans.apply(data[self._done : limit], moved)

    def _open_block(self, data: bytes, found: list[SecretSpan]) -> SecretSpan | None:
        """Return a key block that the data may cut off."""
        last = [one for one in found if one.kind in blocks.KINDS and one.end >= len(data) - blocks.SLACK]
        return last[-1] if last and blocks.END.match(data, last[-1].end) is None else None

    def _enter_block(self, data: bytes, block: SecretSpan) -> bytes:
        """A block is longer than the window: give out one mark for it and skip what follows until it ends."""
        self._data = bytearray(blocks.resume(data))
        self._done = 0
        self._begun = self._in_block = True
        self.counts[block.kind] = self.counts.get(block.kind, 0) + 1
        return spans.MARK_BYTES

    def _skip_block(self, *, final: bool) -> None:
        data = bytes(self._data)
        end, is_open = blocks.body_end(data, 0)
        if is_open and not final:
            self._data = bytearray(blocks.resume(data))
            return
        self._in_block = False
        del self._data[:end]

    def _keep(self, limit: int) -> None:
        drop = max(0, limit - CONTEXT)
        if drop:
            del self._data[:drop]
            self._begun = True
        self._done = limit - drop
