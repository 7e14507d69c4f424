"""A ledger that an earlier import wrote, read record by record, to be compared with what its source says now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.importers.forks import mark_of_line, shared_records
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import chain, compression, reader

COPIED: Final = frozenset({"specstory"})
"""Sources that render what another agent did: where the agent's own file comes in, it takes their place."""


class SessionLeftOut(Exception):
    """A session is not imported; the text is the reason."""


def usable(path: Path | None, source: str) -> tuple[Path | None, str | None]:
    """Return a ledger as a file that can be added to, and what it was imported from; nothing if a crash emptied it.

    Raises:
        SessionLeftOut: it is a thread of another source, or one of ours.
    """
    if path is None:
        return None, None
    try:
        noted = chain.read_head(path)[1].imported
    except CommonplaceError:
        return None, None
    if noted is not None and noted.source in COPIED and source not in COPIED:
        return (compression.materialise(path) if reader.is_compressed(path) else path), None
    if noted is None or noted.source != source:
        raise SessionLeftOut("taken")
    return (compression.materialise(path) if reader.is_compressed(path) else path), noted.path or None


class LedgerRecord(msgspec.Struct, gc=False):
    """A record as a ledger has it: where its lines begin, and what a copy of it would say."""

    record: str
    offset: int
    marks: list[bytes] = []


def is_copied(path: Path) -> bool:
    """Say whether a ledger was made from a rendering of another agent's session."""
    noted = chain.read_head(path)[1].imported
    return noted is not None and noted.source in COPIED


def records(path: Path, *, marked: bool) -> tuple[int, Iterator[LedgerRecord]]:
    """Return how many records a ledger leaves to another, and its own, each with its marks if they are wanted."""
    records = reader.forward(path)
    first = next((record for record in records if isinstance(record, Line)), None)
    return shared_records(first) if first is not None else 0, _own(records, marked=marked)


def _own(records: Iterator[reader.Record], *, marked: bool) -> Iterator[LedgerRecord]:
    last: LedgerRecord | None = None
    for record in records:
        if isinstance(record, Skipped):  # damaged: what comes next cannot be what the source says
            if last is not None:
                yield last
            last = LedgerRecord(f"damaged:{record.offset}", record.offset)
            continue
        origin = record.source()
        if origin is None or not origin.id:
            continue
        if last is None or origin.id != last.record:
            if last is not None:
                yield last
            last = LedgerRecord(origin.id, record.offset)
        if marked and (mark := mark_of_line(record)) is not None:
            last.marks.append(mark)
    if last is not None:
        yield last
