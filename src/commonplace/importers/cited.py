"""Which memories the answers in a session file cite, from a byte on: what was read before is not counted again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.memory import citations
from commonplace.protocol import items
from commonplace.rollout import reader
from commonplace.rollout.reader import open_session

_BLOCK: Final = 4 * 2**20
_MARK: Final = citations.OPEN.encode()


def threads(path: Path, start: int) -> Iterator[str]:
    """Yield the threads that answers behind byte `start` cite, once for each answer."""
    try:
        if not _mentions(path, start):
            return
        for record in reader.forward(path, start=0 if reader.is_compressed(path) else start):
            if isinstance(record, reader.Line) and record.type == "response_item" and record.offset >= start:
                raw = bytes(record.payload)
                if _MARK in raw:
                    yield from by_item(raw)
    except (CommonplaceError, OSError):
        return


def _mentions(path: Path, start: int) -> bool:
    """Say whether a citation may be in there, without taking lines apart."""
    with open_session(path) as file:
        if not reader.is_compressed(path):
            file.seek(start)
        tail = b""
        while block := file.read(_BLOCK):
            if _MARK in tail + block:
                return True
            tail = block[-len(_MARK) :]
    return False


def by_item(raw: bytes) -> list[str]:
    """Return the threads that an item cites, if it is an answer."""
    try:
        view = items.view(raw)
    except (msgspec.DecodeError, RecursionError):
        return []
    if not isinstance(view, items.Message) or view.role != "assistant":
        return []
    return citations.cited_threads("".join(part.text or "" for part in view.content))
