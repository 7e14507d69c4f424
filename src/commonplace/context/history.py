"""The history: the list of items that the model will see next.

Items are kept as the JSON that was recorded, beside a typed view; only tool outputs are shortened on the way in, and
only `for_prompt` adds or leaves out anything: every call gets an output, every output has its call. Nothing here does
I/O, so a replay gives the same history every time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from commonplace.context import truncate
from commonplace.protocol import fragments, items, turns
from commonplace.protocol.items import Message, View

LEGACY_USER_TOKENS: Final = 20_000
"""Budget for the user messages that a compaction without a replacement history keeps."""
NO_SUMMARY: Final = "(no summary available)"
_SYNTHETIC: Final = uuid.UUID("90d38d3e-6a5b-4d52-bfe2-2f1e634bfac4")
"""Namespace of the ids of outputs that are made up for unanswered calls, so that they never change."""


class Entry(msgspec.Struct, frozen=True):
    """One item: its JSON as recorded, and the view of it."""

    raw: bytes
    view: View


class _Limit(msgspec.Struct):
    fallback_token_limit_override: int | None = None


_limit = msgspec.json.Decoder(_Limit)
_object = msgspec.json.Decoder(dict[str, Any])


class History:
    """An ordered list of items with the operations that a replay needs."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def record(self, raw: bytes | msgspec.Raw, metadata: bytes | msgspec.Raw = b"") -> Entry | None:
        """Append one item, its output shortened if need be; None if it is of a kind no history holds.

        Raises:
            msgspec.DecodeError: the JSON is not an item.
        """
        view = items.view(raw)
        if not _recordable(view) or (isinstance(view, Message) and view.role == "system"):
            return None
        entry = _shortened(Entry(bytes(raw), view), metadata)
        self.entries.append(entry)
        return entry

    def replace(self, replacement: Iterable[bytes | msgspec.Raw]) -> int:
        """Put a compaction's items in place of everything; return how many of them were damaged and left out."""
        self.entries, damaged = [], 0
        for raw in replacement:
            try:
                view = items.view(raw)
            except (msgspec.DecodeError, RecursionError):
                damaged += 1
                continue
            if _recordable(view):
                self.entries.append(Entry(bytes(raw), view))
        return damaged

    def compact_without_replacement(self, summary: str) -> None:
        """Do what a compaction of the 2025 format meant: keep the person's messages, then the summary."""
        kept: list[Entry] = []
        left = LEGACY_USER_TOKENS
        for entry in reversed(self.entries):
            message = entry.view
            if left <= 0:
                break
            if not isinstance(message, Message) or message.role != "user" or fragments.is_contextual(message):
                continue
            texts = [part.text for part in message.content if part.text is not None]
            if not texts or fragments.is_summary_message(message):
                continue
            cost = sum(map(truncate.approximate_tokens, texts))
            kept.append(_with_texts(entry, texts if cost <= left else _cut(texts, left)))
            left -= cost
        said = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": summary or NO_SUMMARY}],
        }
        self.entries = [*reversed(kept), _entry(said)]

    def drop_last_user_turns(self, count: int) -> bool:
        """Roll back; return whether the injected context above the cut went with it (so it must be sent again)."""
        starts = [index for index, entry in enumerate(self.entries) if turns.is_boundary(entry.view)]
        if count <= 0 or not starts:
            return False
        first = starts[0]
        cut = starts[-count] if count <= len(starts) else first
        boundary = self.entries[cut].view
        lost_context = False
        while cut > first and (above := _contextual(self.entries[cut - 1])) is not None:
            lost_context |= above.role == "developer" and not _all_contextual(above)
            cut -= 1
        self.entries = self.entries[:cut]
        if cut == first and boundary.turn_id:
            self.entries = list(_without_model_switch(self.entries, boundary.turn_id))
        return lost_context

    def for_prompt(self) -> list[bytes]:
        """Return the items as a request carries them: bookkeeping off, calls and outputs paired."""
        calls = {_call_key(entry.view) for entry in self.entries} - {None}
        answered = {_output_key(entry.view) for entry in self.entries} - {None}
        prompt: list[bytes] = []
        for entry in self.entries:
            key = _output_key(entry.view)
            if key is not None and key not in calls and not _stands_alone(entry.view):
                continue
            prompt.append(items.wire(entry.raw))
            call = _call_key(entry.view)
            if call is not None and call not in answered:
                prompt.append(_missing_output(entry.view, call))
        return prompt


def _recordable(view: View) -> bool:
    return not isinstance(view, items.Other) or view.type in items.HISTORY_KINDS


def _entry(item: dict[str, Any]) -> Entry:
    raw = msgspec.json.encode(item)
    return Entry(raw, items.view(raw))


def _shortened(entry: Entry, metadata: bytes | msgspec.Raw) -> Entry:
    """Cut a tool output down to its budget: the line's own limit where the writer noted one."""
    view = entry.view
    if not isinstance(view, items.FunctionCallOutput | items.CustomToolCallOutput):
        return entry
    if len(entry.raw) <= truncate.BYTES_PER_TOKEN and not metadata:
        return entry
    tokens = _noted_limit(metadata)
    tokens = truncate.REPLAY_TOKENS if tokens is None else tokens
    if isinstance(view.output, str):
        short = truncate.truncate(view.output, tokens)
        if short == view.output:
            return entry
        return _entry({**_object.decode(entry.raw), "output": short})
    texts = truncate.truncate_parts(view.output, tokens)
    if texts is None:
        return entry
    whole = _object.decode(entry.raw)
    new_texts = dict(texts)
    parts = [
        {**part, "text": new_texts[index]} if index in new_texts else part
        for index, part in enumerate(whole["output"])
        if index in new_texts or view.output[index].text is None
    ]
    if -1 in new_texts:
        parts.append({"type": "input_text", "text": new_texts[-1]})
    return _entry({**whole, "output": parts})


def _noted_limit(metadata: bytes | msgspec.Raw) -> int | None:
    if not metadata:
        return None
    try:
        limit = _limit.decode(metadata).fallback_token_limit_override
    except msgspec.DecodeError:
        return None
    return limit if limit is None or limit >= 0 else None


def _cut(texts: list[str], tokens: int) -> list[str]:
    """Return the texts within a budget; the one that crosses it becomes head, marker and tail."""
    kept: list[str] = []
    for text in texts:
        pieces = truncate.split_middle(text, tokens)
        if pieces is not None:
            return [*kept, *(piece for piece in pieces if piece)]
        kept.append(text)
        tokens -= truncate.approximate_tokens(text)
    return kept


def _with_texts(entry: Entry, texts: list[str]) -> Entry:
    whole = _object.decode(entry.raw)
    return _entry({**whole, "content": [{"type": "input_text", "text": text} for text in texts]})


def _contextual(entry: Entry) -> Message | None:
    """Return the message if it is injected context of either role."""
    view = entry.view
    if isinstance(view, Message) and view.role in ("user", "developer") and fragments.is_contextual(view):
        return view
    return None


def _all_contextual(message: Message) -> bool:
    return all(part.text is None or fragments.recognise(part.text, message.role) for part in message.content)


def _without_model_switch(entries: list[Entry], turn_id: str) -> Iterable[Entry]:
    """Leave out notices of a model switch that belong to the turn which was rolled back."""
    for entry in entries:
        view = entry.view
        if not (isinstance(view, Message) and view.role == "developer" and view.turn_id == turn_id):
            yield entry
            continue
        switch = [_is_model_switch(part.text) for part in view.content]
        if not any(switch):
            yield entry
        elif not all(switch):
            whole = _object.decode(entry.raw)
            content = [part for part, gone in zip(whole["content"], switch, strict=True) if not gone]
            yield _entry({**whole, "content": content})


def _is_model_switch(text: str | None) -> bool:
    found = fragments.recognise(text, "developer") if text else None
    return found is not None and found.name == "model_switch"


_Key = tuple[str, str]


def _call_key(view: View) -> _Key | None:
    match view:
        case items.FunctionCall(call_id=call_id):
            return "fco", call_id
        case items.LocalShellCall(call_id=str(call_id)):
            return "fco", call_id
        case items.CustomToolCall(call_id=call_id):
            return "ctco", call_id
        case items.ToolSearchCall(call_id=str(call_id)):
            return "tso", call_id
        case _:
            return None


def _output_key(view: View) -> _Key | None:
    match view:
        case items.FunctionCallOutput(call_id=str(call_id)):
            return "fco", call_id
        case items.CustomToolCallOutput(call_id=call_id):
            return "ctco", call_id
        case items.ToolSearchOutput(call_id=str(call_id)):
            return "tso", call_id
        case _:
            return None


def _stands_alone(view: View) -> bool:
    """Outputs of searches that the server ran need no call."""
    return isinstance(view, items.ToolSearchOutput) and view.execution == "server"


def _missing_output(view: View, key: _Key) -> bytes:
    """Return the output that stands in for one that never came."""
    prefix, call_id = key
    kinds = {"fco": "function_call_output", "ctco": "custom_tool_call_output", "tso": "tool_search_output"}
    item: dict[str, Any] = {"type": kinds[prefix]}
    if view.id:
        item["id"] = f"{prefix}_{uuid.uuid5(_SYNTHETIC, f'{prefix}:{view.id}')}"
    item["call_id"] = call_id
    if prefix == "tso":
        item |= {"status": "completed", "execution": "client", "tools": []}
    else:
        item["output"] = "aborted"
    return msgspec.json.encode(item)
