"""Events inside a rollout (`type: "event_msg"`): the lifecycle of turns and what clients were shown.

One tolerant view covers them all: the fields below are the only ones that any reader of files needs, and an event
of an unknown kind is simply one whose `type` nobody matches.
"""

from __future__ import annotations

from typing import Final

import msgspec

TURN_STARTED: Final = frozenset({"task_started", "turn_started"})
TURN_COMPLETE: Final = frozenset({"task_complete", "turn_complete"})
TURN_ABORTED: Final = "turn_aborted"
ROLLED_BACK: Final = "thread_rolled_back"
USER_MESSAGE: Final = "user_message"
TOKEN_COUNT: Final = "token_count"  # noqa: S105 (a kind of event, not a secret)
ITEM_COMPLETED: Final = "item_completed"


class TokenCountUsage(msgspec.Struct):
    """Tokens as the server counted them."""

    total_tokens: int = 0


class TokenCountInfo(msgspec.Struct):
    """The running total of a thread."""

    total_token_usage: TokenCountUsage | None = None


class TurnItem(msgspec.Struct):
    """The item inside `item_completed`: what a client was shown."""

    type: str = ""
    id: str | None = None
    status: str | None = None
    exit_code: int | None = None


class Event(msgspec.Struct):
    """One event; `type` says which of the other fields are set."""

    type: str
    turn_id: str | None = None
    num_turns: int = 0
    message: str | None = None
    info: TokenCountInfo | None = None
    item: TurnItem | None = None


class _EventType(msgspec.Struct, gc=False):
    type: str


_decoder = msgspec.json.Decoder(Event)
_kind = msgspec.json.Decoder(_EventType)
_STRICT: Final = TURN_STARTED | TURN_COMPLETE | {TURN_ABORTED, ROLLED_BACK}
"""Kinds that steer a replay: with a field of the wrong type they count as damaged, not as unknown."""


def event(raw: bytes | msgspec.Raw) -> Event:
    """Return the view of an event's JSON; of a kind nobody reads, only the kind.

    Raises:
        msgspec.DecodeError: it is not an event, or one that steers a replay is damaged.
    """
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError:
        kind = _kind.decode(raw).type
        if kind in _STRICT:
            raise
        return Event(type=kind)
