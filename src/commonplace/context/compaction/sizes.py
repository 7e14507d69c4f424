"""The estimated size of items, in tokens."""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.context import tokens
from commonplace.protocol import items


def tokens_of(raw: bytes) -> int:
    """Return the estimate of one item."""
    return tokens.item_tokens(raw, items.view(raw))


def total(raws: Iterable[bytes]) -> int:
    """Return the estimate of several items."""
    return sum(map(tokens_of, raws))
