"""How much a model may ask for, read and write while it goes over the memory; a run that needs more has failed."""

from __future__ import annotations

import msgspec

from commonplace.models.retries import RetryPolicy


class CuratorLimits(msgspec.Struct, frozen=True):
    """The limits; all but the first are of one conversation."""

    seconds: float = 1_800.0
    """How long a run may take, with all its conversations."""
    requests: int = 12
    """Requests, repairs and repetitions counted."""
    tokens: int = 120_000
    """Tokens sent, by our estimate."""
    calls: int = 48
    answer_bytes: int = 200_000
    """Of one answer, with what is thought before it."""
    read_bytes: int = 6_000
    """Of one answer of a tool."""
    shown_bytes: int = 48_000
    """Of all of them."""
    edit_bytes: int = 16_000
    """Of one text that is put in."""
    written_bytes: int = 64_000
    """Of all of them."""
    part_bytes: int = 8_000
    """Of what a conversation is about."""
    near_bytes: int = 2_000
    """Of what is shown beside that."""
    pace: RetryPolicy = RetryPolicy()
    """How long to wait before an answer that broke off is asked for again."""
