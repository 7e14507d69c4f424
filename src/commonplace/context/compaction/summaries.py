"""Requesting a summary from a summariser that may fail, stall, return nothing or return too much.

A history that does not fit is summarised in pieces, each with the handover of what came before. What comes back is
data: it is stripped of citations and of anything that looks like a summary's own opening, and never believed about its
length.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from string import Template
from typing import Final, Protocol

import msgspec

from commonplace.context import truncate
from commonplace.context.compaction import kept_messages, sizes
from commonplace.context.history import History
from commonplace.errors import CommonplaceError
from commonplace.protocol import fragments

_WORDS_PER_TOKEN: Final = 0.6
"""How many words the request for a summary asks for, per token of room."""
_HALF: Final = 0.5
"""The share of a summariser's window that one piece of the history may take."""
_PIECES: Final = 64
"""The most pieces that are summarised; of more, the first and the last half are taken."""
_CITATION: Final = re.compile(r"<oai-mem-citation>.*?(?:</oai-mem-citation>|\Z)", re.DOTALL)
_TOO_LONG: Final = 1.25
"""How far over its share a summary may be before it counts as too long."""


class SummaryInputTooLong(Exception):
    """The summariser's window does not hold its input."""


class SummaryRequest(msgspec.Struct, frozen=True):
    """The input of a summariser: the items of the session, then the request."""

    items: list[bytes]
    request: str


class Summariser(Protocol):
    """Writes summaries."""

    window: int
    """How many tokens it can be given."""

    async def summarise(self, ask: SummaryRequest) -> str:
        """Return a summary (raises SummaryInputTooLong, or an error of the provider)."""
        ...


@cache
def texts() -> dict[str, str]:
    """Return our own texts."""
    data = resources.files("commonplace.context.compaction").joinpath("texts.toml").read_text("utf-8")
    return tomllib.loads(data)


async def write(summariser: Summariser, history: Sequence[bytes], room: int) -> str | None:
    """Return a summary of at most so many tokens; None if there is none to be had, after one more try."""
    words = max(40, int(room * _WORDS_PER_TOKEN))
    request = Template(texts()["request"]).safe_substitute(words=words).strip()
    tighter = Template(texts()["tighter"]).safe_substitute(words=words // 2).strip()
    for text in (request, f"{request}\n\n{tighter}"):
        try:
            found = clean(await _in_pieces(summariser, list(history), text))
        except (CommonplaceError, OSError, TimeoutError, SummaryInputTooLong, ValueError):
            continue
        if found and truncate.approximate_tokens(found) <= room * _TOO_LONG:
            return truncate.truncate(found, max(0, room - 16)) if truncate.approximate_tokens(found) > room else found
    return None


def clean(text: str) -> str:
    """Return what a model wrote without what only we may write."""
    told = _CITATION.sub("", text).strip()
    while told.startswith(fragments.OWN_SUMMARY_PREFIX):
        told = told.removeprefix(fragments.OWN_SUMMARY_PREFIX).strip()
    return told


async def _in_pieces(summariser: Summariser, history: list[bytes], request: str) -> str:
    """Summarise a history, in pieces if it does not fit at once."""
    earlier = ""
    room = max(1, int(summariser.window * _HALF))
    for piece in _pieces(history, room):
        asked = request
        if earlier:
            told = Template(texts()["folded"]).safe_substitute(earlier=earlier).strip()
            asked = f"{told}\n\n{request}"
        earlier = await _ask(summariser, piece, asked)
    return earlier


async def _ask(summariser: Summariser, piece: list[bytes], request: str) -> str:
    """Ask once; what is too long after all loses its oldest part until it fits."""
    left = piece
    while True:
        try:
            return await summariser.summarise(SummaryRequest(left, request))
        except SummaryInputTooLong:
            if len(left) <= 1:
                raise
            left = _without_oldest(left)


def _without_oldest(piece: list[bytes]) -> list[bytes]:
    """Leave out the oldest quarter, each call with its output."""
    history = History()
    history.replace(piece)
    for _ in range(max(1, len(piece) // 4)):
        history.remove_first_item()
    return [entry.raw for entry in history.entries] or piece[-1:]


def _pieces(history: list[bytes], room: int) -> list[list[bytes]]:
    """Cut a history into stretches that fit; an item that alone does not fit is cut itself."""
    found: list[list[bytes]] = [[]]
    size = 0
    for raw in history:
        cost = sizes.tokens_of(raw)
        if cost > room:
            raw = kept_messages.message(truncate.truncate(raw.decode("utf-8", "replace"), max(1, room // 2)))  # noqa: PLW2901
            cost = sizes.tokens_of(raw)
        if size + cost > room and found[-1]:
            found.append([])
            size = 0
        found[-1].append(raw)
        size += cost
    return found if len(found) <= _PIECES else [*found[: _PIECES // 2], *found[-_PIECES // 2 :]]
