"""Pairing: entries become the items of a request, with calls and outputs in pairs.

A provider refuses a prompt in which a call has no output or an output no call. So every call that was not answered yet
is followed by an output that says so, and an output before which its call does not stand is left out. Ids may be used
again (some models count their calls from zero in every answer): an output answers the newest call that still waits,
else it is one more word on the newest call of that id.

**The prefix.** Entries are taken one after the other and each adds to the end, with one exception: an output takes away
the stand-in of the call that it answers. So what a provider has cached stays valid up to the first call that waits, and
altogether if none does. The stand-in has an id that is made from the call's, so it is the same in every request.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from commonplace.context import modalities
from commonplace.context.history_items import HistoryEntry
from commonplace.context.modalities import Modalities
from commonplace.protocol import items
from commonplace.protocol.items import View

ABORTED: Final = "aborted"
_SYNTHETIC: Final = uuid.UUID("90d38d3e-6a5b-4d52-bfe2-2f1e634bfac4")
"""Namespace of the ids of outputs that are made up for unanswered calls, so that they never change."""
_KINDS: Final = {"fco": "function_call_output", "ctco": "custom_tool_call_output", "tso": "tool_search_output"}

Key = tuple[str, str]
"""The family of a call, by the prefix of its outputs' ids, and its call id."""


class _Waiting(msgspec.Struct, gc=False):
    slot: int
    call: View


class PairedPrompt:
    """A prompt that grows with its history: adding an entry costs the same however long the history is."""

    def __init__(self, takes: Modalities) -> None:
        self.takes = takes
        self.taken = 0
        """How many entries are in it."""
        self._slots: list[bytes | None] = []
        self._waiting: dict[Key, list[_Waiting]] = {}
        self._called: set[Key] = set()

    def take(self, entries: Sequence[HistoryEntry]) -> None:
        """Take the entries that are new since the last time."""
        for index in range(self.taken, len(entries)):
            self._take(entries[index])
        self.taken = len(entries)

    def _take(self, entry: HistoryEntry) -> None:
        view = entry.view
        answered = output_key(view)
        if answered is not None:
            waiting = self._waiting.get(answered)
            if waiting:
                self._slots[waiting.pop().slot] = None
                if not waiting:
                    del self._waiting[answered]
            elif answered not in self._called and not stands_alone(view):
                return
        self._slots.append(items.wire(modalities.with_supported_media(entry.raw, view, self.takes)))
        called = call_key(view)
        if called is not None:
            self._called.add(called)
            self._waiting.setdefault(called, []).append(_Waiting(len(self._slots), view))
            self._slots.append(None)

    def items(self) -> list[bytes]:
        """Return the prompt as it is now."""
        for key, calls in self._waiting.items():
            for waiting in calls:
                if self._slots[waiting.slot] is None:
                    self._slots[waiting.slot] = missing_output(waiting.call, key)
        return [slot for slot in self._slots if slot is not None]


def call_key(view: View) -> Key | None:
    """Return what an output must have in common with this call; None if it is not a call that can be answered."""
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


def output_key(view: View) -> Key | None:
    """Return what a call must have in common with this output; None if it is not an output that names a call."""
    match view:
        case items.FunctionCallOutput(call_id=str(call_id)):
            return "fco", call_id
        case items.CustomToolCallOutput(call_id=call_id):
            return "ctco", call_id
        case items.ToolSearchOutput(call_id=str(call_id)):
            return "tso", call_id
        case _:
            return None


def stands_alone(view: View) -> bool:
    """Say whether an output needs no call: the server ran the search itself."""
    return isinstance(view, items.ToolSearchOutput) and view.execution == "server"


def missing_output(call: View, key: Key) -> bytes:
    """Return the output that stands in for one that never came."""
    prefix, call_id = key
    item: dict[str, Any] = {"type": _KINDS[prefix]}
    if call.id:
        item["id"] = f"{prefix}_{uuid.uuid5(_SYNTHETIC, f'{prefix}:{call.id}')}"
    item["call_id"] = call_id
    if prefix == "tso":
        item |= {"status": "completed", "execution": "client", "tools": []}
    else:
        item["output"] = ABORTED
    return msgspec.json.encode(item)
