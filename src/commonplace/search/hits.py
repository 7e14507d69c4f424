"""Hits: the results of a search with their text, as surfaces show them.

A hit in a session is an exchange: a message and its reply. Texts are read from ledgers and files when they are shown;
secrets and forgotten words are removed at that moment.
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
"""The advantage of an entry over a message that answers equally well: somebody thought it worth keeping."""
_REPLIES: Final = 400
"""How many messages after one are searched for the end of its reply."""


class Hit(msgspec.Struct, kw_only=True):
    """A search result (the JSON of `sessions search`, `memory search` and the tool `find`)."""

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
    candidate: bool | UnsetType = UNSET
    """True of an entry that waits for another session or for a person; other hits do not say it."""
    path: str | UnsetType | None = UNSET
    """Of a line: its file, below the memory folder."""
    line: int | UnsetType | None = UNSET


class RankedPassage(msgspec.Struct, frozen=True):
    """A passage that answers a query, before its text is read."""

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
    index: SegmentIndex, ranked: list[RankedPassage], rows: Mapping[str, Row], clean: Clean
) -> list[ScoredHit]:
    """Read the messages of ranked passages and their replies."""
    wanted: dict[str, set[int]] = {}
    replies = {each.number: reply_of(index, each.number) for each in ranked}
    for each in ranked:
        row = rows.get(index.document(each.number).id)
        if row is not None:
            numbers = [each.number, *([reply] if (reply := replies[each.number]) is not None else [])]
            wanted.setdefault(row["path"], set()).update(int(index.offset[number]) for number in numbers)
    said = {path: passages.read(Path(path), sorted(offsets)) for path, offsets in wanted.items()}
    hits: list[ScoredHit] = []
    for each in ranked:
        row = rows.get(index.document(each.number).id)
        words = said[row["path"]].get(int(index.offset[each.number])) if row is not None else None
        if row is None or words is None:
            continue  # the session is gone since, or its file changed since it was taken in
        reply = replies[each.number]
        answer = said[row["path"]].get(int(index.offset[reply])) if reply is not None else None
        texts = clean(words.text), clean(answer.text) if answer is not None else UNSET
        hits.append((each, _session(index, each, row, words, texts)))
    return hits


def _session(
    index: SegmentIndex, each: RankedPassage, row: Row, words: SearchableMessage, texts: tuple[str, str | UnsetType]
) -> Hit:
    """Return the hit of a message, with its cleaned text and that of its reply."""
    return Hit(
        thread_id=row["thread_id"],
        item=int(index.offset[each.number]),
        source_id=words.source_id,
        turn=int(index.turn[each.number]),
        role=words.role,
        time=words.time,
        score=round(each.score, 4),
        text=texts[0],
        reply=texts[1],
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
    """Say whether a message is newer than a time; one without a time counts as new."""
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
        text=clean(match.shown()),
        project=row["project"],
    )


def merge_hits(*shelves: list[ScoredHit]) -> list[Hit]:
    """Merge the hits of several collections into one order: by how much of the query each covers, then by its
    own rank.
    """
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
