"""Compacting a thread: its history shrinks; its ledger keeps everything and records the retention score.

The digest is made from the whole ledger, not only from what the model saw last, so that what an earlier compaction lost
can come back.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from commonplace.context import compaction
from commonplace.context import digest as digests
from commonplace.context.compaction import CompactionLimits, CompactionResult
from commonplace.context.compaction.model_summary import ModelSummariser, SummariserOptions
from commonplace.context.compaction.summaries import Summariser
from commonplace.context.digest import Retention
from commonplace.context.digest.ledger_tally import tally_ledger
from commonplace.context.digest.tally import Tally
from commonplace.context.reconstruct import WindowIdentity, reconstruct
from commonplace.models import choose, connect, instructions
from commonplace.protocol import items
from commonplace.protocol.ids import new_id
from commonplace.protocol.rollout import OWN_TYPE
from commonplace.rollout import blobs
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger
from commonplace.rollout.checkpoint import Tail
from commonplace.rollout.recorder import Recorder, RecorderOptions

if TYPE_CHECKING:
    from datetime import datetime

    from commonplace.config import Settings

WINDOW: Final = 272_000
"""Of a session that does not say how large its model's window is."""


class CompactionReport(msgspec.Struct):
    """What a compaction did (the JSON of `sessions compact`)."""

    status: str
    tokens_before: int
    tokens_after: int
    items: list[msgspec.Raw]
    digest: str
    score: Retention | None
    fallback: bool
    contract: dict[str, bool]

    def texts(self) -> list[str]:
        """Return what the new history says: the messages that are kept, then the summary with the digest."""
        views = [items.view(raw) for raw in self.items]
        return [view.text() for view in views if isinstance(view, items.Message)]


class CompactionRequest(msgspec.Struct, frozen=True):
    """How a thread is to be compacted."""

    window: int | None = None
    target: int | None = None
    digest_tokens: int | None = None
    model: str | None = None
    digest_alone: int | None = None
    """The size of a digest without a summary, if somebody asked for one."""

    def filled(self, settings: Settings) -> CompactionRequest:
        """Return the request with the settings for what it leaves open."""
        target = settings.compaction.target_percent if self.target is None else self.target
        digest = settings.compaction.digest_tokens if self.digest_tokens is None else self.digest_tokens
        return CompactionRequest(self.window, target, digest, self.model, self.digest_tokens)


class _CompactionState(msgspec.Struct):
    """The result of a compaction, and the window that it belongs to."""

    made: CompactionResult
    window: WindowIdentity
    tally: Tally


@asynccontextmanager
async def summariser(
    settings: Settings, request: CompactionRequest, environment: Mapping[str, str]
) -> AsyncGenerator[Summariser | None]:
    """Return who writes the summary: the model that was named, or nobody.

    Raises:
        BadSetting: the model cannot be used.
    """
    if request.model in (None, "embedded"):
        yield None
        return
    choice = choose(settings, request.model)
    model = connect(choice, environment)
    try:
        yield ModelSummariser(model, choice, instructions(choice.info), SummariserOptions(choice.info.effort))
    finally:
        await model.aclose()


async def preview(
    ledger: Ledger, store: BlobStore, request: CompactionRequest, by: Summariser | None = None
) -> CompactionReport:
    """Return what compacting a thread would give, with its digest in any case; nothing is written."""
    read = await _compacted(ledger, store, request, by)
    made = read.made
    if made.status == "unchanged":
        made.digest = digests.make(read.tally, _digest_tokens(request)).text
    return _report(made)


async def write(
    ledger: Ledger,
    store: BlobStore,
    request: CompactionRequest,
    recording: RecorderOptions,
    by: Summariser | None = None,
) -> CompactionReport:
    """Compact a thread of ours: append the new history and its score to the ledger, and return the report."""
    read = await _compacted(ledger, store, request, by)
    made = read.made
    if made.status == "unchanged":
        return _report(made)
    async with await Recorder.resume(ledger.path, recording) as recorder:
        recorder.record("compacted", _payload(made, read.window, recording.now()))
        recorder.record(
            OWN_TYPE, {"kind": "retention", "score": msgspec.to_builtins(made.score), "fallback": made.fallback}
        )
        await recorder.end_turn()
    return _report(made)


def _payload(result: CompactionResult, window: WindowIdentity, now: datetime) -> dict[str, Any]:
    return {
        "message": result.message,
        "replacement_history": [msgspec.json.decode(raw) for raw in result.items],
        "window_number": window.number + 1,
        "first_window_id": window.first_id or window.id,
        "previous_window_id": window.id,
        "window_id": new_id(now),
        "resume_metadata": {},
    }


async def _compacted(
    ledger: Ledger, store: BlobStore, request: CompactionRequest, by: Summariser | None
) -> _CompactionState:
    tail = Tail(ledger)
    found = reconstruct(blobs.restored(tail, store, tail.log.add), ledger.meta)
    tally, noted = tally_ledger(ledger)
    target = compaction.TARGET_PERCENT if request.target is None else request.target
    window = request.window or noted or WINDOW
    options = CompactionLimits(window, target, _digest_tokens(request), request.digest_alone)
    made = await compaction.compact(found.history.entries, tally, options, *([by] if by is not None else []))
    return _CompactionState(made, found.window, tally)


def _digest_tokens(request: CompactionRequest) -> int:
    return compaction.DIGEST_TOKENS if request.digest_tokens is None else request.digest_tokens


def _report(result: CompactionResult) -> CompactionReport:
    kept = [msgspec.Raw(raw) for raw in result.items]
    return CompactionReport(
        result.status,
        result.tokens_before,
        result.tokens_after,
        kept,
        result.digest,
        result.score,
        result.fallback,
        result.contract,
    )
