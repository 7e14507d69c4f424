"""What an agent is doing: derived from its events, and from the last lines of its ledger when it is opened again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from commonplace.agent import events
from commonplace.protocol import events as lines
from commonplace.protocol.rollout import Line

Kind = Literal["pending_init", "running", "interrupted", "completed", "errored", "shutdown", "not_found"]
_GOES_ON: Final = frozenset({"pending_init", "running", "interrupted"})


class AgentStatus(msgspec.Struct, frozen=True):
    """One status; `message` is what an agent said last, or why it failed."""

    kind: Kind
    message: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes of the agent unless it gets new input."""
        return self.kind not in _GOES_ON

    @property
    def is_failure(self) -> bool:
        """Whether a call about the agent counts as failed."""
        return self.kind in ("errored", "not_found")

    def wire(self) -> str | dict[str, str | None]:
        """Return it as models and ledgers see it."""
        return {self.kind: self.message} if self.kind in ("completed", "errored") else self.kind


PENDING: Final = AgentStatus("pending_init")
RUNNING: Final = AgentStatus("running")
INTERRUPTED: Final = AgentStatus("interrupted")
SHUTDOWN: Final = AgentStatus("shutdown")
NOT_FOUND: Final = AgentStatus("not_found")


def after(event: events.Event) -> AgentStatus | None:
    """Return the status that an event brings; None if it changes nothing."""
    match event:
        case events.TurnStarted():
            return RUNNING
        case events.TurnCompleted():
            return AgentStatus("completed", event.message)
        case events.TurnAborted(reason="replaced"):
            return AgentStatus("errored", "replaced")
        case events.TurnAborted():
            return INTERRUPTED
        case events.TurnFailed():
            return AgentStatus("errored", event.error.sentence())
        case _:
            return None


class _Error(msgspec.Struct):
    message: str = "failed"


class _End(msgspec.Struct):
    last_agent_message: str | None = None
    error: _Error | None = None


def of_ledger(newest_first: Iterable[Line]) -> AgentStatus:
    """Return the status of an agent that nobody runs: how its last turn ended, as its lines tell, newest first.

    A turn without an end was cut off with its process.
    """
    for line in newest_first:
        if line.type != "event_msg":
            continue
        try:
            event = lines.event(line.payload)
            if event.type in lines.TURN_COMPLETE:
                return _of_end(msgspec.json.decode(line.payload, type=_End))
        except (msgspec.DecodeError, RecursionError):
            continue
        if event.type == lines.TURN_ABORTED or event.type in lines.TURN_STARTED:
            return INTERRUPTED
    return PENDING


def _of_end(end: _End) -> AgentStatus:
    if end.error is None:
        return AgentStatus("completed", end.last_agent_message)
    return AgentStatus("errored", end.error.message)
