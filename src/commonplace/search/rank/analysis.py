"""Analysis: a text becomes terms, in the same way for documents and for queries.

A text falls into chunks (`src/auth.py`, `don't`, `parseHTML`), a chunk into terms: its parts, the humps of a part in
camel case, and the whole chunk, so that an identifier is found by all of it and by any piece of it. Words are stemmed,
function words dropped. Scripts that write without spaces are cut into pairs of characters.

A term is known by 64 bits of its hash and nothing else: keys sort, pack into arrays, and do not spell out in a database
what somebody said. What a chunk means is worked out once; the vocabulary pays for it, not the text.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, Final, cast

from commonplace import package_files
from commonplace.patterns import regex

VERSION: Final = 1
"""Of the rules here: postings that were made by others are made again."""

_ASCII: Final = regex(r"[A-Za-z0-9]+(?:[_'.\-/:][A-Za-z0-9]+)*")
_ANY: Final = regex(r"[^\W_]+(?:[_'’.\-/:][^\W_]+)*")
_PARTS: Final = regex(r"[^\W_]+(?:['’][^\W_]+)*")
_HUMPS: Final = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PAIRED: Final = regex(
    "[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]+"
)
"""Han, kana and hangul: written without spaces, or with endings that are no words of their own."""
_YEAR: Final = regex(r"(?:19|20)\d\d(?:[-/.:].*)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}", re.DOTALL)
_LONGEST_PART: Final = 64
"""Longer parts are data and give no terms."""
_LONGEST_CHUNK: Final = 160
"""What is longer is no word but data: a hash, a key, an encoded file."""
_MOST_CHUNKS: Final = 400_000
"""How many chunks an analyser remembers."""


@cache
def _words(name: str) -> frozenset[str]:
    text = package_files.text("search/rank/words.toml")
    return frozenset(tomllib.loads(text)[name].split())


@cache
def _stemmer() -> Callable[[str], str]:
    # The package's front door imports all its languages; this needs one of them.
    from snowballstemmer.english_stemmer import EnglishStemmer

    return cast("Any", EnglishStemmer()).stemWord


def key(term: str) -> int:
    """Return what a term is known by."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


class Analyser:
    """Turns texts into terms, and remembers what it worked out."""

    def __init__(self) -> None:
        self._chunks = _Chunks()

    def chunks(self, text: str) -> Iterator[int]:
        """Yield the number of each chunk of a text."""
        pattern = _ASCII if text.isascii() else _ANY
        return map(self._chunks.__getitem__, pattern.findall(text))

    @property
    def keys(self) -> array[int]:
        """The terms of all chunks, one chunk after the other."""
        return self._chunks.terms

    @property
    def ends(self) -> array[int]:
        """Where each chunk's terms end in `keys`."""
        return self._chunks.ends

    @property
    def dated(self) -> bytearray:
        """For each chunk, whether it tells when something was."""
        return self._chunks.dated

    def is_full(self) -> bool:
        """Say whether it remembers so much that a new one should be used."""
        return len(self._chunks.ends) > _MOST_CHUNKS


class _Chunks(dict[str, int]):
    """Chunk → its number; a new one is worked out."""

    def __init__(self) -> None:
        super().__init__()
        self.terms: array[int] = array("Q")
        self.ends: array[int] = array("I")
        self.dated = bytearray()
        self._known: dict[str, int] = {}

    def __missing__(self, chunk: str) -> int:
        known = self._known
        for term in _terms(chunk, single=True):
            found = known.get(term)
            if found is None:
                found = known[term] = key(_stem(term))
            self.terms.append(found)
        number = self[chunk] = len(self.ends)
        self.ends.append(len(self.terms))
        self.dated.append(chunk.lower() in _words("dated") or bool(_YEAR.fullmatch(chunk)))
        return number


@lru_cache(4096)
def _asked(term: str) -> int:
    return key(_stem(term))


def query_terms(text: str) -> dict[str, int]:
    """Return the terms of a question with their keys, each once, in the order of the text."""
    found: dict[int, str] = {}
    for chunk in _ANY.findall(text):
        for term in _terms(chunk, single=False):
            found.setdefault(_asked(term), term)
    return {term: number for number, term in found.items()}


def _terms(chunk: str, *, single: bool) -> Iterator[str]:
    """Yield the terms of a chunk; `single` characters of paired scripts are for what is searched, pairs for both."""
    if chunk.endswith(("'s", "’s", "'S", "’S")):
        chunk = chunk[:-2]
    parts = _PARTS.findall(chunk) if len(chunk) > 1 else [chunk]
    for part in parts:
        if len(part) <= _LONGEST_PART or not part.isascii():
            yield from _of_part(part, single=single)
    if len(parts) > 1 and len(chunk) <= _LONGEST_CHUNK:
        yield "_".join(parts).lower()


def _of_part(part: str, *, single: bool) -> Iterator[str]:
    if not part.isascii():
        yield from _of_foreign(part, single=single)
        return
    whole = part.lower()
    if whole in _words("stop"):
        return
    yield whole
    if whole != part or not part.isalpha():
        humps = _HUMPS.findall(part)
        if len(humps) > 1:
            for hump in humps:
                lowered = hump.lower()
                if (len(hump) > 1 or hump.isdigit()) and lowered != whole and lowered not in _words("stop"):
                    yield lowered


def _of_foreign(part: str, *, single: bool) -> Iterator[str]:
    """Yield the terms of a part that is not plain ASCII: pairs of characters, or a word without its accents."""
    text = unicodedata.normalize("NFKC", part).lower().replace("’", "'")
    begin = 0
    for found in _PAIRED.finditer(text):
        yield from _of_word(text[begin : found.start()])
        run = found[0]
        if len(run) == 1 or single:
            yield from run
        for place in range(len(run) - 1):
            yield run[place : place + 2]
        begin = found.end()
    yield from _of_word(text[begin:])


def _of_word(word: str) -> Iterator[str]:
    if not word or len(word) > _LONGEST_PART:
        return
    plain = "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
    if plain and plain not in _words("stop"):
        yield plain


def _stem(term: str) -> str:
    """Return the stem of an English word; identifiers, numbers and other scripts stay as they are."""
    if len(term) < 3 or not term.isascii() or not term.replace("'", "").isalpha():
        return term
    return _stemmer()(term)
