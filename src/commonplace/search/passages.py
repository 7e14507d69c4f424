"""What of a session is searched: what people and the model said, message by message, with where each stands.

Tool calls, their output and what agents put into a conversation are no part of it; the exact search reads those.
Neither is what came out of a memory, or it would be found twice. Each passage names the byte that its line begins at,
so that its words are read from the ledger when somebody asks for them, and never kept twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.protocol import citations, fragments, items, turns
from commonplace.protocol.ids import parse_time
from commonplace.protocol.rollout import Line, Skipped
from commonplace.rollout import chain, reader, survey
from commonplace.search.rank.build import Passage

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class Said(msgspec.Struct):
    """A message as it is searched and shown."""

    role: str
    text: str
    speaker: str = ""
    source_id: str | None = None
    time: str | None = None


def of_session(path: Path, *, dated: bool = False) -> Iterator[Passage]:
    """Yield what was said in a session file; `dated` lets each be found by its day, as people ask about talks.

    Raises:
        LedgerError, NotASession: the file cannot be read.
    """
    counter = turns.TurnCounter()
    counter.turns = inherited_turns(path)
    for line in reader.forward(path):
        if isinstance(line, Skipped):
            continue
        try:
            if line.type != "response_item":
                survey.count_turn(counter, line)
            elif (passage := _message(counter, line, dated=dated)) is not None:
                yield passage
        except (msgspec.DecodeError, RecursionError):
            continue


def inherited_turns(path: Path) -> int:
    """Return how many turns a fork begins with."""
    try:
        if chain.read_head(path)[1].history_base is None:
            return 0
        ledger = chain.open_ledger(path)
        found = survey.Survey(ledger.meta)
        for part in reversed(ledger.parts[1:]):
            survey.Surveyor(found).run(reader.forward(part.path, end=part.end))
    except CommonplaceError:
        return 0
    return found.turns


def _message(counter: turns.TurnCounter, line: Line, *, dated: bool) -> Passage | None:
    if survey.kind_of(line.payload) not in ("message", "agent_message"):
        return None
    view = items.view(line.payload)
    survey.count_turn(counter, line, view)
    said = _said(view, line)
    if said is None:
        return None
    moment = parse_time(line.timestamp) if line.timestamp else None
    also = f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}" if moment and dated else ""
    seconds = int(moment.timestamp()) if moment else 0
    is_user = said.role == "user"
    return Passage(said.text, line.offset, is_user, said.speaker, also, seconds, counter.turns)


def said(line: Line) -> Said | None:
    """Return what a line of a ledger says; None if nobody says anything in it."""
    if line.type != "response_item":
        return None
    try:
        return _said(items.view(line.payload), line)
    except (msgspec.DecodeError, RecursionError):
        return None


def _said(view: items.View, line: Line) -> Said | None:
    if not isinstance(view, items.Message):
        return None
    origin = line.source()
    if origin is not None and origin.memory:
        return None
    if view.role == "user":
        text = fragments.own_words(view)
    elif view.role == "assistant":
        text = citations.strip(view.text())[0].strip()
    else:
        return None
    if not text:
        return None
    speaker = (origin.name if origin is not None else None) or ""
    source_id = (origin.id if origin is not None else "") or None
    return Said(view.role, text, speaker, source_id, line.timestamp)


def read(path: Path, offsets: Sequence[int]) -> dict[int, Said]:
    """Return what is said in the lines that begin at some bytes of a session file; what is not there is left out."""
    found: dict[int, Said] = {}
    try:
        if reader.is_compressed(path):
            wanted = set(offsets)
            for line in reader.forward(path):
                if line.offset in wanted and isinstance(line, Line) and (words := said(line)) is not None:
                    found[line.offset] = words
                if line.offset >= max(offsets):
                    break
            return found
        for offset in sorted(set(offsets)):
            line = next(iter(reader.forward(path, start=offset)), None)
            if isinstance(line, Line) and (words := said(line)) is not None:
                found[offset] = words
    except (CommonplaceError, OSError):
        return found
    return found


def line_end(path: Path, offset: int) -> int | None:
    """Return where the line ends that begins at a byte of a session file."""
    try:
        line = next(iter(reader.forward(path, start=offset)), None)
    except (CommonplaceError, OSError):
        return None
    return line.offset + line.size if isinstance(line, Line) else None
