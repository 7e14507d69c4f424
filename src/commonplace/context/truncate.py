"""Head-and-tail truncation of tool outputs, on character boundaries, with a marker that tells how much went.

The result keeps the first and last half of the budget; the marker comes on top of it. One rule serves recording,
replay and the rebuilding of old compactions (spec §3.2, checked against Codex 0.166).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commonplace.protocol.items import Content

BYTES_PER_TOKEN: Final = 4
OUTPUT_TOKENS: Final = 10_000
"""Budget of one tool output, in approximate tokens."""
REPLAY_TOKENS: Final = OUTPUT_TOKENS * 12 // 10
"""The same with the headroom that recording and replay allow."""


def approximate_tokens(text: str) -> int:
    """Return the token estimate of a text: its UTF-8 bytes by four, rounded up."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def split_middle(text: str, tokens: int) -> tuple[str, str, str] | None:
    """Return head, marker and tail of a text over its budget, or None if it fits."""
    data = text.encode()
    budget = tokens * BYTES_PER_TOKEN
    if len(data) <= budget:
        return None
    removed = -(-(len(data) - budget) // BYTES_PER_TOKEN)
    left = budget // 2
    head = data[:left].decode(errors="ignore")
    tail = data[len(data) - (budget - left) :] if budget > left else b""
    while tail and tail[0] & 0xC0 == 0x80:  # a continuation byte: its character began before the cut
        tail = tail[1:]
    return head, f"…{removed} tokens truncated…", tail.decode()


def truncate(text: str, tokens: int) -> str:
    """Return the text, its middle cut out if it is over budget."""
    pieces = split_middle(text, tokens)
    return text if pieces is None else "".join(pieces)


def truncate_parts(parts: Sequence[Content], tokens: int) -> list[tuple[int, str]] | None:
    """Fit a list of content parts into one shared budget.

    Returns what to keep as (index, new text) for text parts, in order, with media left to the caller; a last entry
    with index -1 is a note about omitted texts. None means that everything fits as it is.
    """
    left = tokens
    kept: list[tuple[int, str]] = []
    omitted, changed = 0, False
    for index, part in enumerate(parts):
        if part.text is None or part.type == "encrypted_content":
            continue
        cost = approximate_tokens(part.text)
        if cost <= left:
            kept.append((index, part.text))
            left -= cost
        elif left > 0:
            kept.append((index, truncate(part.text, left)))
            left, changed = 0, True
        else:
            omitted += 1
    if omitted:
        kept.append((-1, f"[omitted {omitted} text items ...]"))
    return kept if omitted or changed else None
