"""Compaction with a contract: a long history becomes a short one, whatever the summariser does.

    last request, word for word + recent messages of the person + one summary (the model's, and beside it the digest)

The result is at most the target and smaller than before; calls and outputs pair; no media but the last request's is
carried along; earlier summaries are folded in. Every clause is checked afterwards. If a model's summary does not do,
the digest alone does: it needs nobody, and it always fits. The ledger keeps everything in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from commonplace.context import digest as digests
from commonplace.context.compaction import contract, kept_messages, sizes, summaries
from commonplace.context.compaction.contract import ReplacedHistory
from commonplace.context.compaction.kept_messages import LastRequest
from commonplace.context.compaction.summaries import Summariser
from commonplace.context.digest import Digest, Retention
from commonplace.context.digest.tally import Tally
from commonplace.context.history_items import HistoryEntry
from commonplace.errors import WindowTooSmall
from commonplace.protocol import fragments, items

TARGET_PERCENT: Final = 30
"""The share of the window that a replacement may take, in percent, unless a setting changes it."""
DIGEST_TOKENS: Final = 2_000
"""The size of the digest beside a model's summary, in tokens, unless a setting changes it."""
FLOOR_TOKENS: Final = 200
"""A target below this cannot hold a request and anything about the work."""
_SUMMARY_SHARE: Final = 0.35
"""The share of the target that a model's summary may take."""
_SUMMARY_MOST: Final = 6_000
"""The most tokens that a model's summary may take, however large the target is."""
_REQUEST_SHARE: Final = 0.5
"""The share of the target that the last request may take before it is cut."""
_OVERHEAD: Final = 90
"""What a summary's message costs besides its words: its opening and its JSON."""


class CompactionLimits(msgspec.Struct, frozen=True):
    """How far a history is to shrink."""

    window: int
    target_percent: int = TARGET_PERCENT
    digest_tokens: int = DIGEST_TOKENS
    digest_alone: int | None = None
    """The size of a digest without a summary, in tokens; None: the smallest that keeps enough."""
    is_wish: bool = False
    """A person asks for it: a history within the target is summed up, too, if that makes it smaller."""

    @property
    def target(self) -> int:
        """The most tokens that the replacement may take."""
        return self.window * self.target_percent // 100


class CompactionResult(msgspec.Struct):
    """The result of a compaction."""

    status: Literal["compacted", "unchanged"]
    tokens_before: int
    tokens_after: int
    items: list[bytes]
    message: str = ""
    """The summary as it stands in the ledger."""
    digest: str = ""
    score: Retention | None = None
    fallback: bool = False
    contract: dict[str, bool] = {}


async def compact(
    entries: Sequence[HistoryEntry], tally: Tally, options: CompactionLimits, *summarisers: Summariser
) -> CompactionResult:
    """Shrink a history, by the first summariser that gives a summary, else by the digest alone.

    Raises:
        WindowTooSmall: the target cannot hold a request and anything about the work.
    """
    before = sum(entry.tokens for entry in entries)
    unchanged = CompactionResult("unchanged", before, before, [entry.raw for entry in entries])
    is_due = before > options.target
    if not is_due and not (options.is_wish and entries):
        return unchanged
    if options.target < FLOOR_TOKENS:
        raise WindowTooSmall(
            f"A target of {options.target} tokens cannot hold a request and anything about the work.",
            hint=f"Use a window and a target that allow {FLOOR_TOKENS} tokens or more.",
            target=options.target,
        )
    request = kept_messages.last_request(entries)
    maker = _ReplacementBuilder(entries, tally, options.target, request)
    room = min(int(options.target * _SUMMARY_SHARE), _SUMMARY_MOST)
    for summariser in summarisers:
        told = await summaries.write(summariser, entries, room)
        if told is not None:
            made = maker.with_summary(told, options.digest_tokens)
            if all(made.contract.values()):
                return made
    if not is_due:  # nothing has to go, and without a summary something would be lost
        return unchanged
    made = maker.digest_only(options.digest_alone)
    broken = [name for name, holds in made.contract.items() if not holds]
    if broken == ["smaller"]:  # a few items of almost nothing: what would replace them is no smaller
        return unchanged
    assert not broken, f"the deterministic compaction broke its contract: {broken}"
    return made


class _ReplacementBuilder:
    """Builds replacements of one history."""

    def __init__(self, entries: Sequence[HistoryEntry], tally: Tally, target: int, request: LastRequest | None) -> None:
        self._entries = entries
        self._tally = tally
        self._target = target
        self._request = request
        self._before = sum(entry.tokens for entry in entries)
        self._goal = min(target, self._before - 1)
        self._known = digests.material_of(tally)

    def with_summary(self, summary: str, digest_tokens: int) -> CompactionResult:
        """Return what a model's summary makes, with a digest beside it."""
        asked = self._kept_request()
        left = max(0, self._goal - asked[1] - sizes.tokens_of(_summary(summary)) - _OVERHEAD)
        budget = min(digest_tokens, left // 2)
        kept = [*self._recent(left - budget), *asked[0]]
        digest = digests.make(self._tally, budget, self._known, _words(kept))
        return self._result(kept, summary, digest, is_fallback=False)

    def digest_only(self, size: int | None) -> CompactionResult:
        """Return a replacement with a digest alone: of a size, or the smallest that keeps enough, within the target."""
        asked = self._kept_request()
        left = max(0, self._goal - asked[1] - 2 * _OVERHEAD)
        budgets = [budget for budget in digests.BUDGETS if budget <= left] or [left]
        budgets = budgets if size is None else [min(size, left)]
        alone = digests.smallest(self._tally, budgets, material=self._known)
        kept = [*self._recent(left - alone.tokens - _OVERHEAD), *asked[0]]
        digest = digests.make(self._tally, alone.tokens, self._known, _words(kept))
        return self._result(kept, summaries.texts()["without_model"], digest, is_fallback=True)

    def _recent(self, room: int) -> list[bytes]:
        """Return the newest messages of the person before the last request that fit."""
        place = self._request.place if self._request is not None else len(self._entries)
        return kept_messages.recent_messages(self._entries, place, max(0, room))

    def _kept_request(self) -> tuple[list[bytes], int]:
        """Return the last request as it is kept, and what it costs."""
        if self._request is None:
            return [], 0
        raw = kept_messages.fitted_request(
            self._request, self._target - FLOOR_TOKENS // 2 if self._is_alone() else self._half()
        )
        return [raw], sizes.tokens_of(raw)

    def _half(self) -> int:
        return int(self._target * _REQUEST_SHARE)

    def _is_alone(self) -> bool:
        """Say whether the last request fits whole, though it takes more than its share."""
        assert self._request is not None
        whole = sizes.tokens_of(kept_messages.message(self._request.text, self._request.media))
        return whole <= self._target - FLOOR_TOKENS // 2

    def _result(self, messages: list[bytes], summary: str, digest: Digest, *, is_fallback: bool) -> CompactionResult:
        text = f"{summary}\n\n{digest.text}".strip() if digest.text else summary
        kept = [*messages, _summary(text)]
        shown = "\n".join([text, *(raw.decode() for raw in kept[:-1])])
        return CompactionResult(
            "compacted",
            self._before,
            sizes.total(kept),
            kept,
            _worded(text),
            digest.text,
            digests.score(self._tally, self._known.chances, shown),
            is_fallback,
            contract.check(ReplacedHistory(self._entries, kept, self._target, self._request)),
        )


def _words(messages: list[bytes]) -> list[str]:
    """Return the person's words in messages."""
    views = [items.view(raw) for raw in messages]
    return [fragments.own_words(view) for view in views if isinstance(view, items.Message)]


def _worded(text: str) -> str:
    return f"{fragments.OWN_SUMMARY_PREFIX}\n{text}"


def _summary(text: str) -> bytes:
    return kept_messages.message(_worded(text))
