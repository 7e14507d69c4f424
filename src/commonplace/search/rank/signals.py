"""Signals of a text besides its words: whether it is a question, who speaks, whether it asks for a time."""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex
from commonplace.search.rank.analysis import key

_ASKS_TIME: Final = regex(
    r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow (?:long|many (?:days|weeks|months|years))\b", re.IGNORECASE
)
_WORD: Final = regex(r"[^\W_]+")
_LONGEST_NAME: Final = 3
"""The longest name of a speaker, in words."""


def is_question(text: str) -> bool:
    """Say whether a text ends by asking."""
    return text.rstrip().endswith(("?", "？", "؟"))


def asks_time(question: str) -> bool:
    """Say whether a question wants to know when."""
    return bool(_ASKS_TIME.search(question))


def name_key(name: str) -> int:
    """Return what a speaker is known by; 0 for nobody."""
    words = _WORD.findall(name.lower())
    return key(" ".join(words)) if words else 0


def named_in(question: str) -> set[int]:
    """Return the keys of all names that a question may hold: any few words in a row."""
    words = _WORD.findall(question.lower())
    spans = ((first, first + size) for first in range(len(words)) for size in range(1, _LONGEST_NAME + 1))
    return {key(" ".join(words[first:last])) for first, last in spans if last <= len(words)}
