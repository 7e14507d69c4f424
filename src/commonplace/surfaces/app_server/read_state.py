"""What a person has not seen of a thread yet, as clients that share a server tell each other.

It is kept as long as the thread is open. A change must name the revision that its client saw, so that nobody marks as
read what came in between.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from commonplace.protocol.ids import new_id
from commonplace.surfaces.app_server.messages import invalid

Json = dict[str, Any]


class ReadState:
    """The read state of one open thread."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._first: Json | None = None
        self._revision = str(new_id(now()))

    @property
    def shown(self) -> Json:
        """The state as clients see it."""
        return {"firstUnread": self._first, "revision": self._revision}

    def ended(self, turn_id: str) -> None:
        """Note that a turn ended with an answer or an error."""
        self._change(self._first or {"type": "turn", "turnId": turn_id})

    def mark(self, kind: Literal["read", "unread"], seen: str) -> None:
        """Mark everything as read, or the whole thread as unread (raises RpcError: something came in between)."""
        if seen != self._revision:
            raise invalid("the thread changed since this revision; look at it again")
        self._change(None if kind == "read" else {"type": "threadStart"})

    def _change(self, first: Json | None) -> None:
        self._first = first
        self._revision = str(new_id(self._now()))
