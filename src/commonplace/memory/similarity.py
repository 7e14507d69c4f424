"""When two lessons mean the same, and when one takes the place of the other.

A lesson is compared by the words that say what it is about. Names of tools and languages of which one is used at a time
form families: the same wish with another member of the family is not a repetition, it is a change of mind. So are the
same words denied, and the same frame around another name, path or number.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache, cached_property, lru_cache
from typing import Any, Final

import msgspec

from commonplace import package_files
from commonplace.patterns import regex

_WORD: Final = regex(r"[\u3400-\u9fff]|[^\W_](?:[\w'./:@+-]{0,200}[\w+])?|\w")
_EXACT: Final = regex(r"\d|[/._:@]|\w-\w")
"""Names, paths, versions, numbers: words that stand for one thing only."""
_CLAUSE: Final = regex(r"[,;:!?，；。]|\.\s")
_INFLECTIONS: Final = ("ings", "ing", "ies", "ed", "es", "s", "en", "e")
_DERIVATIONS: Final = ("ations", "ation")
_SAME: Final = 0.5
"""Lessons are the same if they share this share of the lighter one's weight."""
_LIGHT: Final = 0.4
"""The weight of a word that is everywhere."""
_NAMED: Final = 1.6
"""The weight of an exact name."""
_MIN_WEIGHT: Final = 1.8
"""The least weight that lessons must share to be the same."""
_SAME_OF_ALL: Final = 0.2
"""The least share of both lessons' weight that they must have in common."""
_TOPIC: Final = 0.5
"""Lessons with this overlap are about the same thing."""
MIN_SHARED: Final = 2
"""How many words two lessons that are worded differently must share to be the same."""
_FEW: Final = 4
_REACH: Final = 24
_REACH_BACK: Final = 18
"""How far a denial reaches, in characters."""


class ComparedWords(msgspec.Struct, frozen=True, dict=True):
    """The words of a lesson that are compared; what few comparisons ask for is found out when one does."""

    lower: str
    about: frozenset[str]
    concepts: frozenset[str]
    """Wishes that very many people have."""
    weight: float
    """How much its words tell."""

    @cached_property
    def exact(self) -> frozenset[str]:
        """Names, paths, versions and numbers."""
        return frozenset(word for word in self.about if _EXACT.search(word))

    @cached_property
    def _denials(self) -> list[tuple[int, int]]:
        return _denials(self.lower)

    @property
    def is_denial(self) -> bool:
        """Whether it denies something."""
        return bool(self._denials)

    @cached_property
    def denied(self) -> frozenset[str]:
        """Words that stand after a denial."""
        denies = self._denials
        if not denies:
            return frozenset()
        told = _tokens(self.lower)
        return frozenset(word for place, word in told if any(start <= place < end for start, end in denies))

    @cached_property
    def chosen(self) -> dict[str, frozenset[str]]:
        """For each family, the members that are wanted."""
        found: dict[str, set[str]] = {}
        for word in sorted(self.about - self.denied):
            if word in _family():
                found.setdefault(_family()[word], set()).add(word)
        return {family: frozenset(members) for family, members in found.items()}

    @property
    def reverses(self) -> bool:
        """Whether it says that something else held before."""
        return _reverses(self.lower)

    @property
    def handles(self) -> list[str]:
        """What others that are about the same can be found by."""
        return [*self.about, *self.concepts, *(f"family {name}" for name in self.chosen)]


@cache
def _table() -> dict[str, Any]:
    text = package_files.text("memory/similarity.toml")
    return tomllib.loads(text)


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a list of the table as one pattern."""
    return regex("|".join(_table()[name]))


@cache
def _dull() -> frozenset[str]:
    return frozenset(_table()["dull"])


@cache
def _family() -> dict[str, str]:
    families: dict[str, list[str]] = _table()["families"]
    return {stem(member): name for name, members in families.items() for member in members}


@cache
def _synonyms() -> dict[str, str]:
    lines: list[list[str]] = _table()["synonyms"]
    return {each: line[0] for line in lines for word in line for each in (word, _bare(word))}


@cache
def _concepts() -> dict[str, re.Pattern[str]]:
    return {name: regex("|".join(lines)) for name, lines in _table()["concepts"].items()}


@cache
def _anchors() -> list[tuple[str, str]]:
    """Return words without which a text holds no concept, each with its concept."""
    anchors: dict[str, list[str]] = _table()["anchors"]
    return [(anchor, name) for name, each in anchors.items() for anchor in each]


def _concepts_in(lower: str) -> frozenset[str]:
    likely = {name for anchor, name in _anchors() if anchor in lower}
    return frozenset(name for name in likely if _concepts()[name].search(lower))


@lru_cache(maxsize=16_384)
def _reverses(lower: str) -> bool:
    return bool(pattern("reverses").search(lower))


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without the endings that do not change what it is about, or the word that stands for it."""
    bare = _bare(word)
    return _synonyms().get(word) or _synonyms().get(bare) or bare


def _bare(word: str) -> str:
    if _EXACT.search(word) or not word.isascii() or len(word) < 5:
        return word.removesuffix("s") if len(word) > 3 and word.isascii() and not _EXACT.search(word) else word
    bare = without_ending(word, _DERIVATIONS + _INFLECTIONS)
    is_doubled = bare != word and bare[-1] == bare[-2] and bare[-1] not in "aeiouls"
    return bare[:-1] if is_doubled else bare


def without_ending(word: str, endings: Iterable[str] = _INFLECTIONS) -> str:
    """Return a word without the first of the endings that leaves three letters; longer endings come first."""
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=16_384)
def words(text: str) -> ComparedWords:
    """Return what of a text is compared."""
    lower = text.lower().replace("’", "'")
    is_plain = lower.isascii()  # most texts are; only those in Han need their words one after the other
    about = frozenset(map(_token, _WORD.findall(lower)) if is_plain else (word for _, word in _tokens(lower))) - {""}
    return ComparedWords(lower, about, _concepts_in(lower), weight(about))


def _tokens(lower: str) -> Iterator[tuple[int, str]]:
    """Yield where each word stands that says what a text is about, and what it is compared by."""
    before = ""
    for found in _WORD.finditer(lower):
        word = found[0]
        if len(word) == 1 and "\u3400" <= word <= "\u9fff":
            token = _synonyms().get(before + word, before + word) if before and word not in _dull() else ""
            before = word
        else:
            token, before = _token(word), ""
        if token:
            yield found.start(), token


@lru_cache(maxsize=65_536)
def _token(word: str) -> str:
    """Return what a word is compared by; nothing for one that says nothing."""
    bare = word.strip("'.:")
    return "" if bare in _dull() else stem(bare)


def _denials(lower: str) -> list[tuple[int, int]]:
    """Return the stretches of a text that are denied: what follows a denial, or stands before one that comes after."""
    if pattern("twice").search(lower):
        return []
    found = [(each.end(), _clause_end(lower, each.end())) for each in pattern("denies").finditer(lower)]
    return found + [(each.start() - _REACH_BACK, each.start()) for each in pattern("gone_after").finditer(lower)]


def _clause_end(lower: str, start: int) -> int:
    end = _CLAUSE.search(lower, start)
    return min(start + _REACH, end.start() if end else len(lower))


def is_same(one: ComparedWords, two: ComparedWords) -> bool:
    """Say whether two lessons teach the same."""
    if not one.about or not two.about:
        return False
    if one.about != two.about and not one.concepts & two.concepts and not _is_near(one, two):
        return False
    return not clash(one, two)


def _is_near(one: ComparedWords, two: ComparedWords) -> bool:
    """Say whether two lessons share most of what they are about."""
    shared = one.about & two.about
    if len(shared) < MIN_SHARED:
        return False
    both = weight(shared)
    least, whole = min(one.weight, two.weight), one.weight + two.weight - both
    return both >= _MIN_WEIGHT and both / least >= _SAME and both / whole >= _SAME_OF_ALL


def weight(words: frozenset[str]) -> float:
    """Return how much words tell: names much, words that are everywhere little."""
    return sum(map(_tells, words))


@lru_cache(maxsize=65_536)
def _tells(word: str) -> float:
    return _NAMED if _EXACT.search(word) else _LIGHT if word in _light() else 1.0


@cache
def _light() -> frozenset[str]:
    return frozenset(stem(word) for word in _table()["light"])


def clash(older: ComparedWords, newer: ComparedWords) -> bool:
    """Say whether the newer of two lessons about one thing says otherwise."""
    shared = older.about & newer.about
    if _other_member(older, newer):
        return True
    rest = shared - older.denied - newer.denied
    overlap = len(shared) / max(1, min(len(older.about), len(newer.about)))
    if overlap >= _TOPIC and older.is_denial != newer.is_denial and _turned(older, newer):
        return True
    if newer.denied & older.about and _takes_the_place(older, newer) and newer.reverses:
        return True
    return len(rest) >= MIN_SHARED and overlap >= _TOPIC and _substituted(older, newer)


def _other_member(older: ComparedWords, newer: ComparedWords) -> bool:
    """Say whether both choose, for the same kind of work, another member of one family."""
    for family, members in newer.chosen.items():
        before = older.chosen.get(family)
        if not before or before & members:
            continue
        was, now = (_besides(words, family) for words in (older, newer))
        frame, least = len(was & now), min(len(was), len(now))
        is_single = family in _table()["single"]
        named = bool(members & older.denied or before & newer.denied) and (is_single or frame > 0)
        if named or not least or frame / least >= _TOPIC or ((frame > 1 or is_single) and newer.reverses):
            return True
    return False


def _besides(words: ComparedWords, family: str) -> set[str]:
    """Return what a lesson is about besides a family."""
    return {word for word in words.about if _family().get(word) != family}


def _turned(older: ComparedWords, newer: ComparedWords) -> bool:
    """Say whether what one denies is what the other wants."""
    denying, wanting = (older, newer) if older.is_denial else (newer, older)
    turned = denying.denied & wanting.about
    if (denying.exact - denying.denied) & wanting.exact:
        return False  # both want the same thing by name
    return len(turned) >= MIN_SHARED or bool(turned & denying.exact) or any(word in _family() for word in turned)


def _takes_the_place(older: ComparedWords, newer: ComparedWords) -> bool:
    """Say whether a reversal denies the very thing that the older lesson wants, by name."""
    gone = newer.denied & (older.about - older.denied)
    named = {word for word in gone if word in older.exact or word in _family()}
    frame = older.about & newer.about
    return bool(named) or (len(gone) >= 1 and len(frame) > MIN_SHARED)


def _substituted(older: ComparedWords, newer: ComparedWords) -> bool:
    """Say whether the same is said of another exact thing: a path, a version, a number, a name."""
    was, now = older.exact - newer.about, newer.exact - older.about
    before, after = older.about - newer.about - was, newer.about - older.about - now
    if before and after and not newer.reverses:
        return False  # each is about something of its own
    return bool(was) and bool(now) and len(before | after) <= _FEW
