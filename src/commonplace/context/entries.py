"""One item of a history: its JSON as it was recorded, the view of it, and what it costs.

Entries are values: a change makes a new one, so an estimate that was made once holds for as long as the entry lives.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from commonplace.context import tokens, truncate
from commonplace.context.truncate import Policy
from commonplace.protocol import items
from commonplace.protocol.items import View

_NOT_YET: Final = -1


class Entry(msgspec.Struct, frozen=True, eq=False):
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
        return isinstance(other, Entry) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)


class _Limit(msgspec.Struct):
    fallback_token_limit_override: int | None = None


_limit = msgspec.json.Decoder(_Limit)
_object = msgspec.json.Decoder(dict[str, Any])


def entry(raw: bytes | msgspec.Raw) -> Entry:
    """Return the entry of an item's JSON (raises msgspec.DecodeError if it is not an item)."""
    return Entry(bytes(raw), items.view(raw))


def made(item: dict[str, Any]) -> Entry:
    """Return the entry of an item that this program made."""
    return entry(msgspec.json.encode(item))


def fields(of: Entry) -> dict[str, Any]:
    """Return all fields of an entry's item, the unknown ones too."""
    return _object.decode(of.raw)


def recordable(view: View) -> bool:
    """Say whether a history can hold the item."""
    return not isinstance(view, items.Other) or view.type in items.HISTORY_KINDS


def shortened(whole: Entry, metadata: bytes | msgspec.Raw, policy: Policy) -> Entry:
    """Cut a tool output down to its budget: the limit that its line notes, else the policy and its headroom."""
    view = whole.view
    if not isinstance(view, items.FunctionCallOutput | items.CustomToolCallOutput):
        return whole
    noted = _noted_limit(metadata)
    limit = policy.with_headroom() if noted is None else Policy("tokens", noted)
    if isinstance(view.output, str):
        short = truncate.truncate(view.output, limit)
        return whole if short == view.output else made({**fields(whole), "output": short})
    fitted = truncate.truncate_parts(view.output, limit)
    if fitted is None:
        return whole
    item = fields(whole)
    parts = [
        {**part, "text": fitted.texts[index]} if index in fitted.texts else part
        for index, part in enumerate(item["output"])
        if index not in fitted.dropped
    ]
    parts += [{"type": "input_text", "text": note} for note in fitted.notes]
    return made({**item, "output": parts})


def _noted_limit(metadata: bytes | msgspec.Raw) -> int | None:
    if not metadata:
        return None
    try:
        limit = _limit.decode(metadata).fallback_token_limit_override
    except msgspec.DecodeError:
        return None
    return limit if limit is None or limit >= 0 else None
