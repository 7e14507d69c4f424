"""Token usage: the server's count, and an estimate of what was added since.

A response's usage is exact for everything up to it. What was recorded after the last thing that the model made is not
in it and is estimated. `EstimateSums` keeps those estimates up to date, one entry at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from commonplace.context.history_items import HistoryEntry
from commonplace.protocol import items, turns
from commonplace.protocol.items import View

BASELINE_TOKENS: Final = 12_000
"""What every request carries whatever is said: instructions and tools. A person cannot free it, so it is not shown."""


class TokenUsage(msgspec.Struct, frozen=True):
    """What one response took, or several together."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


class TokenInfo(msgspec.Struct, frozen=True):
    """The usage of a thread, as `token_count` events tell it."""

    total_token_usage: TokenUsage = TokenUsage()
    last_token_usage: TokenUsage = TokenUsage()
    model_context_window: int | None = None

    def with_response(self, usage: TokenUsage, window: int | None = None) -> TokenInfo:
        """Return what is known after one more response."""
        window = self.model_context_window if window is None else window
        return TokenInfo(self.total_token_usage + usage, usage, window)

    def full(self, window: int) -> TokenInfo:
        """Return what is known after the server refused a request because the window is full."""
        missing = max(window - self.total_token_usage.total_tokens, 0)
        return TokenInfo(TokenUsage(total_tokens=window), TokenUsage(total_tokens=missing), window)

    def recomputed(self, estimate: int, window: int | None = None) -> TokenInfo:
        """Return what is known after the history was replaced: the estimate of it; what was used so far stays."""
        window = self.model_context_window if window is None else window
        return TokenInfo(self.total_token_usage, TokenUsage(total_tokens=estimate), window)

    @property
    def percent_left(self) -> int | None:
        """How much of the window a person can still fill; None where the window is not known."""
        if self.model_context_window is None:
            return None
        return percent_left(self.last_token_usage.total_tokens, self.model_context_window)


def percent_left(used: int, window: int) -> int:
    """Return how much of a window is left, in percent, what every request carries apart."""
    room = window - BASELINE_TOKENS
    if room <= 0:
        return 0
    left = max(room - max(used - BASELINE_TOKENS, 0), 0)
    return min((200 * left + room) // (2 * room), 100)


def is_model_made(view: View) -> bool:
    """Say whether a model made the item: then the usage of the response that it came with includes it."""
    match view:
        case items.Message(role=role):
            return role == "assistant"
        case (
            items.Reasoning()
            | items.FunctionCall()
            | items.LocalShellCall()
            | items.CustomToolCall()
            | items.ToolSearchCall()
            | items.WebSearchCall()
            | items.ImageGenerationCall()
            | items.Compaction()
            | items.CompactionSummary()
            | items.ContextCompaction()
        ):
            return True
        case _:
            return False


class EstimateSums:
    """Estimates of a history, summed up: all of it, what came after the model, and reasoning of earlier turns."""

    def __init__(self) -> None:
        self.all = 0
        self._added = 0
        """How many entries are in the sums."""
        self._trailing = 0
        self._model_spoke = False
        self._reasoning = 0
        self._earlier_reasoning = 0

    def add(self, entries: Sequence[HistoryEntry]) -> None:
        """Add the entries that are new since the last time."""
        for index in range(self._added, len(entries)):
            self._add(entries[index])
        self._added = len(entries)

    def _add(self, entry: HistoryEntry) -> None:
        view, count = entry.view, entry.tokens
        self.all += count
        if is_model_made(view):
            self._trailing, self._model_spoke = 0, True
        else:
            self._trailing += count
        if turns.is_boundary(view):
            self._earlier_reasoning = self._reasoning
        if isinstance(view, items.Reasoning) and view.encrypted_content:
            self._reasoning += count

    def since_last_usage(self) -> int:
        """Return what the last usage does not include.

        Servers drop the reasoning of earlier turns from their count unless they announce that they count it; we send it
        all the same.
        """
        trailing = self._trailing if self._model_spoke else 0
        return trailing + self._earlier_reasoning
