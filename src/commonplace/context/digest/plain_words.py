"""Plain words around names: a line with enough of them says something about the name."""

from __future__ import annotations

from typing import Final

from commonplace.patterns import regex

_PLAIN: Final = regex(r"(?<![\w./@#-])[A-Za-z][a-z]{2,}(?![\w/@#-]|\.\w)")
"""A word of small letters, which may begin with a capital; `CamelCase` is a name."""
_STOP: Final = frozenset({
    "the", "and", "for", "are", "was", "were", "has", "have", "had", "not", "but", "you", "your", "with", "this",
    "that", "from", "its", "can", "will", "would", "should", "could", "into", "onto", "than", "then", "there",
    "here", "they", "them", "their", "been", "being", "also", "just", "all", "any", "our", "out", "off", "over",
    "one", "two",
})  # fmt: skip
ENOUGH: Final = 3
"""A line with this many different plain words tells something."""


def words(text: str) -> list[tuple[int, str]]:
    """Return the plain words of a text and where they stand."""
    found = ((match.start(), match[0].lower()) for match in _PLAIN.finditer(text))
    return [(place, word) for place, word in found if word not in _STOP]


def says_something(line: str) -> bool:
    """Say whether a line has enough plain words to tell something."""
    return len({word for _, word in words(line)}) >= ENOUGH
