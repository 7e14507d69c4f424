"""The progress breaker: a turn that compacts and then only repeats itself is stopped instead of going on for hours.

A manifest holds the hash of every call with its result, as far as the thread has got. If, since the last compaction of
a turn, nothing new was called, nothing new came back and nobody said anything, compacting again would change nothing.
"""

from __future__ import annotations

import hashlib
from typing import Final

from commonplace.errors import NoProgress
from commonplace.patterns import regex
from commonplace.protocol import items

_VARIES: Final = regex(rb"(?:Wall time|Chunk ID|Original token count|time=|took|in) ?:? ?[0-9a-f.]+ ?(?:seconds|s|ms)?")
"""What differs from run to run of the same thing."""
_MOST: Final = 200_000
"""How many different calls and results are remembered."""


class CallManifest:
    """What was called and what came of it."""

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}
        self._calls: dict[str, bytes] = {}
        self._compacted = False
        self._happened = 0
        self._new = 0

    def see(self, raw: bytes, view: items.View) -> None:
        """Take in one item of the turn."""
        match view:
            case items.Message(role="user"):
                self.begin_turn()
            case items.FunctionCall(call_id=str(call_id)):
                self._calls[call_id] = f"{view.name}\0{view.arguments}".encode("utf-8", "replace")
            case items.CustomToolCall(call_id=str(call_id)):
                self._calls[call_id] = f"{view.name}\0{view.input}".encode("utf-8", "replace")
            case items.LocalShellCall(call_id=str(call_id)):
                self._calls[call_id] = bytes(view.action)
            case items.FunctionCallOutput(call_id=str(call_id)) | items.CustomToolCallOutput(call_id=str(call_id)):
                self._answered(call_id, view.output, raw)
            case _:
                pass

    def _answered(self, call_id: str, output: str | list[items.Content], raw: bytes) -> None:
        text = output.encode("utf-8", "replace") if isinstance(output, str) else raw
        call = self._calls.pop(call_id, call_id.encode())
        key = hashlib.blake2b(call + b"\0" + _VARIES.sub(b"", text), digest_size=16).digest()
        self._happened += 1
        if key not in self._known:
            self._new += 1
            self._known[key] = None
            if len(self._known) > _MOST:
                self._known.pop(next(iter(self._known)))

    def begin_turn(self) -> None:
        """Begin a turn: each turn may compact as often as it needs."""
        self._compacted = False
        self._happened = self._new = 0

    def note_compaction(self) -> None:
        """Note that the turn is about to compact.

        Raises:
            NoProgress: it has compacted before, and nothing that happened since was new.
        """
        if self._compacted and not self._new:
            raise NoProgress(
                f"Since the last compaction of this turn {self._happened} calls were made, all of them made before "
                "with the same results.",
                hint="Tell the agent what to do differently, or raise the window or the target.",
                calls=self._happened,
            )
        self._compacted = True
        self._happened = self._new = 0
