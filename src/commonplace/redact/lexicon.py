"""Finding the words that rules look for, all in one pass over a text.

Rules are anchored: each begins at a word, such as `password` or `curl`. There are several hundred anchors, and most do
not occur in a text. Texts of sessions consist of few different words: what a blank ends, or a comma, which belongs to
its word and makes words in JSON without blanks, too. So each different word is looked at once, and what it holds is
remembered. Words that are new are put together and looked through for all anchors at once, with an automaton of Aho and
Corasick, whose cost does not depend on the number of anchors. Nothing that is looked for in a word has a comma.

What a word holds does not depend on its surroundings: anchors; names that promise a secret (`names`); credentials that
show by themselves (`tokens`); and marks, which are for rules that no plain word announces.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, filterfalse
from typing import Any, Final, NamedTuple, TypeVar, cast

import ahocorasick

from commonplace.patterns import regex
from commonplace.redact import names, tokens
from commonplace.redact.names import Rank
from commonplace.redact.spans import SecretSpan

_PIECE: Final = 1 << 18
"""So many bytes are cut into words at once, which bounds memory."""
_REMEMBERED: Final = 1 << 17
"""So many words are remembered, about 15 MB, before remembering begins anew."""
_LONGEST_WORD: Final = 128
"""Longer words hardly come again, and are not remembered."""
_SHORT_WORD: Final = 4
"""Shorter words are too frequent to tell that an anchor of several words occurs."""
_ONE_BYTE: Final = "latin-1"
"""The automaton reads text; so each byte becomes one letter."""
_FREQUENT: Final = b' "etsnaiorcd:ulp,/-\\m1g2f0hb4_3'
_RARITY: Final = [_FREQUENT.find(one) % 256 for one in range(256)]
"""The automaton compares a letter with those that may follow, in the order in which anchors were added to it."""
_WORD: Final = regex(rb"\S+")
_BLANK: Final = regex(rb"\s")
_BLANKS: Final = b" \t\n\r\v\f"
_ENDS: Final = _BLANKS + b","

Row = TypeVar("Row")


class Contents:
    """What a word holds, with places in the word."""

    __slots__ = ("anchors", "marks", "names", "parts", "tokens")

    def __init__(self) -> None:
        self.anchors: list[tuple[bytes, int]] = []
        self.parts: list[tuple[bytes, int]] = []
        """Anchors that reach over a blank, and where they begin if they are there."""
        self.names: list[tuple[int, int]] = []
        """Where key-like parts of names begin and end."""
        self.tokens: list[SecretSpan] = []
        self.marks: set[str] = set()


class Mark(NamedTuple):
    """An expression for words that a rule looks at; words have a blank before and behind them."""

    name: str
    word: re.Pattern[bytes]


class _Gate(NamedTuple):
    """An anchor, and the part of it that one word must have, with a blank where the word must begin or end."""

    anchor: bytes
    length: int
    """The length of the part, with its blanks."""
    lead: int
    """Whether there is a blank before the part."""
    offset: int
    """Where in the anchor the part stands, without that blank."""
    is_whole: bool
    """Whether the anchor has no blank, so that its part is all of it."""
    is_anchor: bool
    is_prefix: bool
    is_name: bool


class _Memory:
    """The words that were looked at: those that hold nothing, and what the others hold.

    It is replaced and never emptied, because somebody else may be reading it.
    """

    def __init__(self) -> None:
        self.empty: set[bytes] = set()
        self.held: dict[bytes, Contents] = {}


class Lexicon:
    """The anchors and marks of all rules, and what is known of words."""

    def __init__(self, anchors: Iterable[bytes], marks: Iterable[Mark]) -> None:
        self.anchors: Final = frozenset(anchors)
        self._marks: Final = tuple(marks)
        self._prefixes: Final = tokens.prefixes()
        gates: dict[bytes, list[_Gate]] = {}
        for anchor in sorted({*self.anchors, *names.PARTS, *self._prefixes}):
            part, gate = self._gate(anchor)
            gates.setdefault(part, []).append(gate)
        automaton = cast("Any", ahocorasick).Automaton()
        for part in sorted(gates, key=lambda part: [_RARITY[one] for one in part]):
            automaton.add_word(part.decode(_ONE_BYTE), tuple(gates[part]))
        automaton.make_automaton()
        self._hits: Final = cast("Callable[[str], Iterator[tuple[int, tuple[_Gate, ...]]]]", automaton.iter)
        """Returns each part in a text, with the place of its last letter."""
        self._memory = _Memory()

    def _gate(self, anchor: bytes) -> tuple[bytes, _Gate]:
        """Return the part of an anchor that is looked for, and the anchor's gate."""
        uses = anchor in self.anchors, anchor in self._prefixes, anchor in names.PARTS
        if anchor.split() == [anchor]:
            return anchor, _Gate(anchor, len(anchor), 0, 0, True, *uses)
        part = max(_WORD.finditer(anchor), key=lambda found: (not _is_short(found[0]), len(found[0])))
        begins, ends = part.start() > 0, part.end() < len(anchor)
        bounded = (b" " if begins else b"") + part[0] + (b" " if ends else b"")
        return bounded, _Gate(anchor, len(bounded), int(begins), part.start(), part[0] == anchor, *uses)

    def holding(self, words: list[bytes]) -> list[tuple[bytes, Contents]]:
        """Return those of some words that hold something, in their order, with what they hold."""
        memory = self._memory
        held = memory.held
        left = list(filterfalse(memory.empty.__contains__, words))
        new = set(filterfalse(held.__contains__, left))
        if new:
            found = self.learn(new)
            short = {word for word in new if len(word) <= _LONGEST_WORD}
            memory.empty |= short.difference(found)
            held.update((word, contents) for word, contents in found.items() if word in short)
            if len(memory.empty) + len(held) > _REMEMBERED:
                self._memory = _Memory()
            if not found.keys() <= short:
                held = {**held, **found}
        return [(word, held[word]) for word in filter(held.__contains__, left)]

    def learn(self, words: Iterable[bytes], *, cut: bool = False) -> dict[bytes, Contents]:
        """Look at words; `cut` says that the beginning of the first is missing."""
        ordered = list(words)
        data = b" ".join((b"", *ordered, b""))
        found = _Holders(ordered)
        prefixes: list[tuple[bytes, int]] = []
        for last, gates in self._hits(data.lower().decode(_ONE_BYTE)):
            for gate in gates:
                at = last + 1 - gate.length + gate.lead
                if gate.is_prefix:
                    prefixes.append((gate.anchor, at))
                    if tokens.may_go_on(data, at):
                        found.at(at).marks.add(tokens.MAY_GO_ON)
                if gate.is_name and names.rank(names.around(data, at, last + 1)) is not Rank.NONE:
                    found.at(at).names.append((at - found.begin, last + 1 - found.begin))
                if gate.is_anchor:
                    held = found.at(at)
                    place = at - gate.offset - found.begin
                    (held.anchors if gate.is_whole else held.parts).append((gate.anchor, place))
        for span in tokens.find(data, prefixes, cut=cut):
            found.at(span.start).tokens.append(span.moved(-found.begin))
        for mark in self._marks:
            for part in mark.word.finditer(data):
                found.at(part.start()).marks.add(mark.name)
        return found.by_word()


class _Holders:
    """What words hold that stand in data with a blank before and behind each."""

    def __init__(self, words: list[bytes]) -> None:
        self._words = words
        self._begins = list(accumulate(map((1).__add__, map(len, words)), initial=1))
        self._found: defaultdict[int, Contents] = defaultdict(Contents)
        self.begin = 0

    def at(self, place: int) -> Contents:
        """Return the contents of the word that has a place; `begin` is where it begins."""
        number = bisect_right(self._begins, place) - 1
        self.begin = self._begins[number]
        return self._found[number]

    def by_word(self) -> dict[bytes, Contents]:
        """Return the words that hold something."""
        return {self._words[number]: held for number, held in self._found.items()}


def _is_short(word: bytes) -> bool:
    return (word.isalpha() and len(word) < _SHORT_WORD) or word == b'"'


class Text:
    """A text that is scanned: its bytes, and what its words hold. `cut` says that its beginning is missing."""

    def __init__(self, data: bytes, lexicon: Lexicon, *, cut: bool = False) -> None:
        self.data: Final = data
        self.names: Final[list[tuple[int, int]]] = []
        """Where key-like parts of names begin and end."""
        self.tokens: Final[list[SecretSpan]] = []
        """The credentials that show by themselves."""
        self._lexicon: Final = lexicon
        self._places: Final[defaultdict[bytes, list[int]]] = defaultdict(list)
        self._marked: Final[defaultdict[str, list[tuple[int, int]]]] = defaultdict(list)
        at = 0
        if cut and (first := _WORD.match(data)):
            at = first.end()
            for contents in lexicon.learn([first[0]], cut=True).values():
                self._take(contents, 0, at)
        while at < len(data):
            blank = _BLANK.search(data, at + _PIECE)
            end = blank.end() if blank else len(data)
            self._read(at, end)
            at = end

    def _read(self, at: int, end: int) -> None:
        """Take in the words of a piece of the data."""
        for word, held in self._lexicon.holding(self.data[at:end].replace(b",", b", ").split()):
            at = _next(self.data, word, at, end)
            self._take(held, at, at + len(word))
            at += len(word)

    def _take(self, held: Contents, at: int, end: int) -> None:
        for anchor, offset in held.anchors:
            self._places[anchor].append(at + offset)
        for anchor, offset in held.parts:
            place = at + offset
            if place >= 0 and self.data[place : place + len(anchor)].lower() == anchor:
                self._places[anchor].append(place)
        for mark in held.marks:
            self._marked[mark].append((at, end))
        for begin, behind in held.names:
            self.names.append((begin + at, behind + at))
        for span in held.tokens:
            self.tokens.append(span.moved(at))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that a rule begins with."""
        return not (self._places or self._marked or self.names or self.tokens)

    def has(self, anchors: frozenset[bytes], marks: frozenset[str] = frozenset()) -> bool:
        """Return whether one of some anchors occurs, in whatever case, or a word with one of some marks."""
        return not (anchors.isdisjoint(self._places) and marks.isdisjoint(self._marked))

    def among(self, table: Mapping[bytes, tuple[Row, ...]]) -> list[Row]:
        """Return the rows of a table whose anchors occur."""
        return [row for anchor in self._places if anchor in table for row in table[anchor]]

    def places(self, anchor: bytes) -> list[int]:
        """Return where an anchor stands, in whatever case; it is given in lower case."""
        if anchor not in self._lexicon.anchors:
            raise KeyError(anchor)
        return self._places.get(anchor, [])

    def exact(self, anchor: bytes) -> list[int]:
        """Return where an anchor stands as it is given."""
        return [at for at in self.places(anchor.lower()) if self.data.startswith(anchor, at)]

    def marked(self, mark: str) -> list[tuple[int, int]]:
        """Return where the words begin and end that have a mark."""
        return self._marked.get(mark, [])


def _next(data: bytes, word: bytes, at: int, end: int) -> int:
    """Return where a word stands next, between blanks and commas; it is known to be there."""
    at = data.index(word, at, end)
    behind = at + len(word)
    open_ended = word[-1] == 0x2C
    while (at and data[at - 1] not in _ENDS) or not (open_ended or behind >= len(data) or data[behind] in _BLANKS):
        at = data.index(word, at + 1, end)
        behind = at + len(word)
    return at


def by_anchor(rows: Iterable[Row], anchor: Callable[[Row], bytes]) -> Mapping[bytes, tuple[Row, ...]]:
    """Arrange rows by their anchors, in lower case."""
    table: dict[bytes, tuple[Row, ...]] = {}
    for row in rows:
        key = anchor(row).lower()
        table[key] = (*table.get(key, ()), row)
    return table
