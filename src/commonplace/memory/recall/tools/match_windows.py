"""Which lines of a file match: found by jumping from hit to hit, so that the work grows with the text and not with what
is asked for.

Lines are counted from 0. A file is given as it is compared; each text stands in it once for all the times it was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from commonplace.memory.recall.tools.arguments import AnyLine, MatchMode, WithinLines

Window = tuple[int, int]
"""The first and last line of a match."""


def hits(data: bytes, text: bytes) -> list[int]:
    """Return the lines on which a text stands."""
    found: list[int] = []
    line = counted = 0
    place = data.find(text)
    while place >= 0:
        line += data.count(b"\n", counted, place)
        found.append(line)
        end = data.find(b"\n", place)
        if end < 0:
            break
        line, counted = line + 1, end + 1
        place = data.find(text, counted)
    return found


def windows(found: Sequence[Sequence[int]], mode: MatchMode) -> list[Window]:
    """Return the matches in a file, by the lines on which each text stands."""
    if isinstance(mode, AnyLine):
        return [(line, line) for line in sorted(set[int]().union(*found))]
    if not all(found):
        return []
    if isinstance(mode, WithinLines):
        return _shortest(found, mode.line_count)
    return [(line, line) for line in sorted(set(found[0]).intersection(*found[1:]))]


def _shortest(found: Sequence[Sequence[int]], most: int) -> list[Window]:
    """Return the stretches of at most so many lines that hold every text and no shorter such stretch.

    From each line with a hit, a stretch goes to where the last text stands that had not been met. Going back from the
    end, the next place of each text is known. The later a stretch begins, the later it ends; so one that holds another
    ends with it.
    """
    texts_on: dict[int, list[int]] = {}
    for text, lines in enumerate(found):
        for line in lines:
            texts_on.setdefault(line, []).append(text)
    following = [-1] * len(found)
    missing = len(found)
    every: list[Window] = []
    for line in sorted(texts_on, reverse=True):
        for text in texts_on[line]:
            missing -= following[text] < 0
            following[text] = line
        if not missing and (last := max(following)) - line < most:
            every.append((line, last))
    every.reverse()
    return [one for one, after in pairwise([*every, (-1, -1)]) if one[1] != after[1]]
