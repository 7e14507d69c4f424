"""Finding plain words fast, and what stands before a line when a tool shows it.

A word is looked for by an expression that consists of it alone: that is three times as fast as `bytes.find`, and dozens
of words are looked for in every text. `VIEW` is what diffs, numbered views, searches and quoted mail put before a line,
so that rules about lines hold for shown lines as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

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
OPEN: Final = rb"(?:\\{0,15}[\"'`])"
"""A quote at any depth of escaping."""


@cache
def _literal(word: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(word))


def places(data: bytes, word: bytes) -> Iterator[int]:
    """Yield where a word stands."""
    for found in _literal(word).finditer(data):
        yield found.start()


def line_start(data: bytes, at: int, reach: int = 200) -> int:
    """Return where the line of a place begins, escaped line breaks included; at most so far before it."""
    begin = max(0, at - reach)
    plain = data.rfind(b"\n", begin, at) + 1
    escaped = data.rfind(b"\\n", begin, at)
    return max(begin, plain, escaped + 2 if escaped >= 0 else 0)
