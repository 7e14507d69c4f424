"""A thread as its ledger has it: what a session needs in order to go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from commonplace.config import Mode
from commonplace.context.reconstruct import Reconstruction, reconstruct
from commonplace.context.sections import mode_of
from commonplace.context.usage import TokenInfo
from commonplace.models.base import Limit
from commonplace.protocol import events
from commonplace.protocol.rollout import Line
from commonplace.rollout import blobs, survey
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, open_ledger
from commonplace.rollout.chain_blobs import ChainStore
from commonplace.rollout.checkpoint import Tail


class StoredThread(msgspec.Struct, frozen=True):
    """A thread that was read from its ledger."""

    ledger: Ledger
    state: Reconstruction
    info: TokenInfo | None
    """The newest count of tokens; None if it is not valid any more."""
    base: str | None
    """The base instructions that the thread began with."""
    limits: tuple[Limit, ...] = ()
    """The provider's rate limits, as the newest count of tokens tells them."""

    @property
    def mode(self) -> tuple[Mode, str | None] | None:
        """The mode of the last turn, and a client's own words for it; None if no turn was run."""
        previous = self.state.previous
        return None if previous is None else mode_of(previous.collaboration_mode)


def read(path: Path, homes: Sequence[Path]) -> StoredThread:
    """Read a thread, from the newest checkpoint on.

    Raises:
        NotASession, LedgerError: it cannot be read.
    """
    ledger = open_ledger(path, [*homes])
    tail = Tail(ledger)
    store = ChainStore(BlobStore(homes[0]), ledger)
    state = reconstruct(blobs.restored(tail, store, tail.log.add), ledger.meta)
    head = msgspec.json.decode(ledger.head.payload, type=_Head)
    base = head.base_instructions.text if head.base_instructions else None
    info, limits = _last_count(ledger)
    return StoredThread(ledger, state, info, base, limits)


class _Base(msgspec.Struct):
    text: str | None = None


class _Head(msgspec.Struct):
    base_instructions: _Base | None = None


class _RateLimits(msgspec.Struct):
    limits: tuple[Limit, ...] = ()


class _TokenCount(msgspec.Struct):
    info: TokenInfo | None = None
    rate_limits: _RateLimits | None = None


def _last_count(ledger: Ledger) -> tuple[TokenInfo | None, tuple[Limit, ...]]:
    """Return the newest count of tokens, and the rate limits noted with it.

    A count from before a compaction or a rollback is not valid any more.
    """
    limits: tuple[Limit, ...] = ()
    for line in Tail(ledger):
        if line.type == "compacted" or _is(line, events.ROLLED_BACK):
            break
        if _is(line, events.TOKEN_COUNT):
            try:
                count = msgspec.json.decode(line.payload, type=_TokenCount)
            except msgspec.DecodeError:
                continue
            limits = limits or (count.rate_limits.limits if count.rate_limits else ())
            if count.info is not None:
                return count.info, limits
    return None, limits


def _is(line: Line, kind: str) -> bool:
    """Return whether a line is an event of a kind."""
    try:
        return line.type == "event_msg" and survey.kind_of(line.payload) == kind
    except (msgspec.DecodeError, RecursionError):
        return False
