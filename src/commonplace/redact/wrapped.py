"""Credentials that reach over lines, because a terminal, an editor or a person broke them.

A word that begins like a credential and ends with its line is put together with the lines that follow, and looked up as
one. A long secret that ends with its line goes on in the next line if that has nothing but more of the same kind. Each
line's part is a finding of its own, so that the lines stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from commonplace.patterns import regex
from commonplace.redact import glued, judge, tokens
from commonplace.redact.notation import BREAK, OPEN, VIEW
from commonplace.redact.spans import SecretSpan

if TYPE_CHECKING:
    from commonplace.redact.lexicon import Text

_FIRST: Final = regex(rb"[A-Za-z0-9_.\-+/]{6,4096}+")
_JOIN: Final = regex(OPEN + rb"?[ \t]{0,4}(?:[+.,&]|[=\\](?=\r?\n))?[ \t]{0,4}" + BREAK + VIEW + OPEN + b"?")
"""What stands between the parts of a credential: the end of a line, with what code and views put around it."""
_NEXT: Final = regex(rb"[A-Za-z0-9_.\-+/]{4,4096}+={0,2}(?![A-Za-z0-9_=:(@])")
_LAST: Final = regex(rb"[ \t]{0,8}(?:[\"'`\\,;)}\]\r\n&]|\Z)")
_INSIDE: Final = regex(rb"(?:\A|[^\\])[A-Za-z0-9_]\Z|\w[.\-]\Z")
"""Something of a word before a place, which is not the letter of an escape."""
_LETTERS: Final = regex(rb"(?=[A-Za-z0-9+/]*[a-z])(?=[A-Za-z0-9+/]*[A-Z])(?=[A-Za-z0-9+/]*[0-9])[A-Za-z0-9+/]+")
_LINES: Final = 12
_WIDE: Final = 40
"""Shorter secrets that are whole do not go on in the next line, but for those that make up one of this length."""
_HALF: Final = 12


@cache
def _prefixes() -> re.Pattern[bytes]:
    return regex(b"|".join(map(re.escape, sorted(glued.exact_prefixes(), key=len, reverse=True))))


def _parts(data: bytes, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines that may go on with a credential begin and end; it has ended at a place so far."""
    for _ in range(_LINES):
        gap = _JOIN.match(data, end)
        part = _NEXT.match(data, gap.end()) if gap else None
        if part is None or _LAST.match(data, part.end()) is None:
            return
        yield part.span()
        end = part.end()


def find(text: Text) -> Iterator[SecretSpan]:
    """Yield the parts of credentials that do not show until they are put together."""
    data = text.data
    for begin, behind in text.marked(tokens.MAY_GO_ON):
        for prefix in _prefixes().finditer(data, begin, behind):
            first = _FIRST.match(data, prefix.start())
            if first is not None and not _INSIDE.search(data, max(0, first.start() - 2), first.start()):
                yield from _together(data, first)


def _together(data: bytes, first: re.Match[bytes]) -> Iterator[SecretSpan]:
    places, whole = [first.span()], first[0]
    for start, end in _parts(data, first.end()):
        is_whole = whole[-1:] not in b"-_." and tokens.at_beginning(whole) is not None
        if not _goes_on(data[start:end], is_whole=is_whole, so_far=len(whole)):
            break
        places.append((start, end))
        whole += data[start:end]
    span = tokens.at_beginning(whole) if len(places) > 1 else None
    if span is None or span.end <= first.end() - first.start():
        return
    left = span.end
    for start, end in places:
        if left > 0:
            yield SecretSpan(start, min(end, start + left), span.kind)
        left -= end - start


def _goes_on(part: bytes, *, is_whole: bool, so_far: int) -> bool:
    """Say whether a line goes on with a credential, which may be whole without it."""
    if judge.is_worded(part.strip(b"-_.=")) and (is_whole or len({*part}) >= 6):
        return False
    return not is_whole or (so_far >= _WIDE and judge.is_random(part, 8))


def rest(data: bytes, spans: Iterable[SecretSpan]) -> Iterator[SecretSpan]:
    """Yield what follows long secrets in the next lines."""
    for span in spans:
        so_far = span.end - span.start
        if so_far < _HALF or b" " in data[span.start : span.end]:
            continue
        if so_far < _WIDE:
            yield from _second_half(data, span)
            continue
        for start, end in _parts(data, span.end):
            if not _goes_on(data[start:end], is_whole=True, so_far=so_far):
                break
            yield SecretSpan(start, end, span.kind)


def _second_half(data: bytes, span: SecretSpan) -> Iterator[SecretSpan]:
    """Yield what follows the first lines of a key of AWS, which is known by its length alone."""
    whole = data[span.start : span.end]
    found: list[SecretSpan] = []
    for start, end in _parts(data, span.end):
        whole += data[start:end]
        found.append(SecretSpan(start, end, span.kind))
        if len(whole) >= _WIDE:
            break
    if (
        found
        and len(whole) == _WIDE
        and _LETTERS.fullmatch(whole)
        and judge.is_random(data[found[0].start : found[0].end])
    ):
        yield from found
