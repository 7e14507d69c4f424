"""What must not be taken for a person's wish: thoughts, jokes, one-off requests, words of others, texts to work on.

A sentence passes if it is the person's, is meant, and is meant to last. When in doubt it does not pass.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from commonplace.learning.reading import sentences, tables
from commonplace.learning.reading.cues import SentenceCues
from commonplace.memory.injection import is_injection
from commonplace.redact import MARK

_CREDENTIAL: Final = tables.pattern("credential")
_POLITELY: Final = tables.pattern("asks_politely", r"^(?:", r"\b[ ,]*)+")


def holds_secret(text: str) -> bool:
    """Say whether a text gives a credential away, or one was taken out of it: nothing in it is worth the risk."""
    return MARK in text or bool(_CREDENTIAL.search(text))


@lru_cache(maxsize=1024)
def is_unfit(text: str) -> bool:
    """Say whether a text must not be kept, whatever it says."""
    return is_injection(text) or holds_secret(text)


@lru_cache(maxsize=512)
def is_text_work(message: str) -> bool:
    """Say whether a message asks for work on a text: what it holds is the text."""
    return any(_asks_for_text(each.heard) for each in sentences.of_text(message)[:3])


def _asks_for_text(heard: SentenceCues) -> bool:
    """Say whether a sentence asks for it: the words must open a clause, where a language puts its verbs first."""
    if not heard.says("text_work"):
        return False
    if heard.languages[0] in ("de", "zh"):
        return True
    clauses = re.split(r"[,;:.] ", heard.lower)
    return any(SentenceCues(_POLITELY.sub("", clause), heard.languages).opens("text_work") for clause in clauses)
