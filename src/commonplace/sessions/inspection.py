"""Inspecting a thread: its context, its transcript, and whether every byte is sound. Nothing is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from commonplace.context.reconstruct import reconstruct
from commonplace.protocol import items, rollout
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import blobs, chain, sidechains, transcript
from commonplace.rollout.blobs import BlobStore
from commonplace.rollout.chain import Ledger, SkipLog
from commonplace.rollout.checkpoint import Tail
from commonplace.rollout.sidechains import Sidechain
from commonplace.rollout.transcript import CompactionMark, TranscriptCall, TranscriptItem


class ContextReceipt(msgspec.Struct):
    """How a context was found: how much was read, and what could not be used."""

    turns: int
    last_id: str | None
    checkpoint_offset: int | None
    bytes_read: int
    skipped: list[Skipped]


class Context(msgspec.Struct):
    """The items that the next request would carry (the JSON of `sessions context`)."""

    thread_id: str
    items: list[msgspec.Raw]
    window_number: int
    receipt: ContextReceipt


class Shown(msgspec.Struct, omit_defaults=True):
    """A thread as `sessions show` prints it (its JSON)."""

    thread_id: str
    path: str
    source: str
    cwd: str
    project: str
    user_texts: list[str]
    calls: list[TranscriptCall]
    compactions: list[CompactionMark]
    sidechains: list[Sidechain]
    skipped: list[Skipped]
    items: list[TranscriptItem] | None = None


class BlobCount(msgspec.Struct):
    """How a thread's spilled payloads are."""

    referenced: int
    missing: int
    corrupt: int


class Verified(msgspec.Struct):
    """The result of verifying a thread (the JSON of `sessions verify`)."""

    ok: bool
    lines: int
    skipped: list[Skipped]
    blobs: BlobCount


def context(ledger: Ledger, store: BlobStore) -> Context:
    """Rebuild what the model would see next, reading as little as that takes."""
    tail = Tail(ledger)
    found = reconstruct(blobs.restored(tail, store, tail.log.add), ledger.meta)
    prompt = [msgspec.Raw(item) for item in found.history.for_prompt()]
    receipt = ContextReceipt(
        turns=found.turns,
        last_id=found.last_id,
        checkpoint_offset=found.checkpoint.offset if found.checkpoint else None,
        bytes_read=tail.bytes_read,
        skipped=sorted([*tail.log.entries, *found.skipped], key=lambda entry: entry.offset),
    )
    return Context(ledger.thread_id, prompt, found.window.number, receipt)


def show(ledger: Ledger, *, with_items: bool) -> Shown:
    """Return the transcript of a thread, as `sessions show` prints it."""
    log = SkipLog()
    told = transcript.read_transcript(ledger, log, with_items=with_items)
    meta = ledger.meta
    return Shown(
        thread_id=meta.id,
        path=str(ledger.path),
        source=rollout.source_name(meta.source),
        cwd=meta.cwd,
        project=meta.project(),
        user_texts=told.user_texts,
        calls=told.calls,
        compactions=told.compactions,
        sidechains=sidechains.find(ledger, told.ended),
        skipped=log.entries,
        items=told.items if with_items else None,
    )


def verify(ledger: Ledger, store: BlobStore) -> Verified:
    """Read every line as its type says, and every payload that a line refers to."""
    log = SkipLog()
    lines = 0
    names: set[str] = set()
    decoder, damage = _DECODERS.get, _DAMAGE
    for _, line in chain.forward(ledger, log):
        lines += 1
        if (decode := decoder(line.type)) is not None:
            try:
                decode(line)
            except damage:
                log.add(Skipped(line.offset, line.size, "bad_item"))
        if line.blob:
            names.update(ref.sha256 for ref in line.blobs())
    states = Counter(map(store.state, names))
    count = BlobCount(len(names), states["missing"], states["corrupt"])
    return Verified(not log.entries and not count.missing and not count.corrupt, lines, log.entries, count)


_DAMAGE: Final = (msgspec.DecodeError, RecursionError)
_DECODERS: Final[dict[str, Callable[[Line], object]]] = {
    "session_meta": rollout.session_meta,
    "turn_context": rollout.turn_context,
    "compacted": rollout.compacted,
    "world_state": rollout.world_state,
    "response_item": lambda line: items.view(line.payload),
    "event_msg": lambda line: items.kind(line.payload),
}
