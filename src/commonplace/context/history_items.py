"""One item of a history: its JSON as recorded, its typed view, and its token estimate.

Entries are values: a change makes a new one, so an estimate that was made once holds for as long as the entry lives.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.context import tokens, truncate
from commonplace.context.truncate import TruncationPolicy
from commonplace.protocol import items
from commonplace.protocol.items import View

_NOT_YET: Final = -1


class HistoryEntry(msgspec.Struct, frozen=True, eq=False):
    """One item: its JSON as recorded, and the view of it."""

    raw: bytes
    view: View
    estimate: int = _NOT_YET

    @property
    def tokens(self) -> int:
        """The token estimate, made at the first question and kept."""
        if self.estimate == _NOT_YET:
            msgspec.structs.force_setattr(self, "estimate", tokens.item_tokens(self.raw, self.view))
        return self.estimate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HistoryEntry) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)


class _Limit(msgspec.Struct):
    fallback_token_limit_override: int | None = None


_limit = msgspec.json.Decoder(_Limit)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_parts = msgspec.json.Decoder(list[msgspec.Raw])


def entry(raw: bytes | msgspec.Raw) -> HistoryEntry:
    """Return the entry of an item's JSON (raises msgspec.DecodeError if it is not an item)."""
    return HistoryEntry(bytes(raw), items.view(raw))


def entry_of_item(item: dict[str, Any]) -> HistoryEntry:
    """Return the entry of an item that this program made."""
    return entry(msgspec.json.encode(item))


def fields(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """Return the fields of an item or a part, each as it was written, the unknown ones too."""
    return dict(_fields.decode(raw))


def parts(field: bytes | msgspec.Raw) -> list[Any]:
    """Return the parts of a list, each as it was written."""
    return list(_parts.decode(field))


def is_recordable(view: View) -> bool:
    """Say whether a history can hold the item."""
    return not isinstance(view, items.Other) or view.type in items.HISTORY_KINDS


def shortened(whole: HistoryEntry, metadata: bytes | msgspec.Raw, policy: TruncationPolicy) -> HistoryEntry:
    """Cut a tool output down to its budget: the limit that its line notes, else the policy and its headroom."""
    view = whole.view
    if not isinstance(view, items.FunctionCallOutput | items.CustomToolCallOutput):
        return whole
    noted = _noted_limit(metadata)
    return truncated_output(whole, policy.with_headroom() if noted is None else TruncationPolicy("tokens", noted))


def truncated_output(whole: HistoryEntry, limit: TruncationPolicy) -> HistoryEntry:
    """Cut the output of a tool to a limit; other items come back as they are."""
    view = whole.view
    if not isinstance(view, items.FunctionCallOutput | items.CustomToolCallOutput):
        return whole
    if isinstance(view.output, str):
        short = truncate.truncate(view.output, limit)
        return whole if short == view.output else entry_of_item({**fields(whole.raw), "output": short})
    fitted = truncate.truncate_parts(view.output, limit)
    if fitted is None:
        return whole
    item = fields(whole.raw)
    kept = [
        {**fields(part), "text": fitted.texts[index]} if index in fitted.texts else part
        for index, part in enumerate(parts(item["output"]))
        if index not in fitted.dropped
    ]
    kept += [{"type": "input_text", "text": note} for note in fitted.notes]
    return entry_of_item({**item, "output": kept})


def truncated(whole: HistoryEntry, limit: TruncationPolicy) -> HistoryEntry | None:
    """Return an item with its text cut to a limit; None if it is of a kind that has no text to cut."""
    item = fields(whole.raw)
    match whole.view:
        case items.FunctionCallOutput() | items.CustomToolCallOutput():
            return truncated_output(whole, limit)
        case items.FunctionCall(arguments=given):
            cut = {"truncated": truncate.truncate(given, limit)}
            return entry_of_item({**item, "arguments": msgspec.json.encode(cut).decode()})
        case items.CustomToolCall(input=given):
            return entry_of_item({**item, "input": truncate.truncate(given, limit)})
        case items.Message(content=content):
            text = "".join(part.text for part in content if part.text)
            kind = "output_text" if whole.view.role == "assistant" else "input_text"
            return entry_of_item({**item, "content": [{"type": kind, "text": truncate.truncate(text, limit)}]})
        case _:
            return None


def _noted_limit(metadata: bytes | msgspec.Raw) -> int | None:
    if not metadata:
        return None
    try:
        limit = _limit.decode(metadata).fallback_token_limit_override
    except msgspec.DecodeError:
        return None
    return limit if limit is None or limit >= 0 else None
