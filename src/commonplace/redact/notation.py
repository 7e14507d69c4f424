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
OPEN: Final = rb"(?:\\{0,15}[\"'`])"
"""A quote at any depth of escaping."""


def line_start(data: bytes, at: int, reach: int = 200) -> int:
    """Return where the line of a place begins, escaped line breaks included; at most `reach` bytes before it."""
    begin = max(0, at - reach)
    plain = data.rfind(b"\n", begin, at) + 1
    escaped = data.rfind(b"\\n", begin, at)
    return max(begin, plain, escaped + 2 if escaped >= 0 else 0)
