"""Finding plain words fast, and what stands before a line when a tool shows it.

Hundreds of words are looked for in every text, and most do not occur: `Text` knows its words. A word that occurs is
looked for by an expression that consists of it alone, which is three times as fast as `bytes.find`. `VIEW` is what
diffs, numbered views, searches and quoted mail put before a line, so that rules about lines hold for shown lines too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, TypeVar

Row = TypeVar("Row")
Gated = tuple[tuple[bytes, Row], ...]
"""Rows, and before each of them some letters."""

ARROW: Final = rb"(?:\xe2\x86\x92|\\{1,15}u2192)"
BREAK: Final = rb"(?:\r?\n|\\{1,15}r\\{1,15}n|\\{1,15}n)"
"""A line break, or one that JSON escaped."""
VIEW: Final = (
    rb"(?:[ \t]{0,8}L?\d{1,6}(?:"
    + ARROW
    + rb"|[ \t]{0,2}[:|\t]|\\{1,15}t|[ ]?\xe2\x94\x82)|[+\->#;*/]{1,2}(?![+\->]))?(?:[ \t]|\\{1,15}t){0,24}"
)
"""What may stand before a line, and its indentation."""
GAP: Final = rb"(?:[ \t\r\n+>|\-]|\\{1,15}[nrt]|\d{1,6}(?:[:|\t]|" + ARROW + rb"))"
"""One piece of what stands between a line and the next in such views."""
_LETTERS: Final = bytes(one if 0x61 <= one <= 0x7A else 0x20 for one in range(256))
OPEN: Final = rb"(?:\\{0,15}[\"'`])"
"""A quote at any depth of escaping."""


@cache
def _literal(word: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(word))


@cache
def _gate(word: bytes) -> tuple[bytes, ...]:
    """Return the runs of letters in a word, in lower case, with a blank where nothing else can stand beside them."""
    runs = re.findall(rb"(?:(?<=[^a-z])|\A)[a-z]+(?:(?=[^a-z])|\Z)", word.lower())
    parts: list[bytes] = []
    at = 0
    for run in runs:
        start = word.lower().index(run, at)
        at = start + len(run)
        parts.append((b" " if start else b"") + run + (b" " if at < len(word) else b""))
    return tuple(parts)


def gated(rows: Iterable[Row], word: Callable[[Row], bytes]) -> Gated[Row]:
    """Put before each row the letters without which its word cannot occur."""
    return tuple((max(_gate(word(row)), key=len, default=b""), row) for row in rows)


class Text:
    """A text that is scanned: its bytes, the same in lower case, and the words that occur in it, each once.

    Most words that rules look for do not occur; the list of words is short, so asking it first saves most of the work.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.low = data.lower()
        self._words = b" ".join((b"", *set(self.low.translate(_LETTERS).split()), b""))
        self._places: dict[bytes, list[int]] = {}

    @property
    def breadth(self) -> int:
        """How long the list of words is: what asking for one costs."""
        return len(self._words)

    def among(self, rows: Gated[Row]) -> list[Row]:
        """Return the rows whose words may occur."""
        words = self._words
        return [row for letters, row in rows if letters in words]

    def has(self, word: bytes) -> bool:
        """Say whether the text may have a word."""
        return all(part in self._words for part in _gate(word))

    def places(self, word: bytes) -> list[int]:
        """Return where a word stands, in whatever case; it is given in lower case."""
        found = self._places.get(word)
        if found is None:
            found = [one.start() for one in _literal(word).finditer(self.low)] if self.has(word) else []
            self._places[word] = found
        return found

    def exact(self, word: bytes) -> Iterable[int]:
        """Return where a word stands as it is given."""
        if not self.has(word):
            return ()
        return (found.start() for found in _literal(word).finditer(self.data))


def line_start(data: bytes, at: int, reach: int = 200) -> int:
    """Return where the line of a place begins, escaped line breaks included; at most so far before it."""
    begin = max(0, at - reach)
    plain = data.rfind(b"\n", begin, at) + 1
    escaped = data.rfind(b"\\n", begin, at)
    return max(begin, plain, escaped + 2 if escaped >= 0 else 0)
