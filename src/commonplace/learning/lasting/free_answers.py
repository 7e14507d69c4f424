"""The question that a short message answers: `2`, `A. is fine` and `yes` say nothing without the agent's words.

The agent's last message holds the question and, for a letter or a number, the option of that name.
"""

from __future__ import annotations

from typing import Final

from commonplace.learning.lasting.own_sentences import split
from commonplace.learning.reading.question_tools import shortened
from commonplace.patterns import regex

_LOOK: Final = 4_000
"""How much of the end of the agent's message is looked at."""
_LONGEST_ANSWER: Final = 400
"""A longer message speaks for itself."""
_OPTION: Final = regex(
    r"(?m)^[ \t]*+(?:[-*•][ \t]++)?(?:\*\*)?(?:[Oo]ption[ \t]++)?([A-Ha-h]|\d{1,2})(?:\*\*)?[.):][ \t]*+(\S.*)$"
)
_CHOICE: Final = regex(
    r"(?m)^[ \t]*+(?:(?i:option|choice|answer|number)[ \t]++#?([A-Ha-h]|\d{1,2})\b|([A-H]|\d{1,2})(?=[.):,; \t]|$)"
    r"|([a-h])(?=[.):]|$))"
)
_SHORT: Final = regex(
    r"(?i)\s*+(?:yes|yep|yeah|y|no|nope|n|ok(?:ay)?|sure|correct|right|neither|both|either|all of them|none"
    r"|the (?:first|second|third|last|former|latter)|do it|go ahead|sounds good)\b"
)
_SHORT_WORDS: Final = 25


def question_of(answer: str, before: str) -> str:
    """Return the question and the options that a message answers, out of the agent's message before it.

    Empty if the message speaks for itself, or the agent asked nothing.
    """
    if not answer.strip() or len(answer) > _LONGEST_ANSWER or not before.strip():
        return ""
    end = before[-_LOOK:]
    chosen = list(dict.fromkeys((found[1] or found[2] or found[3]).lower() for found in _CHOICE.finditer(answer)))
    if chosen:
        options = {found[1].lower(): found[0].strip(" \t*-•") for found in _OPTION.finditer(end)}
        told = [options[name] for name in chosen if name in options]
        if told:
            return shortened(" / ".join([*_last_question(end), *told]))
    if _SHORT.match(answer) and len(answer.split()) <= _SHORT_WORDS:
        return shortened(" ".join(_last_question(end)))
    return ""


def _last_question(text: str) -> list[str]:
    """Return the last sentence that asks, if there is one."""
    asking = [
        text[start:end] for start, end in split(text, 0, len(text)) if text[start:end].rstrip("*_`\"') ").endswith("?")
    ]
    return [asking[-1].strip(" \t*_#-•")] if asking else []
