"""Words that tell what a sentence is about: one table per language, as data; `SentenceCues` tries them on a sentence.

Every pattern is tried on a whole sentence in lower case, and only when somebody asks; what a match means is decided by
detectors. A sentence is heard in its own language and in that of the message around it, since people mix them.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from typing import Final, Literal

from commonplace import package_files
from commonplace.learning.reading.literals import LiteralGate
from commonplace.patterns import regex

Cue = Literal[
    "lasting", "command", "mine", "blame", "consent", "we", "scope", "forbid", "contrast", "manner", "work", "product",
    "once", "unreal", "others", "text_work", "praise", "rejection", "moving_on", "retraction", "decision", "reason",
    "infra", "fact", "transient", "problem", "past", "gave_up", "request",
]  # fmt: skip
"""What a list of patterns says; each is explained where `en.toml` begins it."""

LANGUAGES: Final = ("en", "de", "es", "fr", "zh")
_HAN: Final = regex(r"[\u3400-\u9fff]")
_CLAUSE: Final = regex(r"[,;:(—–]| because | weil | porque | parce |，|；|：")
_MIN_CLAUSE: Final = 4
_WORD: Final = regex(r"\w+")
_MARKS: Final = {
    "de": "nicht bitte und die der das den dem ist sind wir ich immer kein keine mit für auf noch aber statt lieber"
    " heißen nach nur bei uns mal mich dann wie oder auch beim zum ein eine jetzt passt danke warum schon",
    "es": "que por favor los las una para con siempre nunca usa usamos está pero el en vez se nada mis del al gracias"
    " así eso esto como aquí ya lo es muy porfa crea haz la porque vamos de un sin más",
    "fr": "les des une pour avec toujours jamais pas est dans nous vous utilise mais plutôt stp le la on et du sur au"
    " je tu ne ce cette merci très ça chez partout moi veux qui sont parce de un sans",
    "en": "the and to is it you we use please that this for with not always never in of run add are i my a here on only"
    " our your be want from when thanks like good",
}
"""Words that tell of a language."""
_MARKED: Final = {name: frozenset(words.split()) for name, words in _MARKS.items()}
_SIGNS: Final = {
    "de": regex(r"[äöüß]"),
    "es": regex(r"\bno uses\b|[ñ¿¡áíóú]"),
    "fr": regex(r"[àçèêœ]|\b[ldjnsc]'"),
    "en": regex(r"\bdon't\b"),
}
"""What tells of a language besides single words; most texts have none of it."""


@cache
def table(language: str) -> dict[str, list[str]]:
    """Return the cues of a language, each a list of alternatives."""
    text = package_files.text(f"learning/reading/cues/{language}.toml")
    return tomllib.loads(text)


@cache
def pattern(language: str, cue: str) -> re.Pattern[str]:
    """Return a cue of a language, compiled when it is first asked for."""
    return regex(_joined(table(language)[cue]), re.IGNORECASE if cue == "polite" else re.NOFLAG)


@cache
def gate(language: str) -> LiteralGate:
    """Return what tells which cues of a language may match a text in lower case."""
    return LiteralGate({cue: lines for cue, lines in table(language).items() if cue != "polite"})


@lru_cache(maxsize=512)
def _possible(language: str, lower: str) -> frozenset[str]:
    return gate(language).open_for(lower)


def _joined(lines: list[str]) -> str:
    r"""Join alternatives: those that begin with the same anchor share it, so that most places are passed at once."""
    at_words = [line[2:] for line in lines if line.startswith(r"\b") and not line.startswith(r"\b,")]
    at_start = [line[1:] for line in lines if line.startswith("^")]
    rest = [line.removeprefix(r"\b") for line in lines if line.startswith(r"\b,")]
    rest += [line for line in lines if not line.startswith((r"\b", "^"))]
    parts = [rf"\b(?:{'|'.join(at_words)})"] if at_words else []
    parts += [f"^(?:{'|'.join(at_start)})"] if at_start else []
    return "|".join(parts + rest)


@lru_cache(maxsize=2048)
def _answers(text: str, languages: tuple[str, ...]) -> dict[str, bool]:
    """Return what was found in a text before: several readers hear a sentence, and each fills in what it asks."""
    del text, languages
    return {}


@lru_cache(maxsize=1024)
def likely_languages(text: str) -> tuple[str, ...]:
    """Return the languages that a text is most likely in, more than one if they tie; none if nothing tells."""
    if len(_HAN.findall(text)) * 3 > len(text.split()):
        return ("zh",)
    lowered = text.lower()
    words = _WORD.findall(lowered)
    is_plain = lowered.isascii() and "'" not in lowered and "no uses" not in lowered
    counts = {name: _count(name, lowered, words, is_plain=is_plain) for name in _MARKS}
    most = max(counts.values())
    return tuple(name for name in LANGUAGES if most and counts.get(name) == most)


def _count(language: str, lowered: str, words: list[str], *, is_plain: bool) -> int:
    """Return how many marks of a language a text has; the signs within a word that is a mark do not count again."""
    marks = [word for word in words if word in _MARKED[language]]
    if is_plain:
        return len(marks)
    signs = _SIGNS[language]
    within = sum(len(signs.findall(word)) for word in marks if not word.isascii())
    return len(marks) + len(signs.findall(lowered)) - within


class SentenceCues:
    """A sentence and the cues that it contains; each cue is searched once."""

    __slots__ = ("_answers", "_head", "bare", "languages", "lower", "text")

    def __init__(self, text: str, languages: tuple[str, ...]) -> None:
        self.text = text
        self.languages = languages
        self._answers = _answers(text, languages)
        self._head: SentenceCues | None = None
        self.bare = pattern(languages[0], "polite").sub("", text).strip() or text
        """The sentence without what opens it and says nothing."""
        self.lower = text.lower().replace("’", "'")

    def says(self, cue: Cue) -> bool:
        """Say whether the sentence has a cue."""
        known = self._answers.get(cue)
        if known is None:
            text = self.bare.lower().replace("’", "'") if cue in ("request", "unreal", "product") else self.lower
            is_foreign = cue == "infra" and self.languages[0] != "en"
            languages = (*self.languages, "en") if is_foreign else self.languages
            known = self._answers[cue] = any(
                cue in _possible(language, text) and pattern(language, cue).search(text) for language in languages
            )
        return known

    def opens(self, cue: Cue) -> bool:
        """Say whether the sentence begins with a cue."""
        return any(pattern(language, cue).match(self.lower) for language in self.languages)

    def any(self, *cues: Cue) -> bool:
        """Say whether the sentence has one of some cues."""
        return any(self.says(cue) for cue in cues)

    @property
    def head(self) -> SentenceCues:
        """The first clause of some length: what the sentence is about."""
        if self._head is None:
            parts = _CLAUSE.split(self.bare, maxsplit=2)
            few = len(parts) > 1 and len(parts[0].split()) < _MIN_CLAUSE and not _HAN.search(parts[0])
            first = " ".join(parts[: 2 if few else 1]).strip()
            self._head = self if first == self.bare else SentenceCues(first, self.languages)
        return self._head

    def without(self, cue: Cue, text: str) -> str:
        """Return a text without what matches a cue."""
        for language in self.languages:
            text = pattern(language, cue).sub("", text)
        return text
