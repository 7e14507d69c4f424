"""Rollback: removes the last user turns from a history, with the context that was injected for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from commonplace.context import history_items
from commonplace.context.history_items import HistoryEntry
from commonplace.protocol import fragments, turns
from commonplace.protocol.items import Message


def without_last_turns(whole: Sequence[HistoryEntry], count: int) -> tuple[list[HistoryEntry], bool]:
    """Return what is left, and whether injected context above the cut went with it (so it must be sent again)."""
    starts = [index for index, entry in enumerate(whole) if turns.is_boundary(entry.view)]
    if count <= 0 or not starts:
        return list(whole), False
    first = starts[0]
    cut = starts[-count] if count <= len(starts) else first
    boundary = whole[cut].view
    lost_context = False
    while cut > first and (above := _contextual(whole[cut - 1])) is not None:
        lost_context |= above.role == "developer" and not _all_contextual(above)
        cut -= 1
    left = list(whole[:cut])
    if cut == first and boundary.turn_id:
        left = list(_without_model_switch(left, boundary.turn_id))
    return left, lost_context


def _contextual(entry: HistoryEntry) -> Message | None:
    """Return the message if it is injected context of either role."""
    view = entry.view
    if isinstance(view, Message) and view.role in ("user", "developer") and fragments.is_contextual(view):
        return view
    return None


def _all_contextual(message: Message) -> bool:
    return all(part.text is None or fragments.recognise(part.text, message.role) for part in message.content)


def _without_model_switch(kept: list[HistoryEntry], turn_id: str) -> Iterator[HistoryEntry]:
    """Leave out notices of a model switch that belong to the turn which was rolled back."""
    for entry in kept:
        view = entry.view
        if not (isinstance(view, Message) and view.role == "developer" and view.turn_id == turn_id):
            yield entry
            continue
        switch = [_is_model_switch(part.text) for part in view.content]
        if not any(switch):
            yield entry
        elif not all(switch):
            whole = history_items.fields(entry.raw)
            content = [
                part for part, gone in zip(history_items.parts(whole["content"]), switch, strict=True) if not gone
            ]
            yield history_items.entry_of_item({**whole, "content": content})


def _is_model_switch(text: str | None) -> bool:
    found = fragments.recognise(text, "developer") if text else None
    return found is not None and found.name == "model_switch"
