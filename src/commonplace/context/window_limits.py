"""When a context is full: the window, the share of it that is used, and the limit at which it is compacted.

All of this is arithmetic over numbers that others know: what the model's catalogue says, what a person set, what the
server counted. The limit is nine tenths of the whole window, the hard end 95 % of it.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

EFFECTIVE_PERCENT: Final = 95
Scope = Literal["total", "body_after_prefix"]


class ModelWindow(msgspec.Struct, frozen=True):
    """What is known of a model's window; None means not known."""

    context_window: int | None = None
    max_context_window: int | None = None
    auto_compact_token_limit: int | None = None
    """The limit that the model's catalogue proposes."""
    effective_percent: int = EFFECTIVE_PERCENT

    def overridden(self, context_window: int | None) -> ModelWindow:
        """Return the window that a person asks for, which the model's largest one caps."""
        if context_window is None:
            return self
        cap = self.max_context_window
        return msgspec.structs.replace(self, context_window=context_window if cap is None else min(context_window, cap))

    @property
    def whole(self) -> int | None:
        """The window as the model has it."""
        return self.max_context_window if self.context_window is None else self.context_window

    @property
    def effective(self) -> int | None:
        """The part of it that a request may fill."""
        return None if self.whole is None else self.whole * self.effective_percent // 100

    def auto_compact_limit(self, configured: int | None = None) -> int | None:
        """Return the count of tokens at which to compact; a limit that somebody set never exceeds nine tenths."""
        wanted = self.auto_compact_token_limit if configured is None else configured
        if self.whole is None:
            return wanted
        ceiling = self.whole * 9 // 10
        return ceiling if wanted is None else min(wanted, ceiling)


class Prefill(msgspec.Struct, frozen=True):
    """What a context window began with: the part that a compaction cannot make smaller."""

    tokens: int | None = None
    observed: bool = False
    """The server counted it; an estimate does not replace that. A new window begins with a new value."""

    def estimated(self, tokens: int) -> Prefill:
        """Return what is known after a resume or a compaction."""
        return self if self.observed else Prefill(tokens)

    def reported(self, input_tokens: int) -> Prefill:
        """Return what is known after a response: the first one of a window counts."""
        return self if self.observed else Prefill(input_tokens, observed=True)


class WindowStatus(msgspec.Struct, frozen=True):
    """How full a context is."""

    used: int
    limit: int | None
    reached: bool


def status(
    window: ModelWindow,
    total: int,
    *,
    scope: Scope = "total",
    configured: int | None = None,
    prefill: Prefill | None = None,
    buffer: int = 0,
) -> WindowStatus:
    """Return whether it is time to compact: the limit (and a buffer beyond it) is reached, or the window is full.

    In the scope `body_after_prefix` only what came after the window's beginning counts, against the limit that a person
    set as it is.
    """
    if scope == "total":
        used, limit = total, window.auto_compact_limit(configured)
    else:
        begun = prefill.tokens if prefill is not None else None
        used = 0 if begun is None else max(total - begun, 0)
        limit = window.auto_compact_limit() if configured is None else configured
    over = limit is not None and used >= limit + buffer
    full = window.effective is not None and total >= window.effective
    return WindowStatus(used, limit, over or full)
