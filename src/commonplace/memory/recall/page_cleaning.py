"""A page of matches without secrets and forgotten words, in bounded time.

A match shows whole lines, and a line may have any length, while looking for secrets in a text that is full of their
names takes seconds for each megabyte. So a long text is looked through in pieces until the page's time is over: then
its match shows what stands around the place that was found, looked through with the margin that the rules need, and
the page ends with it and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

from commonplace import redact
from commonplace.memory.edits.forgotten import Forgotten
from commonplace.memory.recall.tools.arguments import SearchArguments, offset
from commonplace.memory.recall.tools.normalization import Comparison, query
from commonplace.memory.recall.tools.results import FileMatch, MatchPage
from commonplace.memory.recall.tools.search_files import comparison

SECONDS: Final = 2.0
"""How long the matches of one page are looked through."""
LONG: Final = 128 * 1024
"""Texts of more characters are looked through in pieces."""
_SHOWN: Final = 16 * 1024
"""How many characters of a text are shown on either side of the place that was found, where time is over."""
_OVERLAP: Final = 16 * 1024
"""By how much pieces overlap in which forgotten words are looked for."""
_CUT: Final = "…"


def clean_page(
    page: MatchPage, asked: SearchArguments, forgotten: Forgotten, clock: Callable[[], float] = time.monotonic
) -> MatchPage:
    """Return a page whose matches hold no secrets and no forgotten words.

    Args:
        page: The matches that were found.
        asked: What was looked for.
        forgotten: What a person asked to forget.
        clock: Tells the time in seconds.
    """
    until, way = clock() + SECONDS, comparison(asked)
    clean: list[FileMatch] = []
    for match in page.matches:
        if clean and clock() > until:
            following = str(offset(asked.cursor) + len(clean))
            return msgspec.structs.replace(page, matches=clean, next_cursor=following, truncated=True)
        clean.append(_clean(match, way, forgotten, lambda: clock() > until))
    return msgspec.structs.replace(page, matches=clean)


def _clean(match: FileMatch, way: Comparison, forgotten: Forgotten, is_over: Callable[[], bool]) -> FileMatch:
    if len(match.content) <= LONG:
        whole = forgotten.without_forgotten(redact.redact(match.content))
    else:
        whole = _whole(match.content, forgotten, is_over)
    return _excerpt(match, way, forgotten) if whole is None else msgspec.structs.replace(match, content=whole)


def _whole(text: str, forgotten: Forgotten, is_over: Callable[[], bool]) -> str | None:
    """Return a long text without its secrets; None if the time does not suffice or something may be forgotten in it."""
    redactor, pieces = redact.Redactor(), list[bytes]()
    for begin in range(0, len(text), LONG):
        if is_over() or forgotten.may_hold(text[max(begin - _OVERLAP, 0) : begin + LONG]):
            return None
        pieces.append(redactor.feed(text[begin : begin + LONG].encode()))
    return b"".join([*pieces, redactor.close()]).decode()


def _excerpt(match: FileMatch, way: Comparison, forgotten: Forgotten) -> FileMatch:
    """Return a match with what stands around the first place that was found."""
    text, place = match.content, _place(match, way)
    begin, end = max(place - _SHOWN, 0), min(place + _SHOWN, len(text))
    words = forgotten.without_forgotten(redact.redact_part(text, begin, end))
    return msgspec.structs.replace(
        match,
        content_start_line_number=match.content_start_line_number + text.count("\n", 0, begin),
        content=f"{_CUT if begin else ''}{words}{_CUT if end < len(text) else ''}",
    )


def _place(match: FileMatch, way: Comparison) -> int:
    """Return about where the first text that matched stands in a match."""
    wanted = query(match.matched_queries[0], way)
    if way.is_plain:
        return max(match.content.find(wanted), 0)
    prepared = 0
    pieces = [query(match.content[at : at + _SHOWN // 2], way) for at in range(0, len(match.content), _SHOWN // 2)]
    place = "".join(pieces).find(wanted)
    for number, piece in enumerate(pieces):
        prepared += len(piece)
        if prepared > place:
            return number * (_SHOWN // 2)
    return 0
