"""What goes wrong when a model reads a session, in two kinds: this session failed, or nothing more may be spent.

CommonplaceError
├── ExtractionFailed    no answer that can be used; another try, or another extractor, may do better
└── BudgetSpent         a limit on requests or tokens is reached; nothing is wrong with the session
"""

from __future__ import annotations

from typing import Any

from commonplace.errors import CommonplaceError


class ExtractionFailed(CommonplaceError):
    """A model gave no answer about a session that can be used."""

    code = "extraction_failed"


class BudgetSpent(CommonplaceError):
    """A limit on what may be spent on models is reached; the session is as good as before."""

    code = "budget_spent"

    def __init__(self, message: str, *, hint: str = "", limit: str, **data: Any) -> None:
        super().__init__(message, hint=hint, limit=limit, **data)
        self.limit = limit
        """Which limit: `run` or `day`."""
