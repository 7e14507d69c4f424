"""The contract of a compaction, checked in code after every compaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from commonplace.context import truncate
from commonplace.context.compaction import attachments, kept_messages, sizes
from commonplace.context.compaction.kept_messages import LastRequest
from commonplace.context.history_items import HistoryEntry
from commonplace.protocol import fragments, items


class ReplacedHistory(msgspec.Struct, frozen=True):
    """A history before and after a compaction, without the context that is injected anew."""

    before: Sequence[HistoryEntry]
    after: list[bytes]
    target: int
    request: LastRequest | None


def check(replaced: ReplacedHistory) -> dict[str, bool]:
    """Return, for each clause, whether it holds."""
    views = [items.view(raw) for raw in replaced.after]
    size = sizes.total(replaced.after)
    return {
        "within_target": size <= replaced.target,
        "smaller": size < sum(entry.tokens for entry in replaced.before),
        "request_kept": _request_kept(replaced, views),
        "instructions_untouched": not any(_is_instruction(view) for view in views),
        "calls_paired": _paired(views),
        "no_media_copied": _media_kept(replaced, views),
        "one_summary": sum(_is_summary(view) for view in views) == 1,
    }


def _request_kept(replaced: ReplacedHistory, views: list[items.View]) -> bool:
    """Say whether the last request is kept word for word, or its head and tail if it alone is larger than the
    target.
    """
    request = replaced.request
    if request is None:
        return True
    texts = [
        kept_messages.message_text(view) for view in views if isinstance(view, items.Message) and not _is_summary(view)
    ]
    if request.text in texts:
        return True
    if sizes.tokens_of(kept_messages.message(request.text, request.media)) <= replaced.target // 2:
        return False
    return any(_is_cut(text, request.text) for text in texts)


def _is_cut(text: str, whole: str) -> bool:
    """Say whether a text is the head and the tail of another, with the mark between them."""
    head, mark, rest = text.partition("…")
    if not mark:
        return False
    _, _, tail = rest.partition(" tokens truncated…")
    return (
        whole.startswith(head)
        and whole.endswith(tail)
        and truncate.approximate_tokens(text) < truncate.approximate_tokens(whole)
    )


def _is_instruction(view: items.View) -> bool:
    if not isinstance(view, items.Message):
        return False
    return view.role in ("developer", "system") or (view.role == "user" and fragments.is_contextual(view))


def _is_summary(view: items.View) -> bool:
    return isinstance(view, items.Message) and fragments.is_summary_message(view)


def _paired(views: list[items.View]) -> bool:
    calls = {
        view.call_id
        for view in views
        if isinstance(view, items.FunctionCall | items.CustomToolCall | items.LocalShellCall)
    }
    outputs = {
        view.call_id for view in views if isinstance(view, items.FunctionCallOutput | items.CustomToolCallOutput)
    }
    return calls == outputs


def _media_kept(replaced: ReplacedHistory, views: list[items.View]) -> bool:
    allowed = len(replaced.request.media) if replaced.request is not None else 0
    return sum(attachments.count(view) for view in views) <= allowed
