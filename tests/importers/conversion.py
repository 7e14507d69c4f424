"""What a converter made of a file, in the words of the tests: who said what, what was called, what was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from commonplace.importers.converter import ConvertedRecord, Converter, SessionHead
from commonplace.protocol.items import PASSTHROUGH
from commonplace.protocol.rollout import Skipped


class Thread(msgspec.Struct):
    """One thread of a file."""

    head: SessionHead
    pieces: list[ConvertedRecord] = []

    @property
    def records(self) -> list[str]:
        return [piece.record for piece in self.pieces]

    @property
    def lines(self) -> list[tuple[str, dict[str, Any], Any]]:
        """Type, payload and origin of each line to be."""
        return [
            (payload.type, msgspec.json.decode(msgspec.json.encode(payload.value)), payload.origin)
            for piece in self.pieces
            for payload in piece.payloads
        ]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [value for kind, value, _ in self.lines if kind == "response_item"]

    @property
    def said(self) -> list[tuple[str, str]]:
        """Kind and text of every part of a user's or developer's message."""
        return [
            (kind, str(part.get("text", part.get("image_url"))))
            for item in self.items
            if item["type"] == "message" and item["role"] != "assistant"
            for kind, part in zip(item[PASSTHROUGH]["content_item_kinds"], item["content"], strict=True)
        ]

    @property
    def user_texts(self) -> list[str]:
        """What the person said, message by message."""
        return [
            "\n".join(part["text"] for part, kind in zip(item["content"], kinds, strict=True) if kind == "user.text")
            for item in self.items
            if item["type"] == "message" and item["role"] != "assistant"
            for kinds in [item[PASSTHROUGH]["content_item_kinds"]]
            if "user.text" in kinds
        ]

    @property
    def active_texts(self) -> list[str]:
        """What the person said and did not take back."""
        found: list[str] = []
        for kind, value, _ in self.lines:
            if kind == "event_msg":
                del found[len(found) - value["num_turns"] :]
            elif kind == "response_item" and value.get("role") == "user":
                kinds = value[PASSTHROUGH]["content_item_kinds"]
                parts = zip(value["content"], kinds, strict=True)
                said = [str(part.get("text")) for part, kind in parts if kind == "user.text"]
                found.extend(["\n".join(said)] if said else [])
        return found

    @property
    def answers(self) -> list[str]:
        return [str(item["content"][0]["text"]) for item in self.items if item.get("role") == "assistant"]

    @property
    def calls(self) -> list[str]:
        return [str(item["name"]) for item in self.items if item["type"] == "function_call"]

    @property
    def outputs(self) -> list[tuple[Any, bool | None]]:
        """What each call gave, and whether the source says that it worked."""
        return [
            (value["output"], origin.ok)
            for kind, value, origin in self.lines
            if kind == "response_item" and value["type"] == "function_call_output"
        ]

    @property
    def compactions(self) -> list[dict[str, Any]]:
        return [value for kind, value, _ in self.lines if kind == "compacted"]

    @property
    def taken_back(self) -> list[int]:
        return [value["num_turns"] for kind, value, _ in self.lines if kind == "event_msg"]

    @property
    def titles(self) -> list[str]:
        return [value["title"] for _, value, _ in self.lines if value.get("kind") == "title"]

    @property
    def user_kinds(self) -> list[str]:
        """The kind of each message of role user, in the words of the fixtures."""
        found: list[str] = []
        for kind, value, _ in self.lines:
            if kind == "compacted":
                found.append("compact_summary")
            elif kind == "response_item" and value.get("role") == "user":
                kinds = value[PASSTHROUGH]["content_item_kinds"]
                found.append("user" if "user.text" in kinds else kinds[0].partition(".")[2])
        return found


class Conversion(msgspec.Struct):
    """All of a file."""

    threads: list[Thread] = []
    skipped: list[Skipped] = []

    @property
    def main(self) -> Thread:
        return self.threads[0]


def read(path: Path, convert: Converter) -> Conversion:
    """Convert a file; every piece must belong to a thread whose head came before it."""
    found = Conversion()
    by_id: dict[str, Thread] = {}
    for each in convert(path):
        match each:
            case SessionHead():
                assert each.thread_id not in by_id
                by_id[each.thread_id] = Thread(each)
                found.threads.append(by_id[each.thread_id])
            case ConvertedRecord():
                by_id[each.thread_id].pieces.append(each)
            case Skipped():
                found.skipped.append(each)
    return found
