"""Window limits: the model's window, and the limit at which a history is compacted.

All of this is arithmetic over numbers that others know: what the model's catalogue says and what a person set. The
limit is nine tenths of the whole window, the hard end 95 % of it.
"""

from __future__ import annotations

from typing import Final

import msgspec

EFFECTIVE_PERCENT: Final = 95
"""The share of a model's window that a request may fill, unless the catalogue says otherwise."""


class ModelWindow(msgspec.Struct, frozen=True):
    """The known limits of a model's window; None means not known."""

    context_window: int | None = None
    max_context_window: int | None = None
    auto_compact_token_limit: int | None = None
    """The limit that the model's catalogue proposes."""
    effective_percent: int = EFFECTIVE_PERCENT

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
