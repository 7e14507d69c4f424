"""What must not be taken for a person's wish: thoughts, jokes, one-off requests, words of others, texts to work on.

A sentence passes if it is the person's, is meant, and is meant to last. When in doubt it does not pass.
"""

from __future__ import annotations

from typing import Final

from commonplace.pipeline.embedded import cues as languages
from commonplace.pipeline.embedded import tables
from commonplace.pipeline.embedded.cues import Cues
from commonplace.pipeline.embedded.sentences import Sentence

_INJECTION: Final = tables.pattern("injection")
_STATE: Final = tables.pattern("state")

_OUTLASTS: Final = tables.pattern("outlasts")
_INSISTS: Final = tables.pattern("insists")


def is_injection(text: str) -> bool:
    """Say whether a text tries to steer whoever reads it."""
    return bool(_INJECTION.search(text))


def is_meant_to_last(sentence: Sentence, cues: Cues) -> bool:
    """Say whether a sentence may tell a wish that holds beyond the moment."""
    text = sentence.text
    if is_injection(text) or _STATE.search(text):
        return False
    if cues.once.search(text) and not _OUTLASTS.search(text):
        return False
    if cues.unreal.search(cues.polite.sub("", text)) and not insists(text):
        return False
    return not cues.others.search(text)


def insists(text: str) -> bool:
    """Say whether a question is none (why do you keep doing this?), or a condition only says when a wish applies."""
    return bool(_INSISTS.search(text))


def is_text_work(message: str) -> bool:
    """Say whether a message asks, in any language, for work on a text: what it holds is the text."""
    head = message[:600]
    return any(languages.of(language).text_work.search(head) for language in languages.LANGUAGES)
