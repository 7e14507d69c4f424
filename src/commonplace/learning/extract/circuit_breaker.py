"""When a run stops reading: what no session is to blame for, and a server that fails again and again."""

from __future__ import annotations

from typing import Final

import msgspec

from commonplace.errors import (
    BudgetSpent,
    CommonplaceError,
    ModelError,
    NotAuthorised,
    QuotaExceeded,
    RateLimited,
    StateError,
)

NOBODYS_FAULT: Final = (BudgetSpent, NotAuthorised, QuotaExceeded, RateLimited, StateError)
"""What no session is to blame for, and the next one would meet, too."""
_MOST_IN_A_ROW: Final = 5
"""How often in a row a server may fail before nobody asks it any more in this run."""


class CircuitBreaker(msgspec.Struct):
    """Stops a run in which a server fails again and again."""

    why: str | None = None
    """Why nothing more is read; None: it goes on."""
    failures: int = 0
    """How often in a row a server failed."""

    def succeeded(self) -> None:
        """Note that a session was read."""
        self.failures = 0

    def failed(self, error: CommonplaceError) -> None:
        """Note that a session could not be read."""
        if isinstance(error, NOBODYS_FAULT):
            self.why = self.why or error.sentence()
        elif isinstance(error, ModelError):
            self.failures += 1
            if self.failures >= _MOST_IN_A_ROW:
                self.why = self.why or f"The model failed {self.failures} times in a row: {error.sentence()}"
