"""Texts that a person asked to forget, stored as hashes only: the words themselves are stored nowhere.

A text is recognised if its words are the same, or nearly so: its content words are hashed one by one, with a separate
salt for each decision, and most of them must occur again. Inside a longer text it is recognised by its exact words, in
any case and with any punctuation between them; for that, the number of its words is stored.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from commonplace.memory import similarity
from commonplace.memory.sentence_split import split
from commonplace.patterns import regex
from commonplace.protocol.ids import parse_time
from commonplace.rollout import decisions

FORGOTTEN: Final = "[forgotten]"
"""The text that replaces a forgotten one where a text cannot be left empty."""
_ALIKE: Final = 0.8
"""A text with this share of the forgotten words is the forgotten text."""
_MIN_WORDS: Final = 2
"""Texts of fewer words are compared as a whole only."""
_BYTES: Final = 6
"""The length of a word's hash, in bytes."""
_TOKEN: Final = regex(r"[\u3400-\u9fff]|(?:(?![\u3400-\u9fff])[\w./:@#+-])+")
_HAN: Final = regex(r"[\u3400-\u9fff]")
_WORD: Final = regex(r"[^\W_](?:[\w'./:@+-]{0,200}[\w+])?|\w")
"""As `alike` has them, so that no word of a text is missed."""
_EDGES: Final = "./:@#+-_"


class _Rule(msgspec.Struct):
    """One decision."""

    salt: str
    hashes: frozenset[str]
    words: tuple[frozenset[str], ...]
    sizes: tuple[int, ...]
    at: int
    seen: set[str] = set()
    """Every word that was ever asked about: texts share most of their words."""
    own: dict[str, str] = {}
    """The hashes of those that stand in what was forgotten."""

    def shared(self, about: frozenset[str]) -> frozenset[str]:
        """Return the hashes of those words that stand in what was forgotten."""
        for word in about - self.seen:
            self.seen.add(word)
            name = _hash(self.salt, word)
            if any(name in words for words in self.words):
                self.own[word] = name
        return frozenset(self.own[word] for word in about & self.own.keys())

    def may_be_in(self, about: frozenset[str]) -> bool:
        """Say whether a text that is about these words may hold what was forgotten; cheap, and mostly no."""
        own = self.shared(about)
        return any(len(words & own) >= _ALIKE * len(words) for words in self.words)

    def is_this(self, plain: str, about: frozenset[str]) -> bool:
        """Say whether a text is what was forgotten."""
        if _hash(self.salt, plain) in self.hashes:
            return True
        if len(about) < _MIN_WORDS:
            return False
        own = self.shared(about)
        return any(
            len(words) >= _MIN_WORDS and len(own & words) / (len(about) + len(words - own)) >= _ALIKE
            for words in self.words
        )

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where in a text the very words stand."""
        tokens = list(_tokens(text))
        for size in self.sizes:
            for first in range(len(tokens) - size + 1):
                part = tokens[first : first + size]
                if _hash(self.salt, " ".join(word for word, _, _ in part)) in self.hashes:
                    yield part[0][1], part[-1][2]


class Forgotten:
    """Recognises forgotten texts, and removes them from others."""

    def __init__(self, lines: Iterable[decisions.DecisionLine]) -> None:
        self._rules: list[_Rule] = []
        for line in lines:
            moment = parse_time(line.time)
            self._rules.append(
                _Rule(
                    line.salt or "",
                    frozenset(line.hashes),
                    tuple(frozenset(words) for words in line.words),
                    tuple(sorted({size for size in line.sizes if size > 0}, reverse=True)),
                    int(moment.timestamp()) if moment else 0,
                )
            )

    @classmethod
    def load(cls, home: Path) -> Forgotten:
        """Return the forgotten texts of a home."""
        return cls(decisions.forgotten(home))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __contains__(self, text: str) -> bool:
        return self.forgotten_at(text) is not None

    def forgotten_at(self, text: str) -> int | None:
        """Return when a text was forgotten; None if it was not."""
        if not self._rules or not text.strip():
            return None
        plain, about = _plain(text), similarity.words(text).about
        return max((rule.at for rule in self._rules if rule.is_this(plain, about)), default=None)

    def forgotten_within(self, text: str) -> int | None:
        """Return when a text inside this one was forgotten: the whole text, a sentence of it, or its exact words; else
        None.
        """
        return max((at for at, _, _ in self._found(text)), default=None)

    def may_hold(self, text: str) -> bool:
        """Say whether a text may contain something forgotten; a cheap test before the exact ones."""
        return bool(self._near(text))

    def without_forgotten(self, text: str, instead: str = "") -> str:
        """Return a text without its forgotten parts; `instead` if nothing else is left."""
        spans = sorted({(start, end) for _, start, end in self._found(text)})
        if not spans:
            return text
        kept: list[str] = []
        place = 0
        for start, end in spans:
            kept.append(text[place : max(place, start)])
            place = max(place, end)
        left = "".join([*kept, text[place:]])
        return left if left.strip(" \n\t.,;:!?\"'`-") else instead

    def _near(self, text: str) -> list[_Rule]:
        if not self._rules or not text:
            return []
        about = _roughly_about(text)
        return [rule for rule in self._rules if rule.may_be_in(about)]

    def _found(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield when something was forgotten that a text holds, and where it stands."""
        rules = self._near(text)
        if not rules:
            return
        for start, end in _parts(text):
            part = text[start:end]
            plain, about = _plain(part), similarity.words(part).about
            yield from ((rule.at, start, end) for rule in rules if rule.is_this(plain, about))
        for rule in rules:
            yield from ((rule.at, start, end) for start, end in rule.places(text))


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the lines of a text stand, and the sentences in them."""
    begin = 0
    for line in text.split("\n"):
        end = begin + len(line)
        if line.strip():
            yield begin, end
            place = begin
            for part in split(line):
                found = text.find(part, place, end)
                if found >= 0:
                    place = found + len(part)
                    yield found, place
        begin = end + 1


def decision(texts: Iterable[str]) -> dict[str, Any]:
    """Return the decision that keeps texts from being learned again; no word can be read back from it."""
    salt = secrets.token_hex(8)
    known = list(dict.fromkeys(text for text in texts if _plain(text)))
    return {
        "salt": salt,
        "hashes": sorted({_hash(salt, _plain(text)) for text in known}),
        "words": [sorted(_hash(salt, word) for word in similarity.words(text).about) for text in known],
        "sizes": sorted({len(_plain(text).split(" ")) for text in known}),
    }


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a text as they are compared, and where each stands."""
    for found in _TOKEN.finditer(text):
        bare = found[0].strip(_EDGES)
        if bare:
            start = found.start() + found[0].index(bare)
            yield bare.lower(), start, start + len(bare)


def _plain(text: str) -> str:
    return " ".join(word for word, _, _ in _tokens(text))


def _hash(salt: str, text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), key=salt.encode(), digest_size=_BYTES).hexdigest()


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    return similarity.stem(word.strip("'.:"))


def _roughly_about(text: str) -> frozenset[str]:
    """Return at least the words that a text, or any part of it, is about; far cheaper than telling which those are."""
    if _HAN.search(text):
        return similarity.words(text).about
    return frozenset(map(_stem, set(_WORD.findall(text.lower().replace("’", "'")))))
