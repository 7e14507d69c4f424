"""A thread as its ledger has it: what a session needs in order to go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from commonplace.context.reconstruct import Reconstruction, reconstruct
from commonplace.context.usage import TokenInfo
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
    return StoredThread(ledger, state, _token_info(ledger), base)


class _Base(msgspec.Struct):
    text: str | None = None


class _Head(msgspec.Struct):
    base_instructions: _Base | None = None


class _TokenCount(msgspec.Struct):
    info: TokenInfo | None = None


def _token_info(ledger: Ledger) -> TokenInfo | None:
    """Return the newest count of tokens; a count from before a compaction or a rollback is not valid any more."""
    for line in Tail(ledger):
        if line.type == "compacted" or _is(line, events.ROLLED_BACK):
            return None
        if _is(line, events.TOKEN_COUNT):
            try:
                info = msgspec.json.decode(line.payload, type=_TokenCount).info
            except msgspec.DecodeError:
                continue
            if info is not None:
                return info
    return None


def _is(line: Line, kind: str) -> bool:
    """Return whether a line is an event of a kind."""
    try:
        return line.type == "event_msg" and survey.kind_of(line.payload) == kind
    except (msgspec.DecodeError, RecursionError):
        return False
