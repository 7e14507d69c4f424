"""Cutting a line of text into sentences."""

from __future__ import annotations

import re
from typing import Final

from commonplace.patterns import regex

MAX_SENTENCE: Final = 400
"""A longer sentence, in characters, is none that a person typed."""
_END: Final = regex(r"(?<=[^\s.][.!?…])[\"')\]]{0,8}\s+(?=[^\s])|(?<=[。！？；])|\n+")
_ABBREVIATION: Final = regex(
    r"(?:\b(?:e\.g|i\.e|etc|vs|z\.B|d\.h|bzw|p\.ej|ej|cf|approx|no|Nr)|(?:^|[:：;]\s+)\d{1,2})\.$", re.IGNORECASE
)


def split(line: str) -> list[str]:
    """Cut a line into sentences."""
    parts: list[str] = []
    for piece in _END.split(line):
        if not piece or not piece.strip():
            continue
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] = f"{parts[-1]} {piece.strip()}"
        else:
            parts.append(piece.strip())
    return [part for part in parts if len(part) <= MAX_SENTENCE]
