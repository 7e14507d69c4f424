"""How much of the model's window and of its provider's rate limits a session uses."""

from __future__ import annotations

from typing import Any, Final

from commonplace.agent import events, ledger_lines
from commonplace.agent.profile import Profile
from commonplace.context.history import History
from commonplace.context.usage import TokenInfo, TokenUsage
from commonplace.models.base import Limit

_NEAR_REFUSAL: Final = 0.9
"""A history counts as full from this part of the size on that the server refused; our estimate is not exact."""


class SessionUsage:
    """Token counts and limits of one session.

    Invariants: counts are the server's own where it counts, and our estimate where it does not; they are estimated
    anew when items are replaced or removed; a size that the server refused counts until the model changes.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self.limits: tuple[Limit, ...] = ()
        """The provider's rate limits, as it told them last."""
        self.refused_at: int | None = None
        """Our estimate of a request for which the server had no room."""

    @property
    def info(self) -> TokenInfo | None:
        """The tokens that were used; None before the first answer."""
        return self._history.info

    def update_limits(self, limits: tuple[Limit, ...]) -> None:
        """Keep the rate limits that the provider told."""
        self.limits = limits

    def count(self, usage: TokenUsage, profile: Profile) -> None:
        """Count an answer as the server counted it."""
        self._history.record_usage(usage, profile.window.effective)

    def count_by_estimate(self, profile: Profile) -> None:
        """Count an answer of a server that does not count; else a history would never be full."""
        if self._history.estimate(profile.base) > self._history.used():
            self.estimate_anew(profile)

    def estimate_anew(self, profile: Profile) -> None:
        """Put an estimate in place of the count, after items were replaced or removed."""
        self._history.recompute_usage(profile.base, profile.window.effective)

    def note_refusal(self, profile: Profile) -> None:
        """Note that the server had no room for the request; from now on compaction begins below that size."""
        self.refused_at = self._history.estimate(profile.base)
        if (window := profile.window.effective) is not None:
            self._history.mark_full(window)

    def forget_refusal(self) -> None:
        """Forget what the server refused: another model answers from now on."""
        self.refused_at = None

    def taken(self, profile: Profile) -> int:
        """Return the tokens of the window that are taken; all of them, if the server is about to refuse."""
        used = self._history.used()
        if self.refused_at is not None and self._history.estimate(profile.base) >= self.refused_at * _NEAR_REFUSAL:
            used = max(used, profile.window.effective or used)
        return used

    def event(self, turn_id: str) -> events.TokenCount:
        """Return what a turn tells of it."""
        return events.TokenCount(turn_id=turn_id, info=self.info, limits=self.limits)

    def line(self) -> dict[str, Any]:
        """Return the payload of a `token_count` line."""
        return ledger_lines.token_count(self.info, self.limits)
