"""The history: the list of items that the model will see next.

Items are kept as the JSON that was recorded, beside a typed view; only tool outputs are shortened on the way in, and
only `for_prompt` adds or leaves out anything: every call gets an output, every output has its call. Nothing here does
I/O, so a replay gives the same history every time.

`for_prompt` is a function of the items and of what the model takes, and of nothing else. What it returned before is a
prefix of what it returns now, byte for byte, so that a provider's cache goes on, except that

* an output that arrives takes the place of the stand-in behind its call (`pairing`): the change is behind that call;
* `version` went up: a compaction, a rollback or a removal put other items in place of these;
* the model takes other kinds of input (`modalities`) than at the last request.

Whoever keeps something that holds for this list alone (a baseline of what the model was told) keeps the version
with it. Prompt and estimates are kept and extended: one more item costs what that item costs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from commonplace.context import history_items as entries
from commonplace.context import legacy_compaction, rollback
from commonplace.context.history_items import HistoryEntry
from commonplace.context.modalities import ALL
from commonplace.context.pairing import PairedPrompt
from commonplace.context.tokens import approximate_tokens
from commonplace.context.truncate import OUTPUT_POLICY, TruncationPolicy
from commonplace.context.usage import EstimateSums, TokenInfo, TokenUsage
from commonplace.protocol.items import Message


class History:
    """An ordered list of items, what it costs, and the operations that a session needs."""

    def __init__(self) -> None:
        self._entries: list[HistoryEntry] = []
        self.version = 0
        """Goes up whenever items are replaced or removed; appending leaves it."""
        self.info: TokenInfo | None = None
        """What the server counted; None before its first answer."""
        self._prompt: PairedPrompt | None = None
        self._sums = EstimateSums()

    @property
    def entries(self) -> Sequence[HistoryEntry]:
        """The items, oldest first."""
        return self._entries

    def copy(self) -> History:
        """Return a history that can be changed without changing this one."""
        twin = History()
        twin._entries, twin.version, twin.info = list(self._entries), self.version, self.info
        return twin

    def _become(self, replacement: list[HistoryEntry]) -> None:
        self._entries = replacement
        self.version += 1
        self._prompt = None
        self._sums = EstimateSums()

    # --- What is in it.

    def record(
        self, raw: bytes | msgspec.Raw, metadata: bytes | msgspec.Raw = b"", policy: TruncationPolicy = OUTPUT_POLICY
    ) -> HistoryEntry | None:
        """Append one item, with its output shortened if needed; return None for a kind of item that no history holds.

        Raises:
            msgspec.DecodeError: the JSON is not an item.
        """
        entry = entries.entry(raw)
        if not entries.is_recordable(entry.view) or (isinstance(entry.view, Message) and entry.view.role == "system"):
            return None
        entry = entries.shortened(entry, metadata, policy)
        self._entries.append(entry)
        return entry

    def replace(self, replacement: Iterable[bytes | msgspec.Raw]) -> int:
        """Put a compaction's items in place of everything; return how many of them were damaged and left out."""
        kept: list[HistoryEntry] = []
        damaged = 0
        for raw in replacement:
            try:
                entry = entries.entry(raw)
            except (msgspec.DecodeError, RecursionError):
                damaged += 1
                continue
            if entries.is_recordable(entry.view):
                kept.append(entry)
        self._become(kept)
        return damaged

    def compact_without_replacement(self, summary: str) -> None:
        """Do what a compaction of the 2025 format meant: keep the person's messages, then the summary."""
        self._become(legacy_compaction.replacement_history(self._entries, summary))

    def drop_last_user_turns(self, count: int) -> bool:
        """Roll back; return whether the injected context above the cut went with it (so it must be sent again)."""
        if count <= 0:
            return False
        left, lost_context = rollback.without_last_turns(self._entries, count)
        self._become(left)
        return lost_context

    def for_prompt(self, modalities: Collection[str] = ALL) -> list[bytes]:
        """Return the items as a request carries them: bookkeeping off, pairs whole, only what the model takes."""
        takes = frozenset(modalities)
        if self._prompt is None or self._prompt.takes != takes:
            self._prompt = PairedPrompt(takes)
        self._prompt.take(self._entries)
        return self._prompt.items()

    # --- What it costs.

    def estimate(self, base_instructions: str = "") -> int:
        """Return the token estimate of the instructions and every item."""
        self._sums.add(self._entries)
        return approximate_tokens(base_instructions) + self._sums.all

    def used(self) -> int:
        """Return the tokens in use: what the server counted last, and an estimate of what it did not count."""
        self._sums.add(self._entries)
        counted = self.info.last_token_usage.total_tokens if self.info is not None else 0
        return counted + self._sums.since_last_usage()

    def record_usage(self, usage: TokenUsage, window: int | None = None) -> TokenInfo:
        """Note what a response took."""
        self.info = (self.info or TokenInfo()).with_response(usage, window)
        return self.info

    def restore_usage(self, info: TokenInfo | None) -> None:
        """Put back the counts that a ledger tells."""
        self.info = info

    def mark_full(self, window: int) -> TokenInfo:
        """Note that the server refused a request because the window is full."""
        self.info = (self.info or TokenInfo()).full(window)
        return self.info

    def recompute_usage(self, base_instructions: str = "", window: int | None = None) -> TokenInfo:
        """Put the estimate in place of what was counted: after a compaction or a rollback that count is stale."""
        self.info = (self.info or TokenInfo()).recomputed(self.estimate(base_instructions), window)
        return self.info
