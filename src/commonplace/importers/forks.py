"""Sessions that begin with a copy of another: recognised, and written as forks by reference.

Agents copy a session when it is forked or, in older versions, resumed: sometimes with the records' ids, sometimes with
new ids and lost flags, but always with the same words and the same ids of the model's answers and calls. So a copy is
looked for by its first record and its first answer, and then followed for as long as both say the same. What is shared
is not written again: the new ledger refers to the old one, and nothing is counted twice.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.errors import CommonplaceError
from commonplace.importers.converter import ConvertedRecord, Payload, SessionHead
from commonplace.protocol import items
from commonplace.protocol.rollout import Line
from commonplace.rollout import chain, fork
from commonplace.rollout.chain import Ledger, SkipLog
from commonplace.rollout.fork import Cut

_MAX_CANDIDATES: Final = 16
"""How many ledgers a session is compared with, the newest."""
_MAX_HELD: Final = 1000
"""How many records that can neither match nor differ are held; with more, the session counts as no copy."""
SHARED: Final = "shared_records"
"""In a ledger's first line: how many records of its source the ledger that it continues already has."""


class OriginIndex:
    """The ledgers that a session may be a copy of, by first record and first answer."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Path]] = {}

    def note(self, thread_id: str, path: Path, *keys: str | None) -> None:
        """Remember a ledger under what its copies would share."""
        for key in keys:
            if key:
                self._found.setdefault(key, {})[thread_id] = path

    def add(self, head: SessionHead, path: Path) -> None:
        """Remember a ledger that was just written."""
        if head.parent is None:
            self.note(head.thread_id, path, head.first_record, head.first_answer)

    def match(self, head: SessionHead) -> ForkMatcher | None:
        """Return what follows a session along the ledgers that it may be a copy of; None if there are none."""
        if head.parent is not None:
            return None
        places = {**self._found.get(head.first_record, {}), **self._found.get(head.first_answer, {})}
        places.pop(head.thread_id, None)
        candidates: list[_Candidate] = []
        for path in list(places.values())[-_MAX_CANDIDATES:]:
            try:
                candidates.append(_Candidate(chain.open_ledger(path)))
            except (CommonplaceError, OSError):
                continue
        return ForkMatcher(candidates) if candidates else None


class _Candidate:
    """A ledger, read in step with a new session."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lines = chain.forward(ledger, SkipLog())

    def follows(self, marks: list[bytes]) -> Cut | None:
        """Say where the ledger stands after these, if it says the same."""
        cut: Cut | None = None
        for mark in marks:
            for part, line in self._lines:
                own = mark_of_line(line)
                if own is None:
                    continue
                if own != mark:
                    return None
                cut = Cut(part, line.offset + line.size + 1, line.ordinal)
                break
            else:
                return None
        return cut


class ForkMatcher:
    """Follows a new session along its candidates until it says something that none of them says."""

    def __init__(self, candidates: list[_Candidate]) -> None:
        self._candidates = candidates
        self._shared: tuple[Ledger, Cut] | None = None
        self._records = 0
        self.held: list[ConvertedRecord] = []
        """Records since the last shared one that by themselves neither match nor differ."""

    def take(self, piece: ConvertedRecord) -> bool:
        """Say whether a record is shared so far; if not, `held` comes before it."""
        marks = marks_of(piece)
        if not marks:
            self.held.append(piece)
            return len(self.held) < _MAX_HELD
        alive: list[_Candidate] = []
        last: tuple[Ledger, Cut] | None = None
        for candidate in self._candidates:
            cut = candidate.follows(marks)
            if cut is not None:
                alive.append(candidate)
                last = (candidate.ledger, cut)
        if last is None:
            return False
        self._candidates, self._shared = alive, last
        self._records += len(self.held) + 1
        self.held = []
        return True

    def meta(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Return the first line of a ledger that begins where the session left what it shares."""
        if self._shared is None:
            return meta
        ledger, cut = self._shared
        noted = {**meta["imported"], SHARED: self._records}
        return {**fork.reference_meta(meta, ledger, cut), "imported": noted}


def shared_records(head: Line) -> int:
    """Return how many records of its source a ledger leaves to the one that it continues, by its first line."""
    try:
        noted = _meta.decode(head.payload).imported
    except (msgspec.DecodeError, RecursionError):
        return 0
    return noted.shared_records if noted is not None else 0


class _Imported(msgspec.Struct):
    shared_records: int = 0


class _Meta(msgspec.Struct):
    imported: _Imported | None = None


_meta = msgspec.json.Decoder(_Meta)


def marks_of(piece: ConvertedRecord) -> list[bytes]:
    """Return what a copy of a record would have in common with it."""
    return [mark for payload in piece.payloads if (mark := mark_of_payload(payload)) is not None]


def mark_of_payload(payload: Payload) -> bytes | None:
    """Return what a copy of a payload would have in common with it; None for what copies may lack."""
    if payload.type not in ("response_item", "compacted"):
        return None
    return _mark(payload.type, msgspec.json.encode(payload.value))


def mark_of_line(line: Line) -> bytes | None:
    """Return the same for a line of a ledger."""
    return _mark(line.type, bytes(line.payload)) if line.type in ("response_item", "compacted") else None


class _Summary(msgspec.Struct):
    message: str = ""


def _mark(line_type: str, payload: bytes) -> bytes | None:
    try:
        if line_type == "compacted":
            return b"k" + _digest(msgspec.json.decode(payload, type=_Summary).message)
        view = items.view(payload)
    except (msgspec.DecodeError, RecursionError):
        return None
    match view:
        case items.Message(role="user" | "assistant"):
            return view.role[:1].encode() + _digest("\n".join(part.text or "" for part in view.content))
        case items.FunctionCall():
            return b"c" + view.call_id.encode()
        case items.FunctionCallOutput():
            return b"o" + (view.call_id or "").encode()
        case _:
            return None


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.strip().encode(), digest_size=12).digest()
