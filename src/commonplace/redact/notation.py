"""Pieces of regular expressions that many rules share: line breaks, quotes, and what a tool shows before a line.

Text of sessions is often JSON in JSON, so a line break may be written `\n` and a quote `\"`, behind any number of
backslashes. Diffs, numbered views, searches and quoted mail put something before each line; rules accept it.
"""

from __future__ import annotations

from typing import Final

ARROW: Final = rb"(?:\xe2\x86\x92|\\{1,15}u2192)"
"""The arrow behind the number of a line."""
BREAK: Final = rb"(?:\r?\n|\\{1,15}r\\{1,15}n|\\{1,15}n)"
"""A line break, or one that JSON escaped."""
VIEW: Final = (
    rb"(?:[ \t]{0,8}L?\d{1,6}(?:"
    + ARROW
    + rb"|[ ]{0,2}[:|\t]|\\{1,15}t|[ ]?\xe2\x94\x82)|[+\->#;*/]{1,2}(?![+\->]))?(?>(?:[ \t]|\\{1,15}t){0,24})"
)
"""What may stand before a line, and its indentation."""
GAP: Final = rb"(?:[ \t\r\n+>|\-]|\\{1,15}[nrt]|\d{1,6}(?:[:|\t]|" + ARROW + rb"))"
"""One piece of what stands between a line and the next in such views."""
SPACE: Final = (
    rb"(?:[ \t\v\f\xa0\xfe\xff]|\r(?!\n)|\xc2[\x85\xa0]|\xe1\x9a\x80"
    rb"|\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80"
    rb"|\\{1,15}(?:[tf]|r(?!\\{1,15}n)|u(?:000[bBcC]|00[aA]0|0085|200[0-9aA]|202[89fF]|3000)))"
)
"""One blank of any kind, in UTF-8, in Latin-1 or as JSON escapes it, and bytes that are no text."""
OPEN: Final = rb"(?:\\{0,15}[\"'`])"
"""A quote at any depth of escaping."""

MARK: Final = (
    rb"(?:\xc2\xab(?:[ ]|\xc2\xa0|\xe2\x80\xaf)?|\xe2\x80[\x98\x9a\x9c\x9e]|\xe3\x80[\x8c\x8e]"
    rb"|\\{1,15}u(?:00[aA][bB](?:[ ]|\\{1,15}u00[aA]0)?|201[8aAcCeE]|300[cCeE]))"
)
"""A mark that opens a quotation in print, as it is and as JSON escapes it."""


def line_start(data: bytes, at: int, reach: int = 200) -> int:
    """Return where the line of a place begins, escaped line breaks included; at most `reach` bytes before it."""
    begin = max(0, at - reach)
    plain = data.rfind(b"\n", begin, at) + 1
    escaped = data.rfind(b"\\n", begin, at)
    return max(begin, plain, escaped + 2 if escaped >= 0 else 0)
