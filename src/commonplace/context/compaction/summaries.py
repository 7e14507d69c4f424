"""Requesting a summary from a summariser that may fail, stall, return nothing or return too much.

A history that fits is summarised by one request. One that does not is summarised in pieces, each with the handover of
what came before. A piece ends only where no call waits for its output, so that no piece shows a call without the output
that it had. What comes back is data: it is stripped of citations and of anything that looks like a summary's own
opening, and never believed about its length.
"""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from string import Template
from typing import Final, Protocol

import msgspec

from commonplace import package_files
from commonplace.context import history_items, pairing, truncate
from commonplace.context.history_items import HistoryEntry
from commonplace.context.truncate import TruncationPolicy
from commonplace.errors import CommonplaceError
from commonplace.patterns import regex
from commonplace.protocol import fragments

_WORDS_PER_TOKEN: Final = 0.6
"""How many words the request for a summary asks for, per token of room."""
_ANSWER_SHARE: Final = 50
"""At most one part in so many of a summariser's window is left free for its answer: a server that has no room for
more says so, and the history is split."""
_PIECES: Final = 64
"""The most pieces that are summarised; of more, the first and the last half are taken."""
_CITATION: Final = regex(r"<oai-mem-citation>.*?(?:</oai-mem-citation>|\Z)", re.DOTALL)
_TOO_LONG: Final = 1.25
"""How far over its share a summary may be before it counts as too long."""
_CUT_SHARE: Final = 0.75
"""A unit that is too long for a piece is cut to this share of it, so that what stands beside it fits, too."""
_LEAST_TOKENS: Final = 64
"""An item is not cut below this."""

Unit = list[HistoryEntry]
"""Entries that stay together: calls, their outputs, and what stands between them."""


class SummaryInputTooLong(Exception):
    """The summariser's window does not hold its input."""


class SummaryRequest(msgspec.Struct, frozen=True):
    """The input of a summariser: the items of the session, then the request."""

    items: list[bytes]
    request: str


class Summariser(Protocol):
    """Writes summaries."""

    def room(self, beside: int) -> int:
        """Return how many tokens of items one request holds beside so many tokens of other text."""
        ...

    async def summarise(self, ask: SummaryRequest) -> str:
        """Return a summary (raises SummaryInputTooLong, or an error of the provider)."""
        ...


@cache
def texts() -> dict[str, str]:
    """Return our own texts."""
    data = package_files.text("context/compaction/texts.toml")
    return tomllib.loads(data)


async def write(summariser: Summariser, history: Sequence[HistoryEntry], room: int) -> str | None:
    """Return a summary of at most so many tokens; None if there is none to be had."""
    try:
        return await _SummaryWriter(summariser, room).write(history)
    except (CommonplaceError, OSError, TimeoutError, SummaryInputTooLong, ValueError):
        return None


def clean(text: str) -> str:
    """Return what a model wrote without what only we may write."""
    told = _CITATION.sub("", text).strip()
    while told.startswith(fragments.OWN_SUMMARY_PREFIX):
        told = told.removeprefix(fragments.OWN_SUMMARY_PREFIX).strip()
    return told


class _SummaryWriter:
    """Asks one summariser for the summary of one history."""

    def __init__(self, summariser: Summariser, room: int) -> None:
        self._summariser = summariser
        self._room = room
        words = max(40, int(room * _WORDS_PER_TOKEN))
        self._request = Template(texts()["request"]).safe_substitute(words=words).strip()
        self._tighter = Template(texts()["tighter"]).safe_substitute(words=words // 2).strip()

    async def write(self, history: Sequence[HistoryEntry]) -> str:
        """Return the summary; a piece that does not fit after all is split and asked for again.

        Raises:
            SummaryInputTooLong: the summariser's window holds not even one item.
            ValueError: the summariser twice gave nothing that can be used.
        """
        room = self._summariser.room
        asked = truncate.approximate_tokens(self._request) + min(self._room, room(0) // _ANSWER_SHARE)
        least = max(1, room(0) // 2)
        whole, part = max(least, room(asked)), max(least, room(asked + self._room))
        waiting = deque(_pieces(history, whole, part))
        earlier = ""
        while waiting:
            piece = waiting.popleft()
            try:
                earlier = await self._ask(piece, earlier)
            except SummaryInputTooLong:
                waiting.extendleft(reversed(_halves(piece)))
        return earlier

    async def _ask(self, piece: list[Unit], earlier: str) -> str:
        """Return the handover of a piece and of what came before it, asked for once more if it cannot be used."""
        told = Template(texts()["folded"]).safe_substitute(earlier=earlier).strip() if earlier else ""
        given = [entry.raw for unit in piece for entry in unit]
        for request in (self._request, f"{self._request}\n\n{self._tighter}"):
            try:
                said = await self._summariser.summarise(SummaryRequest(given, f"{told}\n\n{request}".strip()))
            except (CommonplaceError, OSError, TimeoutError) as error:
                if request != self._request:
                    raise
                last: Exception = error
                continue
            found, size = clean(said), truncate.approximate_tokens(clean(said))
            if found and size <= self._room * _TOO_LONG:
                return truncate.truncate(found, max(0, self._room - 16)) if size > self._room else found
            last = ValueError("the summary is empty or too long")
        raise last


def _units(history: Sequence[HistoryEntry]) -> Iterator[Unit]:
    """Cut a history wherever no call waits for an output that comes later."""
    ends = list(range(len(history)))
    calls: dict[pairing.Key, int] = {}
    for place, entry in enumerate(history):
        answered, called = pairing.output_key(entry.view), pairing.call_key(entry.view)
        if answered in calls:
            ends[calls[answered]] = place
        if called is not None:
            calls[called] = place
    unit: Unit = []
    last = 0
    for place, entry in enumerate(history):
        unit.append(entry)
        last = max(last, ends[place])
        if place >= last:
            yield unit
            unit = []


def _pieces(history: Sequence[HistoryEntry], whole: int, room: int) -> list[list[Unit]]:
    """Return the history as one piece if it fits into `whole`, else as pieces of at most `room` tokens each."""
    units = list(_units(history))
    if sum(map(_size, units)) <= whole:
        return [units]
    found: list[list[Unit]] = [[]]
    size = 0
    for unit in units:
        fitted = unit if _size(unit) <= room else _shortened(unit, int(room * _CUT_SHARE))
        cost = _size(fitted)
        if size + cost > room and found[-1]:
            found.append([])
            size = 0
        found[-1].append(fitted)
        size += cost
    return found if len(found) <= _PIECES else [*found[: _PIECES // 2], *found[-_PIECES // 2 :]]


def _halves(piece: list[Unit]) -> list[list[Unit]]:
    """Return a piece in two parts; a single unit comes back with its items cut (raises SummaryInputTooLong)."""
    if len(piece) > 1:
        half = len(piece) // 2
        return [piece[:half], piece[half:]]
    shorter = _shortened(piece[0], _size(piece[0]) // 2)
    if _size(shorter) >= _size(piece[0]):
        raise SummaryInputTooLong
    return [[shorter]]


def _shortened(unit: Unit, room: int) -> Unit:
    """Return a unit with its longest items cut, so that all of them together take about so many tokens."""
    sizes_of = sorted(entry.tokens for entry in unit)
    left, most = room, room
    for place, size in enumerate(sizes_of):
        most = max(_LEAST_TOKENS, left // (len(sizes_of) - place))
        if size > most:
            break
        left -= size
    return [short for entry in unit for short in ([entry] if entry.tokens <= most else _cut(entry, most))]


def _cut(entry: HistoryEntry, tokens: int) -> Unit:
    """Return an item in about so many tokens; nothing if it is of a kind that has no text to cut."""
    limit = TruncationPolicy("tokens", max(1, tokens - _LEAST_TOKENS // 2))
    short = history_items.truncated(entry, limit)
    return [] if short is None else [short]


def _size(unit: Unit) -> int:
    return sum(entry.tokens for entry in unit)
