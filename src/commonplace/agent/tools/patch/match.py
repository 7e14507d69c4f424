"""Find the lines of a hunk in a file: exactly first, then more and more loosely, as models copy text. Pure.

The lines are compared as they are, then without blanks at their ends, then with all blanks equal, then with characters
equal that look alike. A closer match anywhere below the last hunk is better than a looser one above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

_DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_SINGLE: Final = "\u2018\u2019\u201a\u201b\u2032\u00b4\uff07"
_DOUBLE: Final = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02"
_GONE: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_ALIKE: Final = {
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, _SINGLE), "'"),
    **dict.fromkeys(map(ord, _DOUBLE), '"'),
    **dict.fromkeys(map(ord, _GONE), ""),
    ord("\u2026"): "...",
}
_MOST_COMPARED: Final = 20_000
"""Lines that are compared to find the most similar ones, for an error."""
_COMPARED: Final = 200
"""Characters of a line that are compared for that."""


def _as_is(line: str) -> str:
    return line


def _blanks(line: str) -> str:
    return " ".join(line.split())  # `split` knows the blanks of Unicode as well


def _alike(line: str) -> str:
    return _blanks(line.translate(_ALIKE))


LEVELS: Final[tuple[Callable[[str], str], ...]] = (_as_is, str.rstrip, _blanks, _alike)


class LineIndex:
    """The lines of a file, ready to be searched."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._prepared: dict[int, list[str]] = {}

    def find(self, wanted: Sequence[str], start: int, *, at_end: bool = False) -> int | None:
        """Return the first index from `start` on where lines match, by the closest comparison that finds any."""
        if not wanted:
            return None
        last = len(self.lines) - len(wanted)
        first = max(start, last) if at_end else start
        for level, prepare in enumerate(LEVELS):
            place = _first(self._at(level), [prepare(line) for line in wanted], first) if first <= last else None
            if place is not None:
                return place
        return None

    def _at(self, level: int) -> list[str]:
        if level not in self._prepared:
            self._prepared[level] = [LEVELS[level](line) for line in self.lines]
        return self._prepared[level]

    def nearest(self, wanted: Sequence[str]) -> tuple[int, int] | None:
        """Return the first and last index of the lines that are most similar to those wanted."""
        there = self._at(len(LEVELS) - 1)[:_MOST_COMPARED]
        sought = [_alike(line) for line in wanted]
        if not there or not any(sought):
            return None
        places: dict[str, list[int]] = {}
        for place, line in enumerate(there):
            if line:
                places.setdefault(line, []).append(place)
        votes: dict[int, int] = {}
        for at, line in enumerate(sought):
            for place in places.get(line, ())[:200]:
                votes[place - at] = votes.get(place - at, 0) + 1
        if votes:
            begin = max(votes, key=lambda place: (votes[place], -place))
        else:
            longest = max(sought, key=len)
            short = {line[:_COMPARED]: found[0] for line, found in list(places.items())[:2_000]}
            import difflib  # slow to import, and most patches match

            close = difflib.get_close_matches(longest[:_COMPARED], short, 1, 0.5)
            if not close:
                return None
            begin = short[close[0]] - sought.index(longest)
        first = min(max(begin, 0), len(there) - 1)
        return first, min(max(begin + len(sought), first + 1), len(there)) - 1


def _first(there: Sequence[str], sought: Sequence[str], start: int) -> int | None:
    """Return the first index of a run of lines, in linear time (Knuth–Morris–Pratt)."""
    shorter = [0] * len(sought)
    """For each line sought: the length of the longest proper prefix of the run that ends there."""
    length = 0
    for at in range(1, len(sought)):
        while length and sought[at] != sought[length]:
            length = shorter[length - 1]
        length += sought[at] == sought[length]
        shorter[at] = length
    length = 0
    for at in range(start, len(there)):
        while length and there[at] != sought[length]:
            length = shorter[length - 1]
        length += there[at] == sought[length]
        if length == len(sought):
            return at - length + 1
    return None
