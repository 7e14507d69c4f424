"""The place of newly injected context in a replaced history."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.protocol import fragments, items

_ANSWER = "Message Type: FINAL_ANSWER\n"


def insert(history: Sequence[bytes], context: Sequence[bytes]) -> list[bytes]:
    """Return the history with the context in its place: before the last request, else before the summary, else last."""
    place = _place([items.view(raw) for raw in history])
    return [*history[:place], *context, *history[place:]]


def _place(views: list[items.View]) -> int:
    summary: int | None = None
    compaction: int | None = None
    for place in range(len(views) - 1, -1, -1):
        view = views[place]
        if isinstance(view, items.AgentMessage) and not _is_answer(view):
            return place
        if isinstance(view, items.Message) and view.role == "user" and not fragments.is_contextual(view):
            if not fragments.is_summary_message(view):
                return place
            summary = place if summary is None else summary
        if (
            isinstance(view, items.Compaction | items.CompactionSummary | items.ContextCompaction)
            and compaction is None
        ):
            compaction = place
    return summary if summary is not None else compaction if compaction is not None else len(views)


def _is_answer(view: items.AgentMessage) -> bool:
    first = next((part.text for part in view.content), None)
    return bool(first) and str(first).startswith(_ANSWER)
