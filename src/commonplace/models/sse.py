"""Server-sent events: bytes in any pieces become whole events.

The decoder is a value machine without I/O: feed it chunks as they come and it returns the events that they complete,
so any division of a stream into chunks gives the same events. Lines end with LF, CR LF or CR; an event without data is
no event; comments are dropped. `lines` counts whole lines, comments included: a server that sends keep-alives is alive
even when no event comes, one that drips bytes without ever ending a line is not.

It stands beside the one of httpx2 because that one hides comments, and because data stay bytes here: they go straight
into a JSON decoder, which checks their encoding.
"""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.errors import BadAnswer

MAX_EVENT_BYTES: Final = 64 * 2**20
"""No event is larger: an item may carry a picture, but not everything that memory can hold."""
_BOM: Final = b"\xef\xbb\xbf"


class ServerEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its name (`message` when the server gives none) and its data, lines joined by LF."""

    name: str
    data: bytes


class Decoder:
    """Turns chunks of bytes into events."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.lines = 0
        self._max = max_event_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that end in this chunk.

        Raises:
            BadAnswer: an event is larger than any answer may be.
        """
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        first, *others = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._grow(first)
        events: list[ServerEvent] = []
        for piece in others:
            line = b"".join(self._parts)
            self._parts.clear()
            self._grow(piece)
            self.lines += 1
            if event := self._line(line):
                events.append(event)
        return events

    def _grow(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._max:
            raise BadAnswer(
                f"The model's server sent an event of more than {self._max:,} bytes.",
                hint="Try again; check that the provider's `api` is the one that its server speaks.",
            )

    def _line(self, line: bytes) -> ServerEvent | None:
        if self.lines == 1:
            line = line.removeprefix(_BOM)
        if not line:
            name, data = self._name, self._data
            self._name, self._data = b"", []
            self._size = sum(map(len, self._parts))
            whole = b"\n".join(data)
            return ServerEvent(name.decode("utf-8", "replace") or "message", whole) if whole else None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif not self._data:
            self._size = sum(map(len, self._parts))  # comments and unknown fields are not kept
        return None
