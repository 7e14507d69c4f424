"""The person's own sentences: a message without what was pasted into it, cut where thoughts end.

People paste logs, code, mails, issues and documents into prompts; those are somebody else's words, however imperative
they sound. Left out are fenced and quoted blocks, lines that look like output or code, and what follows an announcement
of a quotation. What is left is cut into sentences, in any language.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from commonplace.pipeline.embedded import tables
from commonplace.pipeline.view import Said

MAX_SENTENCE: Final = 400
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAGGED: Final = re.compile(r"<([a-zA-Z][\w-]{1,40})(?:\s[^<>]{0,200})?>.*?</\1>", re.DOTALL)
_END: Final = re.compile(r"(?<=[.!?…])[\"')\]]*\s+(?=[^\s])|(?<=[。！？；])|\n+")
_ABBREVIATION: Final = re.compile(r"\b(?:e\.g|i\.e|etc|vs|z\.B|d\.h|bzw|p\.ej|ej|cf|approx|no|Nr)\.$", re.IGNORECASE)
_OUTPUT: Final = tables.pattern("output", r"^\s*", flags=re.NOFLAG)
_ANNOUNCED: Final = tables.pattern("announced")


_BULLET: Final = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.)])\s+")
_RULES: Final = re.compile(
    r"\b(?:rules?|conventions?|guidelines?|standards?|preferences|requirements|regeln|konventionen|vorgaben|reglas|normas"
    r"|convenciones|règles|conventions|consignes)\b[^.!?\n]{0,80}[:：]\s*$|(?:规则|规范|约定|要求)[^。！？\n]{0,20}[:：]\s*$",
    re.IGNORECASE,
)


class Sentence(msgspec.Struct, frozen=True):
    """One thought of a person."""

    text: str
    said: Said
    first: bool
    """It opens its message."""
    is_question: bool
    is_listed: bool = False
    """It stands in a list that the person announced as rules."""


def of_message(said: Said) -> list[Sentence]:
    """Return the sentences of a message that are the person's own."""
    found: list[Sentence] = []
    listing = False
    for line in own_lines(said.text):
        bullet = _BULLET.match(line)
        listing = listing and bullet is not None
        for text in split(line[bullet.end() :] if bullet else line):
            is_question = text.rstrip("\"')] ").endswith(("?", "？"))
            found.append(Sentence(text, said, not found, is_question, listing))
        listing = listing or bool(_RULES.search(line))
    return found


def own_lines(text: str) -> list[str]:
    """Return the lines of a message that the person wrote, as far as that can be told."""
    text = _TAGGED.sub("\n", _FENCE.sub("\n", text))
    lines: list[str] = []
    quoting = False
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped:
            quoting = False
            continue
        if (
            stripped.startswith((">", "|", "│", "//", "/*", "*/"))
            or _OUTPUT.match(line)
            or line.startswith(("    ", "\t"))
        ):
            continue
        if quoting:
            continue
        lines.append(stripped)
        quoting = bool(_ANNOUNCED.search(stripped))
    return lines


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
