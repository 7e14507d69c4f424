"""The messages that a compaction keeps word for word: the person's last request, and recent messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from commonplace.context import truncate
from commonplace.context.compaction import attachments, sizes
from commonplace.context.history_items import HistoryEntry
from commonplace.protocol import fragments, items

RECENT_TOKENS: Final = 20_000
"""The most tokens that recent messages of the person may take, however much room there is."""
_OVERHEAD: Final = 24
"""What a message costs besides its words."""


class LastRequest(msgspec.Struct, frozen=True):
    """The last request of a person."""

    place: int
    """Which entry of the history it is."""
    text: str
    media: list[dict[str, Any]] = []


def is_real(entry: HistoryEntry) -> bool:
    """Say whether a person wrote an entry: it is no injected text and no summary."""
    view = entry.view
    return (
        isinstance(view, items.Message)
        and view.role == "user"
        and not fragments.is_contextual(view)
        and not fragments.is_summary_message(view)
        and (bool(message_text(view)) or attachments.count(view) > 0)
    )


def message_text(message: items.Message) -> str:
    """Return the words of a message, its parts one after the other."""
    return "".join(part.text for part in message.content if part.text)


def last_request(entries: Sequence[HistoryEntry]) -> LastRequest | None:
    """Return the last thing that a person asked for, or else another agent; None if nobody did."""
    for place in range(len(entries) - 1, -1, -1):
        if is_real(entries[place]):
            view = entries[place].view
            assert isinstance(view, items.Message)
            return LastRequest(place, message_text(view), attachments.parts_of(entries[place].raw))
    for place in range(len(entries) - 1, -1, -1):
        view = entries[place].view
        if isinstance(view, items.AgentMessage):
            return LastRequest(place, "".join(part.text for part in view.content if part.text))
    return None


def message(text: str, parts: list[dict[str, Any]] | None = None) -> bytes:
    """Return a message of the person's."""
    content = [{"type": "input_text", "text": text}] if text or not parts else []
    return msgspec.json.encode({"type": "message", "role": "user", "content": [*content, *(parts or [])]})


def fitted_request(request: LastRequest, room: int) -> bytes:
    """Return the last request in at most so many tokens: word for word, or head and tail of it if it is too long.

    Media stay while there is room for them; they are stored by reference.
    """
    whole = message(request.text, request.media)
    if sizes.tokens_of(whole) <= room:
        return whole
    parts = list(request.media)
    while parts and sizes.tokens_of(message("", parts)) > room // 2:
        parts.pop()
    left = room - sizes.tokens_of(message("", parts)) - _OVERHEAD
    return _shrunk(request.text, parts, max(left, 0), room)


def _shrunk(text: str, parts: list[dict[str, Any]], tokens: int, room: int) -> bytes:
    """Cut a text until its message fits; JSON may take more bytes than the text has."""
    while True:
        raw = message(truncate.truncate(text, tokens), parts)
        over = sizes.tokens_of(raw) - room
        if over <= 0 or tokens <= 0:
            return raw
        tokens = max(0, min(tokens - over, tokens * 3 // 4))


def recent_messages(entries: Sequence[HistoryEntry], before: int, room: int) -> list[bytes]:
    """Return messages of the person before a place of the history, the newest that fit, in their order."""
    kept: list[bytes] = []
    left = min(room, RECENT_TOKENS)
    for entry in reversed(entries[:before]):
        if left <= 0:
            break
        if not is_real(entry):
            continue
        view = entry.view
        assert isinstance(view, items.Message)
        words = message_text(view)
        if not words:
            continue
        raw = message(words)
        cost = sizes.tokens_of(raw)
        if cost > left:
            raw = _shrunk(words, [], max(0, left - _OVERHEAD), left)
            if sizes.tokens_of(raw) <= left:
                kept.append(raw)
            break
        kept.append(raw)
        left -= cost
    return kept[::-1]
