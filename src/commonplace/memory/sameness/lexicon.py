"""The words and expressions that sentences are read by, for each of five languages (`lexicon.toml`)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from itertools import combinations
from typing import Any, Final

import msgspec

from commonplace import package_files
from commonplace.patterns import regex

LANGUAGES: Final = ("en", "de", "es", "fr", "zh")
_VANISHING: Final = frozenset({"all", "put", "need", "about"})
"""Ideas that say nothing of what a lesson is about."""
_SHORTEST_STEM: Final = 4
_SHORTEST_ENGLISH_STEM: Final = 3
_HAN: Final = regex(r"[\u3400-\u9fff]")
_SAMPLE: Final = 400
"""So many characters tell the language of a sentence."""


class Language(msgspec.Struct, frozen=True):
    """What one language has."""

    code: str
    stop: frozenset[str]
    """Words that say nothing of what a lesson is about."""
    negators: frozenset[str]
    only: frozenset[str]
    before: frozenset[str]
    after: frozenset[str]
    first: frozenset[str]
    then: frozenset[str]
    scope: frozenset[str]
    """Words that begin a place, a time or a condition."""
    joins: frozenset[str]
    faint: frozenset[str]
    """Words that announce a change only faintly."""
    contrast: dict[str, tuple[tuple[str, ...], ...]]
    """What rules out what follows, word by word, by the first word."""
    released: re.Pattern[str]
    """It need not be done any more."""
    change: re.Pattern[str]
    """Something changes."""
    condition: re.Pattern[str]
    """What a denial before it asks for first."""
    numbers: dict[str, str]
    phrases: dict[str, str]
    endings: tuple[str, ...]
    ideas: dict[str, str]
    """The idea of each word; English words have theirs in all languages."""
    idea_stems: dict[str, frozenset[str]]
    """The stems of the words of each idea."""
    vocabulary: frozenset[str]
    """Words by which text without blanks is cut."""

    def stem(self, word: str) -> str:
        """Return a word without the ending that does not change what it is about."""
        return _stem(word, self.endings, is_english=self.code == "en")

    def is_content(self, word: str) -> bool:
        """Say whether a word says what a lesson is about."""
        idea = self.ideas.get(word)
        return idea not in _VANISHING if idea is not None else word not in self.stop


@cache
def _tables() -> dict[str, Any]:
    text = package_files.text("memory/sameness/lexicon.toml")
    return tomllib.loads(text)


@cache
def language(code: str) -> Language:
    """Return what a language has."""
    tables = _tables()

    def words(name: str) -> frozenset[str]:
        return frozenset(tables[name][code].split())

    endings = tuple(tables["endings"].get(code, "").split())
    contrast = tuple(tuple(phrase.split()) for phrase in tables["contrast"][code])
    own = LANGUAGES.index(code)
    ideas: dict[str, str] = {}
    for column in dict.fromkeys((own, 0)):
        for idea, columns in tables["ideas"].items():
            for word in columns[column].split():
                ideas.setdefault(word.lower(), idea)
    stems: dict[str, set[str]] = {}
    for word, idea in ideas.items():
        stems.setdefault(idea, {idea}).add(_stem(word, endings, is_english=code == "en"))
    word_lists = [words(name) for name in ("stop", "negators", "only", "before", "after", "first", "then", "scope")]
    numbers = dict(pair.split("=") for pair in tables["numbers"][code].split())
    return Language(
        code=code,
        stop=words("stop"),
        negators=words("negators"),
        only=words("only"),
        before=words("before"),
        after=words("after"),
        first=words("first"),
        then=words("then"),
        scope=words("scope"),
        joins=words("joins"),
        faint=words("faint"),
        contrast={first: tuple(phrase for phrase in contrast if phrase[0] == first) for first, *_ in contrast},
        released=regex(tables["released"][code]),
        change=regex(tables["change"][code]),
        condition=regex(tables["condition"][code]),
        numbers=numbers,
        phrases=dict(pair.split("=") for pair in tables["phrases"][code]),
        endings=endings,
        ideas=ideas,
        idea_stems={idea: frozenset(each) for idea, each in stems.items()},
        vocabulary=frozenset[str]().union(*word_lists, ideas, numbers, *contrast) if code == "zh" else frozenset(),
    )


@cache
def letters(code: str) -> re.Pattern[str] | None:
    """Return the letters and endings by which a language shows."""
    found = _tables()["letters"].get(code)
    return regex(found) if found else None


@cache
def verbs() -> frozenset[str]:
    """Return the ideas that are what somebody does."""
    return frozenset(_tables()["verbs"]["ideas"].split())


@cache
def weak() -> frozenset[str]:
    """Return the words that may be missing in either of two lessons that say the same."""
    return frozenset(_tables()["weak"]["words"].split())


@cache
def light() -> frozenset[str]:
    """Return the verbs that may be missing in one lesson if the other has nothing left over."""
    return frozenset(_tables()["light"]["words"].split())


@cache
def opposites() -> frozenset[frozenset[str]]:
    """Return pairs of which only one holds."""
    pairs = [pair.split() for pair in _tables()["opposites"]["pairs"].split("|")]
    rivals = [pair for group in _tables()["tools"]["exclusive"].split("|") for pair in combinations(group.split(), 2)]
    return frozenset(frozenset(pair) for pair in (*pairs, *rivals))


@cache
def tools() -> frozenset[str]:
    """Return names of tools, which stand for one thing only although they are written like words."""
    listed = _tables()["tools"]
    return frozenset(listed["exclusive"].replace("|", " ").split()) | frozenset(listed["others"].split())


def _stem(word: str, endings: tuple[str, ...], *, is_english: bool) -> str:
    shortest = _SHORTEST_ENGLISH_STEM if is_english else _SHORTEST_STEM
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            bare = word[: -len(ending)]
            if is_english and bare[-1] == bare[-2] and bare[-1] not in "aeiouls":
                bare = bare[:-1]
            return bare[:-1] + "y" if is_english and bare.endswith("i") else bare
    return word[:-1] + "y" if is_english and word.endswith("i") and len(word) > shortest else word


def language_of(lower: str) -> Language:
    """Return the language of a text: the one most of whose function words it has; English where none shows."""
    if _HAN.search(lower):
        return language("zh")
    words = re.findall(r"[^\W\d_]+", lower[:_SAMPLE])
    scores: dict[str, float] = {}
    for code in LANGUAGES[:-1]:
        known = language(code)
        english = language("en")
        score = float(sum(word in known.stop or word in known.negators for word in words))
        if code != "en":
            score += sum(0.5 for word in words if word in known.ideas and word not in english.ideas)
            own_letters = letters(code)
            score += bool(own_letters and own_letters.search(lower[:_SAMPLE]))
        scores[code] = score
    return language(max(scores, key=lambda code: scores[code]))
