"""Compactions of the 2025 format: they record a summary and no replacement, so the replacement is made here.

Kept are the person's own messages, the newest first within a budget, then the summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commonplace.context import history_items, truncate
from commonplace.context.history_items import HistoryEntry
from commonplace.context.tokens import approximate_tokens
from commonplace.protocol import fragments
from commonplace.protocol.items import Message

USER_TOKENS: Final = 20_000
"""Budget for the user messages that a compaction without a replacement history keeps."""
NO_SUMMARY: Final = "(no summary available)"


def replacement_history(whole: Sequence[HistoryEntry], summary: str) -> list[HistoryEntry]:
    """Return the replacement of everything."""
    kept: list[HistoryEntry] = []
    left = USER_TOKENS
    for entry in reversed(whole):
        message = entry.view
        if left <= 0:
            break
        if not isinstance(message, Message) or message.role != "user" or fragments.is_contextual(message):
            continue
        texts = [part.text for part in message.content if part.text is not None]
        if not texts or fragments.is_summary_message(message):
            continue
        cost = sum(map(approximate_tokens, texts))
        kept.append(_with_texts(entry, texts if cost <= left else _cut(texts, left)))
        left -= cost
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary or NO_SUMMARY}]}
    return [*reversed(kept), history_items.entry_of_item(said)]


def _cut(texts: list[str], tokens: int) -> list[str]:
    """Return the texts within a budget; the one that crosses it becomes head, marker and tail."""
    kept: list[str] = []
    for text in texts:
        pieces = truncate.split_middle(text, tokens)
        if pieces is not None:
            return [*kept, *(piece for piece in pieces if piece)]
        kept.append(text)
        tokens -= approximate_tokens(text)
    return kept


def _with_texts(entry: HistoryEntry, texts: list[str]) -> HistoryEntry:
    return history_items.entry_of_item(
        {**history_items.fields(entry.raw), "content": [{"type": "input_text", "text": text} for text in texts]}
    )
