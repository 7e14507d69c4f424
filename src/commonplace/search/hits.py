"""Hits: what a search found, with its words, as surfaces show them.

A hit of a session is an exchange: what was said, and what was answered. Words are read from the ledgers and files when
they are shown: secrets are taken out again then, and so is what a person had forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from commonplace.protocol.ids import parse_time
from commonplace.search import passages
from commonplace.search.exact_text import TextMatch
from commonplace.search.passages import SearchableMessage
from commonplace.search.rank.score import RankedPassages
from commonplace.search.rank.segments import SegmentIndex
from commonplace.state.database import Row

Clean = Callable[[str], str]
_ENTRY_FIRST: Final = 0.10
"""What an entry has over a message that answers as well: somebody thought it worth keeping."""
_REPLIES: Final = 400
"""How many messages after one are looked at for the end of the answer."""


class Hit(msgspec.Struct, kw_only=True):
    """Something that was found (the JSON of `sessions search`, `memory search` and the tool `find`)."""

    thread_id: str | None
    item: int | None
    """Where its line begins in the session's file: the `offset` that `sessions show --items` tells."""
    source_id: str | None
    turn: int | None
    role: str | None
    time: str | None
    score: float
    text: str
    reply: str | UnsetType = UNSET
    project: str | None
    kind: Literal["session", "summary", "entry", "file"] | UnsetType = UNSET
    entry_id: str | UnsetType | None = UNSET
    path: str | UnsetType | None = UNSET
    """Of a line: its file, below the memory folder."""
    line: int | UnsetType | None = UNSET


class RankedPassage(msgspec.Struct, frozen=True):
    """A passage that answers, before its words are read."""

    number: int
    score: float
    covered: float


ScoredHit = tuple[RankedPassage, Hit]
"""A hit, and how it was found."""


def choose_passages(index: SegmentIndex, ranked: RankedPassages, limit: int) -> list[RankedPassage]:
    """Return the best passages; of copies of one message, as forks have them, only the first."""
    found: list[RankedPassage] = []
    seen: dict[int, int] = {}
    for number, points, covered in zip(ranked.passages, ranked.scores, ranked.covered, strict=True):
        text, document = int(index.text[number]), int(index.document_of[number])
        if text and seen.setdefault(text, document) != document:
            continue
        found.append(RankedPassage(number, points, covered))
        if len(found) == limit:
            break
    return found


def of_sessions(
    index: SegmentIndex, found: list[RankedPassage], rows: Mapping[str, Row], clean: Clean
) -> list[ScoredHit]:
    """Read what was said, and what was answered."""
    wanted: dict[str, set[int]] = {}
    replies = {each.number: reply_of(index, each.number) for each in found}
    for each in found:
        row = rows.get(index.document(each.number).id)
        if row is not None:
            numbers = [each.number, *([reply] if (reply := replies[each.number]) is not None else [])]
            wanted.setdefault(row["path"], set()).update(int(index.offset[number]) for number in numbers)
    said = {path: passages.read(Path(path), sorted(offsets)) for path, offsets in wanted.items()}
    hits = ((each, _session(index, each, replies[each.number], rows, said, clean)) for each in found)
    return [(each, hit) for each, hit in hits if hit is not None]


def _session(
    index: SegmentIndex,
    each: RankedPassage,
    reply: int | None,
    rows: Mapping[str, Row],
    said: Mapping[str, Mapping[int, SearchableMessage]],
    clean: Clean,
) -> Hit | None:
    row = rows.get(index.document(each.number).id)
    if row is None:
        return None  # it is gone since
    there = said[row["path"]]
    words = there.get(int(index.offset[each.number]))
    if words is None:
        return None  # the file changed since it was taken in
    answer = there.get(int(index.offset[reply])) if reply is not None else None
    return Hit(
        thread_id=row["thread_id"],
        item=int(index.offset[each.number]),
        source_id=words.source_id,
        turn=int(index.turn[each.number]),
        role=words.role,
        time=words.time,
        score=round(each.score, 4),
        text=clean(words.text),
        reply=clean(answer.text) if answer is not None else UNSET,
        project=row["project"],
    )


def reply_of(index: SegmentIndex, number: int) -> int | None:
    """Return the message that answers one: the last that an assistant says to it, or what the next person says."""
    if not index.is_user[number]:
        return None
    end = int(index.ends[index.document_of[number]])
    following = number + 1
    if following >= end:
        return None
    if index.is_user[following]:
        return following if index.speaker[following] != index.speaker[number] else None
    last = following
    while last + 1 < min(end, number + _REPLIES) and not index.is_user[last + 1]:
        last += 1
    return last


def is_new(time: str | None, since_s: int | None) -> bool:
    """Say whether something was said after a time; what tells no time is."""
    moment = parse_time(time) if time and since_s is not None else None
    return moment is None or since_s is None or moment.timestamp() >= since_s


def of_match(row: Row, match: TextMatch, clean: Clean) -> Hit:
    """Return the hit of an exact match."""
    return Hit(
        thread_id=row["thread_id"],
        item=match.offset,
        source_id=match.source_id,
        turn=match.turn,
        role=match.role,
        time=match.time,
        score=1.0,
        text=clean(match.text),
        project=row["project"],
    )


def merge_hits(*shelves: list[ScoredHit]) -> list[Hit]:
    """Put the hits of several shelves in one order: by how much of the question each covers, and its own place."""
    valued: list[tuple[float, Hit]] = []
    for found in shelves:
        highest = max((each.score for each, _ in found), default=0.0)
        for each, hit in found:
            share = each.score / highest if highest > 0 else 0.0
            valued.append((0.7 * each.covered + 0.3 * share + _ENTRY_FIRST * (hit.kind == "entry"), hit))
    valued.sort(key=lambda pair: -pair[0])
    for value, hit in valued:
        hit.score = round(value, 4)
    return [hit for _, hit in valued]
