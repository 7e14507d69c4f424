"""The person's own sentences: a message without what was pasted into it, cut where thoughts end.

People paste logs, code, mails, issues and documents into prompts; those are somebody else's words, however imperative
they sound. Left out are fenced, ruled-off and quoted blocks, transcripts, lines that look like output or code, what
follows an announcement, and quotations within a line. What is left is cut into sentences, in any language.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Final

import msgspec

from commonplace.learning.reading import cues as languages
from commonplace.learning.reading import tables
from commonplace.learning.reading.cues import SentenceCues
from commonplace.memory.sentence_split import split
from commonplace.patterns import regex

_FENCE: Final = regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAG: Final = regex(r"<(?:([a-zA-Z][\w-]{1,40})(?:\s[^<>]{0,200})?|/([a-zA-Z][\w-]{1,40}))>")
_RULED: Final = regex(r"^[-=_*]{3,} *$.*?(?:^[-=_*]{3,} *$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED: Final = regex(
    r"“[^“”]{20,}”|„[^„“”]{20,}[“”]|«[^«»]{20,}»|「[^「」]{8,}」|“[^“”，。；]*[，。；][^“”]*”"
    r"|\"[^\"]{24,}\"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){4,}'(?!\w)"
)
_MIN_QUOTED: Final = 5
"""Fewer words in single quotes are a name or an example."""
_OUTPUT: Final = tables.pattern("output", r"^\s*", flags=re.NOFLAG)
_ANNOUNCED: Final = tables.pattern("announced")
_SPEAKER: Final = regex(r"\s*(?:\[?\d{1,2}:\d\d(?::\d\d)?\]?\s*)?<?@?[A-Za-zÀ-ÿ][\w .@-]{0,18}>?:\s+\S")
_MAIL: Final = regex(
    r"(?:From|To|Cc|Subject|Date|Von|An|Betreff|De|Para|Asunto|À|Objet|发件人|主题)[:：] "
    r"|\S{1,20}(?: \S{1,20})?\s+\[?\d{1,2}:\d\d(?: ?[AaPp][Mm])?\]?$"
)
"""Lines that somebody else's words come after: a mail's head, a name and a time in a chat."""
_HEADING: Final = regex(r"#{1,6} \S")
_BULLET: Final = regex(r"\s*(?:[-*•·]|\d{1,2}[.)])\s+")
_UNTOLD: Final = ("en", "de", "es", "fr")
_FEW_WORDS: Final = 4
"""In fewer words than these, marks of a language mislead."""
_RULES: Final = tables.pattern("rules_follow")


class Sentence(msgspec.Struct, frozen=True):
    """One thought of a person."""

    text: str
    heard: SentenceCues
    first: bool
    """It opens its message."""
    is_question: bool
    is_listed: bool = False
    """It stands in a list that the person announced as rules."""
    is_alone: bool = False
    """Its message says nothing else."""


@lru_cache(maxsize=512)
def of_text(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of a message that are the person's own."""
    found: list[Sentence] = []
    listing = False
    lines = own_lines(text)
    around = languages.likely_languages("\n".join(lines))
    for line in lines:
        bullet = _BULLET.match(line) if len(lines) > 1 else None
        listing = listing and bullet is not None
        for part in split(line[bullet.end() :] if bullet else line):
            heard = SentenceCues(part, _languages(part, around))
            is_question = part.rstrip("\"')] ").endswith(("?", "？"))
            found.append(Sentence(part, heard, not found, is_question, listing))
        listing = listing or bool(_RULES.search(line))
    if len(found) == 1:
        found = [msgspec.structs.replace(found[0], is_alone=True)]
    return tuple(found)


def _languages(part: str, around: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages to hear a sentence in: its own and those around it; all, if little tells."""
    own = languages.likely_languages(part) or around
    if own == ("zh",):
        return own
    few = len(part.split()) <= _FEW_WORDS
    return tuple(dict.fromkeys((*own, *around, *(_UNTOLD if few or not own else ()))))


@lru_cache(maxsize=512)
def own_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a message that the person wrote, as far as that can be told."""
    text = _RULED.sub("\n", _without_tagged(_FENCE.sub("\n", text)))
    text = _QUOTED.sub(_cut_quotation, text)
    raw = text.split("\n")
    speakers = {line.split(":", 1)[0].strip() for line in raw if _SPEAKER.match(line) and not _ANNOUNCED.search(line)}
    lines: list[str] = []
    pasting = False
    pasted = 0
    for line in raw:
        stripped = line.strip()
        if not stripped:
            pasting = pasting and not pasted
            continue
        if _MAIL.match(stripped):
            pasting, pasted = True, 0  # its body comes after an empty line
            continue
        if _is_others(line, stripped, speakers):
            pasting, pasted = pasting or bool(_HEADING.match(stripped)), pasted + 1
            continue
        if pasting:
            pasted += 1
            continue
        lines.append(stripped)
        if _ANNOUNCED.search(stripped) and not _RULES.search(stripped):
            pasting, pasted = True, 0
    return tuple(lines)


def _without_tagged(text: str) -> str:
    """Return a text with a line break in place of each tag, its end, and what is between them."""
    tags = list(_TAG.finditer(text))
    ends: dict[str, list[int]] = {}
    for tag in tags:
        if tag[2]:
            ends.setdefault(tag[2], []).append(tag.end())
    kept: list[str] = []
    done = 0
    for tag in tags:
        closing = ends.get(tag[1] or "", [])
        place = bisect_right(closing, tag.end())
        if tag.start() >= done and place < len(closing):
            kept.append(text[done : tag.start()])
            done = closing[place]
    return "\n".join([*kept, text[done:]])


def _cut_quotation(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("'") and len(match[0].split()) < _MIN_QUOTED else "“…”"


def _is_others(line: str, stripped: str, speakers: set[str]) -> bool:
    """Say whether a line looks like output, code, a quotation or a transcript."""
    if stripped.startswith((">", "|", "│", "//", "/*", "*/")) or _OUTPUT.match(line) or _HEADING.match(stripped):
        return True
    if line.startswith(("    ", "\t")) and not _BULLET.match(line):
        return True
    return len(speakers) > 1 and bool(_SPEAKER.match(line))
