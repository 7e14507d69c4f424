"""How much room items take, in the estimate that everything here is measured by."""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.context import truncate
from commonplace.context.compaction.media import without_media
from commonplace.protocol import items


def tokens_of(raw: bytes) -> int:
    """Return the estimate of one item as a request carries it."""
    return -(-len(without_media(items.wire(raw))) // truncate.BYTES_PER_TOKEN)


def total(raws: Iterable[bytes]) -> int:
    """Return the estimate of several items."""
    return sum(map(tokens_of, raws))
