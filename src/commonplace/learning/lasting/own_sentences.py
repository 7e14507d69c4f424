"""The person's own sentences in a user record, with their places in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from commonplace.learning.lasting.authors import Stretch
from commonplace.learning.lasting.shapes import BULLET, lines_of
from commonplace.patterns import regex

WORD: Final = regex(r"[^\W_]+(?:['’][a-z]+)?")
_END: Final = regex(r"(?<=[^\s.][.!?…])[\"')\]]{0,9}\s+(?=\S)|(?<=[。！？；])|\n+|(?<=\s)->\s|(?<!\s)\s+(?=<-\s)")
_ABBREVIATION: Final = regex(r"(?i)(?:\b(?:e\.g|i\.e|etc|vs|z\.B|d\.h|bzw|cf|approx|no|nr|eg|ie)|(?:^|\s)\d{1,2})\.$")
_LONGEST: Final = 800
"""A longer sentence is no sentence that somebody typed."""
_JOINED: Final = 400
"""Fragments join their neighbour up to this length."""
_FRAGMENT: Final = 3
"""What has fewer words joins its neighbour in the line."""


class OwnSentence(NamedTuple):
    """A sentence that the person wrote."""

    start: int
    end: int
    text: str
    line: int
    """The number of its line among the person's own."""
    is_bullet: bool


def own_sentences(text: str, stretches: list[Stretch]) -> list[OwnSentence]:
    """Return the sentences of the person's own words."""
    found: list[OwnSentence] = []
    number = 0
    for stretch in stretches:
        for line in lines_of(text, stretch.start, stretch.end) if stretch.author.is_own else ():
            if not line.text.strip():
                continue
            bullet = BULLET.match(line.text)
            start = line.start + (bullet.end() if bullet else 0)
            found += [
                OwnSentence(begin, end, text[begin:end], number, bullet is not None)
                for begin, end, words in _joined(text, start, line.end)
                if words and end - begin <= _LONGEST
            ]
            number += 1
    return found


def _joined(text: str, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return where the sentences of a line begin and end, and how many words they have."""
    found: list[tuple[int, int, int]] = []
    for begin, stop in split(text, start, end):
        words = len(WORD.findall(text, begin, stop))
        is_short = bool(found) and (words < _FRAGMENT or found[-1][2] < _FRAGMENT)
        if is_short and stop - found[-1][0] <= _JOINED:
            found[-1] = (found[-1][0], stop, found[-1][2] + words)
        else:
            found.append((begin, stop, words))
    return found


def split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a part of a text begin and end."""
    begin = start
    for found in _END.finditer(text, start, end):
        if "\n" in found[0] or not _ABBREVIATION.search(text, max(begin, found.start() - 12), found.start()):
            yield from _trimmed(text, begin, found.start())
            begin = found.end()
    yield from _trimmed(text, begin, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    bare = piece.strip()
    if bare:
        begin = start + len(piece) - len(piece.lstrip())
        yield begin, begin + len(bare)
