"""The passages of a session: the messages of people and of the model, with the position of each.

Tool calls, their output and injected texts are not indexed; the exact search reads those. Text that came out of a
memory is not indexed either, because it would be found twice. Each passage names the byte at which its line begins, so
that its text is read from the ledger when it is shown, and is never stored twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.protocol import citations, fragments, items
from commonplace.protocol.ids import parse_time
from commonplace.protocol.rollout import Line
from commonplace.rollout import chain, reader
from commonplace.rollout.fold import LedgerFold, kind_of
from commonplace.search.rank.build import Passage

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class SearchableMessage(msgspec.Struct):
    """A message as it is searched and shown."""

    role: str
    text: str
    speaker: str = ""
    source_id: str | None = None
    time: str | None = None


def of_session(path: Path, *, dated: bool = False) -> Iterator[Passage]:
    """Yield the passages of a session file; `dated` adds the words of their day, so that queries about a day find them.

    Raises:
        LedgerError, NotASession: the file cannot be read.
    """
    fold = _PassageFold(inherited_turns(path), dated=dated)
    for line in reader.forward(path):
        if isinstance(line, Line):
            fold.see(line)
            yield from fold.taken()


class _PassageFold(LedgerFold):
    def __init__(self, turns_before: int, *, dated: bool) -> None:
        super().__init__(turns_before)
        self._dated = dated
        self._passages: list[Passage] = []

    def taken(self) -> list[Passage]:
        passages, self._passages = self._passages, []
        return passages

    def wants_item(self, line: Line) -> bool:
        return kind_of(line.payload) in ("message", "agent_message")

    def item(self, view: items.View, line: Line, *, begins_turn: bool) -> None:
        words = _message_of(view, line)
        if words is None:
            return
        moment = parse_time(line.timestamp) if line.timestamp else None
        also = f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}" if moment and self._dated else ""
        seconds = int(moment.timestamp()) if moment else 0
        is_user = words.role == "user"
        self._passages.append(Passage(words.text, line.offset, is_user, words.speaker, also, seconds, self.turn))


def inherited_turns(path: Path) -> int:
    """Return how many turns a fork begins with."""
    try:
        if chain.read_head(path)[1].history_base is None:
            return 0
        ledger = chain.open_ledger(path)
        fold = LedgerFold()
        for part in reversed(ledger.parts[1:]):
            fold.run(reader.forward(part.path, end=part.end))
    except CommonplaceError:
        return 0
    return fold.turn


def message_in_line(line: Line) -> SearchableMessage | None:
    """Return the message in a line of a ledger; None if the line holds none."""
    if line.type != "response_item":
        return None
    try:
        return _message_of(items.view(line.payload), line)
    except (msgspec.DecodeError, RecursionError):
        return None


def _message_of(view: items.View, line: Line) -> SearchableMessage | None:
    if not isinstance(view, items.Message):
        return None
    origin = line.source()
    if line.is_repeat or (origin is not None and origin.memory):
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
    return SearchableMessage(view.role, text, speaker, source_id, line.timestamp)


def read(path: Path, offsets: Sequence[int]) -> dict[int, SearchableMessage]:
    """Return the messages in the lines that begin at some bytes of a session file; missing ones are left out."""
    found: dict[int, SearchableMessage] = {}
    try:
        if reader.is_compressed(path):
            wanted = set(offsets)
            for line in reader.forward(path):
                if line.offset in wanted and isinstance(line, Line) and (words := message_in_line(line)) is not None:
                    found[line.offset] = words
                if line.offset >= max(offsets):
                    break
            return found
        for offset in sorted(set(offsets)):
            line = next(iter(reader.forward(path, start=offset)), None)
            if isinstance(line, Line) and (words := message_in_line(line)) is not None:
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
