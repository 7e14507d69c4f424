"""What stays of a turn when a person rewinds to the middle of it, and how its records are read again.

As Claude Code itself does: what leads to the new prompt stays, with the other blocks of the same answers, and what
hangs on those: results of calls and what hooks put beside them. What came before a compaction stays, too: the
compaction told it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from commonplace.importers import json_lines
from commonplace.importers.claude_code import record_kinds, records
from commonplace.importers.claude_code.branches import HeldRecord
from commonplace.importers.claude_code.records import ClaudeRecord
from commonplace.protocol.rollout import Skipped
from commonplace.rollout.reader import open_session


def decode(offset: int, raw: bytes) -> HeldRecord | Skipped:
    """Return the record that stands at an offset, or why it cannot be used."""
    try:
        found = json_lines.decode_repaired(records.decode, raw)
    except msgspec.DecodeError:
        return Skipped(offset, len(raw), json_lines.NOT_JSON)
    except RecursionError:
        return Skipped(offset, len(raw), "too_deep")
    return HeldRecord(found, offset, len(raw)) if found is not None else Skipped(offset, len(raw), "not_a_record")


def read_again(path: Path, places: Iterable[tuple[int, int]]) -> Iterator[HeldRecord]:
    """Yield records that were read before, by offset and size."""
    with open_session(path) as file:
        for offset, size in places:
            file.seek(offset)
            held = decode(offset, file.read(size))
            if isinstance(held, HeldRecord):
                yield held


def kept(turn: Sequence[HeldRecord], parent: str) -> list[HeldRecord] | None:
    """Return what stays of a turn when a prompt hangs on one of its records; None if nothing was given up.

    A call without a result is no answer that was given up: the program was ended before it ran.
    """
    by_uuid = {held.record.uuid: held for held in turn}
    staying: set[str] = set()
    above: str | None = parent
    while above and above in by_uuid and above not in staying:
        staying.add(above)
        above = by_uuid[above].parent
    if not turn or turn[0].record.uuid not in staying:
        return None
    answers = {_answer(held.record) for held in turn if held.record.uuid in staying} - {""}
    last = max(
        (at for at, held in enumerate(turn) if _is_summary(held.record) and held.record.uuid in staying), default=0
    )
    for at, held in enumerate(turn):
        hangs = held.parent in staying and (held.record.type != "user" or _has_result(held.record))
        if at <= last or _answer(held.record) in answers or (hangs and not _answer(held.record)):
            staying.add(held.record.uuid)
    if not any(_says(held.record) for held in turn if held.record.uuid not in staying):
        return None
    return [held for held in turn if held.record.uuid in staying]


def _answer(record: ClaudeRecord) -> str:
    """Return the id of the answer that a record is a block of; the record's own, where the answer has none."""
    if record.type != "assistant":
        return ""
    return (record.message.id if record.message is not None else "") or record.uuid


def _is_summary(record: ClaudeRecord) -> bool:
    return record.is_compact_summary or record.subtype == "compact_boundary"


def _has_result(record: ClaudeRecord) -> bool:
    return any(block.type == "tool_result" for block in _blocks(record))


def _says(record: ClaudeRecord) -> bool:
    """Return whether a record is the model's words, or the result of a call."""
    if record.type == "user":
        return _has_result(record)
    is_model = record.type == "assistant" and not record_kinds.is_synthetic(record)
    return is_model and any(block.type == "text" for block in _blocks(record))


def _blocks(record: ClaudeRecord) -> list[records.ContentBlock]:
    try:
        return records.blocks(record.message.content) if record.message is not None else []
    except (msgspec.DecodeError, RecursionError):
        return []
