"""The turn that is running: its input, what waits for it, and how it is stopped."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from commonplace.agent import events
from commonplace.agent.input import Input
from commonplace.agent.tools.remembered import Retrieved
from commonplace.protocol.citations import Citation


class Turn:
    """The turn that is running: its input, what waits for it, and how it is stopped."""

    def __init__(
        self, turn_id: str, given: Input, context: Sequence[Mapping[str, Any]], *, steerable: bool = True
    ) -> None:
        self.id = turn_id
        self.steerable = steerable
        """It takes in more than it began with; one that only compacts does not."""
        self.given = given
        self.context = context
        """What a client knows about the moment, told before the person's words."""
        self.scope = anyio.CancelScope()
        self.pending: deque[tuple[Sequence[Mapping[str, Any]], Input]] = deque()
        self.message: str | None = None
        """The last thing that the model said."""
        self.first_token: float | None = None
        self.interrupted = False
        self.ending = False
        """Nothing more is taken in."""
        self.plan: events.Plan | None = None
        self.retrieved: list[Retrieved] = []
        """What of the memory commands read; counted when the turn is over."""
        self.cited: list[Citation] = []
        self.is_external = False
        """Something came in from outside."""
        self.compacted_for_room = False
        """The server refused a request as too long once already."""

        self.stopped: str | None = None
        """A hook ended it, and why."""
        self.refusals = 0
        """How often hooks kept it from ending."""
        self.keeping = anyio.Lock()
        self.kept = False
        """The working tree was kept as it was."""

    def interrupt(self) -> None:
        """Stop the turn at whatever it is doing."""
        self.interrupted = True
        self.scope.cancel()
