"""Which memories the answers in a session file cite, from a byte on: what was read before is not counted again."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.protocol import citations, items
from commonplace.rollout import reader
from commonplace.rollout.reader import open_session

_BLOCK: Final = 4 * 2**20
"""How many bytes are searched at a time."""
_MARK: Final = citations.OPEN.encode()


class CitingAnswer(msgspec.Struct, frozen=True):
    """The citations of one answer."""

    threads: tuple[str, ...]
    places: tuple[tuple[str, int, int], ...]
    """Files of the memory, each with the first and the last line."""


def citations_since(path: Path, start: int) -> tuple[list[CitingAnswer], int]:
    """Return what answers behind byte `start` cite, each once, and where the last line ends.

    Bytes are those of the text, whether or not the file is compressed. A line that is not finished yet is left for
    another time; a file that cannot be read cites nothing.
    """
    found: list[CitingAnswer] = []
    end = start
    try:
        start = end = _line_start(path, start)
        mentions, ends = _mentions(path, start)
        if not mentions:
            return [], max(ends, start)
        for record in reader.forward(path, start=start):
            if not isinstance(record, reader.Line):
                continue
            end = record.offset + record.size + 1
            raw = bytes(record.payload)
            if record.type == "response_item" and _MARK in raw and not record.is_repeat:
                found.extend(citations_in_item(raw))
    except (CommonplaceError, OSError):
        pass
    return found, end


def _line_start(path: Path, start: int) -> int:
    """Return where the line begins that byte `start` is in; one that was cut off there may be finished by now."""
    if reader.is_compressed(path):
        return start
    with open_session(path) as file:
        end = start
        while end > 0:
            begin = max(0, end - _BLOCK)
            file.seek(begin)
            block = file.read(end - begin)
            if len(block) < end - begin:  # it was shorter than it once was
                return start
            if (newline := block.rfind(b"\n")) >= 0:
                return begin + newline + 1
            end = begin
    return 0


def _mentions(path: Path, start: int) -> tuple[bool, int]:
    """Say whether a citation may be behind a byte, without taking lines apart; if not, where the last line ends."""
    with open_session(path) as file:
        _skip(file, start, compressed=reader.is_compressed(path))
        tail, here, end = b"", start, start
        while block := file.read(_BLOCK):
            if _MARK in tail + block:
                return True, start
            tail = block[-len(_MARK) :]
            if (newline := block.rfind(b"\n")) >= 0:
                end = here + newline + 1
            here += len(block)
    return False, end


def _skip(file: BinaryIO, start: int, *, compressed: bool) -> None:
    if not compressed:
        file.seek(start)
        return
    left = start
    while left and (piece := file.read(min(left, _BLOCK))):
        left -= len(piece)


def citations_in_item(raw: bytes) -> list[CitingAnswer]:
    """Return what an item cites, if it is an answer that cites something."""
    try:
        view = items.view(raw)
    except (msgspec.DecodeError, RecursionError):
        return []
    if not isinstance(view, items.Message) or view.role != "assistant":
        return []
    text = "".join(part.text or "" for part in view.content)
    threads, citation = tuple(citations.cited_threads(text)), citations.finished(text).citation
    places = (
        tuple(dict.fromkeys((each.path, each.line_start, each.line_end) for each in citation.entries))
        if citation
        else ()
    )
    return [CitingAnswer(threads, places)] if threads or places else []
