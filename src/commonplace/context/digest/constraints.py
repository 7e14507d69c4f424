"""Constraints: sentences of a person with must, never, only, instead of and the like, kept word for word."""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex

_SPLIT: Final = regex(r"(?<=[.!?。！？])\s+|\n+")
_WORDS: Final = regex(
    r"\b(?:must(?:n't)?|never|don'?t|do not|always|only|make sure|ensure|avoid|instead of|rather than|prefer|without"
    r"|should(?:n't| not)|has to|have to|need to|no longer|not allowed|forbidden|keep)\b|\buse \S+(?: \S+)?,? not\b"
    r"|\b(?:nicht|niemals|nie|immer|nur|muss|müssen|darf|vermeide|statt)\b|\b(?:nunca|siempre|jamais|toujours)\b"
    r"|不要|必须|必需|禁止|总是|不能|只能|务必|しないで|必ず|決して|禁止",
    re.IGNORECASE,
)
_LONGEST: Final = 600
"""Longer sentences, in characters, do not count as constraints."""


def constraints_in(text: str) -> list[str]:
    """Return the sentences of a message that lay something down."""
    found = [sentence.strip() for sentence in _SPLIT.split(text)]
    return [sentence for sentence in found if 3 < len(sentence) <= _LONGEST and _WORDS.search(sentence)]
