"""Prompts that were typed while a turn ran, in versions that note them only as operations on a queue.

A prompt that leaves the queue by `dequeue` comes again as a user record. One that is taken out by `remove` goes into
the running turn; newer versions then attach it, older ones write nothing more. So what was removed waits until the
model goes on: if it has not come again by then, this was the only place it was kept.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from commonplace.importers.claude_code import records
from commonplace.importers.claude_code.records import ClaudeRecord

_NOT_TYPED: Final = ("<", "/", "!", "#", '{"task_id"')
_MAX_WAITING: Final = 1000
"""How many queued prompts are remembered."""


class QueuedPrompt:
    """A prompt that was taken into the running turn."""

    __slots__ = ("offset", "text", "time")

    def __init__(self, text: str, time: str, offset: int) -> None:
        self.text, self.time, self.offset = text, time, offset


class PromptQueue:
    """Follows the operations of one file."""

    def __init__(self) -> None:
        self._waiting: deque[QueuedPrompt] = deque(maxlen=_MAX_WAITING)
        self._removed: deque[QueuedPrompt] = deque(maxlen=_MAX_WAITING)

    def see(self, record: ClaudeRecord, offset: int) -> None:
        """Take in an operation."""
        match record.operation:
            case "enqueue":
                self._waiting.append(QueuedPrompt(records.text_of(record.content) or "", record.timestamp, offset))
            case "dequeue" if self._waiting:
                self._waiting.popleft()
            case "remove" if self._waiting:
                removed = self._waiting.popleft()
                if removed.text.strip() and not removed.text.startswith(_NOT_TYPED):
                    self._removed.append(removed)
            case "popAll":
                self._waiting.clear()
            case _:
                pass

    def note_delivered(self, text: str) -> None:
        """Note that a prompt came in a record of its own."""
        for each in self._removed:
            if each.text.strip() == text.strip():
                self._removed.remove(each)
                return

    def undelivered(self) -> list[QueuedPrompt]:
        """Return what was removed and has not come again."""
        if not self._removed:
            return []
        found = list(self._removed)
        self._removed.clear()
        return found
