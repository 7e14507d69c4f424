"""Words that tell what a sentence is about: one table per language, as data; `Cues` is what a table must have.

Every pattern is tried on a whole sentence, without regard to case. What a match means is decided by detectors.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Final

import msgspec


class Cues(msgspec.Struct, frozen=True):
    """The patterns of one language, compiled."""

    standing: re.Pattern[str]
    """Says how things are to be done, now and later."""
    norm: re.Pattern[str]
    """Says what holds in a project or team."""
    practice: re.Pattern[str]
    """Tells to do or not to do something that is a habit rather than a task."""
    correction: re.Pattern[str]
    """Puts right what was done, with what is wanted instead."""
    once: re.Pattern[str]
    """Holds for this one time only."""
    unreal: re.Pattern[str]
    """Is thought, supposed, asked or joked, not wanted."""
    others: re.Pattern[str]
    """Tells what somebody else says or wants."""
    text_work: re.Pattern[str]
    """Asks for work on a text: what follows is the text."""
    praise: re.Pattern[str]
    rejection: re.Pattern[str]
    moving_on: re.Pattern[str]
    """Begins something new."""
    decision: re.Pattern[str]
    reason: re.Pattern[str]
    fact: re.Pattern[str]
    """States a durable fact about the project or the machine."""
    transient: re.Pattern[str]
    """Tells how things are at this moment."""
    steps: re.Pattern[str]
    """Tells an order of steps."""
    polite: re.Pattern[str]
    """What opens a sentence and says nothing."""


LANGUAGES: Final = ("en", "de", "es", "fr", "zh")
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_MARKS: Final = {
    "de": re.compile(
        r"\b(?:nicht|bitte|und|die|der|das|ist|wir|ich|immer|kein|keine|mit|für|auf|noch|aber|statt|lieber)\b|[äöüß]"
    ),
    "es": re.compile(
        r"\b(?:que|por|favor|los|las|una|para|con|siempre|nunca|usa|usamos|no uses|está|pero|el|en vez)\b|[ñ¿¡]"
    ),
    "fr": re.compile(
        r"\b(?:les|des|une|pour|avec|toujours|jamais|pas|est|dans|nous|vous|utilise|mais|plutôt|stp|le|la)\b|[àçèêœ]"
    ),
    "en": re.compile(
        r"\b(?:the|and|to|is|it|you|we|use|please|don't|that|this|for|with|not|always|never|in|of|run|add)\b"
    ),
}


@cache
def of(language: str) -> Cues:
    """Return the cues of a language."""
    text = resources.files("commonplace.pipeline.embedded.cues").joinpath(f"{language}.toml").read_text("utf-8")
    table: dict[str, list[str]] = tomllib.loads(text)
    return Cues(**{name: re.compile("|".join(lines), re.IGNORECASE) for name, lines in table.items()})


def language_of(text: str) -> str:
    """Return the language that a text is most likely in; English if nothing tells."""
    if len(_HAN.findall(text)) * 3 > len(text.split()):
        return "zh"
    lowered = text.lower()
    counts = {name: len(pattern.findall(lowered)) for name, pattern in _MARKS.items()}
    best = max(counts, key=lambda name: (counts[name], name == "en"))
    return best if counts[best] > counts["en"] else "en"
