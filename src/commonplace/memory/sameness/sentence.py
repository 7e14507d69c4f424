"""Reading a sentence into what it is compared by: tokens, denials, order, and signs that something changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec

from commonplace.memory.sameness import clauses, lexicon
from commonplace.memory.sameness.lexicon import Language
from commonplace.patterns import regex

Kind = Literal["code", "path", "number", "name", "word"]
_UNIT: Final = regex(
    r"`(?P<code>[^`]{1,200})`|(?P<han>[\u3400-\u9fff]+)|(?P<run>(?:(?![\u3400-\u9fff])[\w'./:@*+#~-])+)"
    r"|(?P<sign>[;!?,。；：！？，、→])"
)
_FILE: Final = regex(r"[\w-]+\.(?:[a-z]{1,4}|json|toml|yaml|lock)")
_FLAG: Final = regex(r"--?[A-Za-z][\w-]*")
_NUMBER: Final = regex(r"\d+(?:[.:]\d+)*")
_WORD: Final = regex(r"[^\W_][\w'+#-]*|_\w+")
_TRAILING: Final = ".:'*"
_SEGMENT_END: Final = frozenset(".;:!?。；：！？→")
_CLAUSE_END: Final = _SEGMENT_END | frozenset(",，、")
_NAME: Final = regex(r"\d|_|[^\W\d_][A-Z]|#|\+")
_ENCLITICS: Final = ("los", "las", "les", "nos", "me", "te", "lo", "la", "le", "se")
_PARTICIPLE: Final = regex(r"(ein|aus|auf|an|ab|zu|um|vor|nach|mit|hin|her)ge(\w{3,})")
_FRENCH_ONLY: Final = regex(r"\bn(?:e |')(\S{1,30}(?: \S{1,30})?) qu(?:e |')")
_FRENCH_PRONOUN: Final = regex(r"-(?:moi|toi|le|la|les|nous|vous|y|en)\b")
_ACCENTS: Final = str.maketrans("áéíóú", "aeiou")
_FRENCH_DENIAL: Final = frozenset({"ne", "n"})
_NEIGHBOURS: Final = 3
"""In Chinese so many tokens before the word for *before* are what comes later."""


class _Unit(NamedTuple):
    """A piece of a sentence as it is written."""

    text: str
    """In lower case."""
    kind: Kind | Literal["sign"]
    is_capital: bool
    at: int


class Token(msgspec.Struct, frozen=True):
    """A word, name, number, path or command that says what a lesson is about."""

    text: str
    kind: Kind
    idea: str
    """The idea that the word stands for, or nothing."""
    stem: str
    segment: int
    is_ruled_out: bool
    """The sentence says that something else is wanted instead."""
    place: int
    """Its number among the tokens."""

    @property
    def is_hard(self) -> bool:
        """Whether it stands for one thing only: a command, a path, a number, a name."""
        return self.kind != "word"

    @property
    def is_weak(self) -> bool:
        """Whether it may be missing in a lesson that says the same."""
        return not self.is_hard and not lexicon.weak().isdisjoint((self.idea, self.text))

    @property
    def is_light(self) -> bool:
        """Whether it is a verb that may be missing where nothing else is."""
        return not self.is_hard and not lexicon.light().isdisjoint((self.idea, self.text))

    @property
    def handle(self) -> str:
        """What a lesson with the same token is found by."""
        return self.idea or (self.text if self.is_hard else self.stem)


class OrderMark(NamedTuple):
    """A word that puts one thing before or after another, and the tokens behind it."""

    is_before: bool
    part: tuple[int, ...]
    """The places of the tokens that it speaks of, in the order of the sentence."""

    @property
    def head(self) -> int | None:
        """The place of the token that it leads to."""
        return self.part[0] if self.part else None


class ComparedSentence(msgspec.Struct, frozen=True):
    """What a sentence is compared by."""

    language: Language
    tokens: tuple[Token, ...]
    denials: tuple[int, ...]
    """How many words deny, for each segment."""
    is_released: bool
    """It says that something need not be done any more."""
    is_conditional: bool
    """A denial asks for something first."""
    is_only: bool
    is_question: bool
    orders: tuple[OrderMark, ...]
    asks_first: bool
    """It says that something comes first."""
    is_sequence: bool
    """It says what comes first and what then."""
    has_change: bool
    """Something says that it was otherwise before."""
    is_change_faint: bool
    clauses: tuple[str, ...] = ()
    """The texts of its clauses; empty if it has one."""
    is_subordinate: bool = False
    """It says when something else holds, not what."""
    is_reason: bool = False
    """It gives a reason, or tells of the person: it adds nothing that is to be done."""
    keys: frozenset[str] = frozenset()
    """All that its tokens may match by: two sentences of one language that share no key have nothing in common."""
    needed: tuple[tuple[Token, frozenset[str]], ...] = ()
    """The tokens that may not be missing in a sentence that says the same, each with all that it may match by."""

    @property
    def is_negative(self) -> bool:
        """Whether it says that something is not to be, or need not be."""
        return self.is_released or any(self.denials)

    @property
    def handles(self) -> frozenset[str]:
        """What sentences about the same are found by."""
        return frozenset(token.handle for token in self.tokens)


@lru_cache(maxsize=16_384)
def read(text: str) -> ComparedSentence:
    """Return what a sentence is compared by."""
    plain = clauses.without_place(clauses.joined_opener(" ".join(text.replace("’", "'").split())))
    lower = plain.lower()
    language = lexicon.language_of(lower)
    found = _SentenceReader(language, _prepared(plain, language), lower).read()
    keyed = [(token, frozenset(_keys(token, language))) for token in found.tokens]
    return msgspec.structs.replace(
        found,
        clauses=clauses.clauses_of(plain),
        is_subordinate=clauses.is_subordinate(lower),
        is_reason=clauses.is_reason(lower),
        keys=frozenset().union(*(keys for _, keys in keyed)),
        needed=tuple(pair for pair in keyed if not pair[0].is_weak and not pair[0].is_light),
    )


def _keys(token: Token, language: Language) -> Iterator[str]:
    yield token.text
    yield token.stem
    if token.idea:
        yield f"~{token.idea}"
        yield from language.idea_stems.get(token.idea, ())


def _prepared(plain: str, language: Language) -> str:
    """Return the text with phrases joined to words, and without forms that hide a word."""
    if language.code == "fr":
        plain = _FRENCH_PRONOUN.sub("", _FRENCH_ONLY.sub(r"uniquement \1 ", plain))
    lower = plain.lower()
    for phrase, word in language.phrases.items():
        if phrase in lower:
            lower = (plain := re.sub(rf"\b{re.escape(phrase)}\b", word, plain, flags=re.IGNORECASE)).lower()
    return plain


def _units(plain: str, language: Language) -> Iterator[_Unit]:
    """Cut a text into pieces."""
    for found in _UNIT.finditer(plain):
        kind, text, at = str(found.lastgroup), found[found.lastgroup or 0], found.start()
        if kind == "code":
            yield from (_Unit(word.lower(), "code", is_capital=False, at=at) for word in text.split())
        elif kind == "han":
            yield from _cut_han(text, at, language)
        elif kind == "sign":
            yield _Unit(text, "sign", is_capital=False, at=at)
        else:
            yield from _of_run(text, at, language)


def _of_run(text: str, at: int, language: Language) -> Iterator[_Unit]:
    """Yield what stands between blanks: a path, a flag, a number or words, and the mark behind it."""
    bare = text.rstrip(_TRAILING)
    if "/" in bare.strip("/") or "://" in bare or bare.startswith("~") or _FILE.fullmatch(bare):
        yield _Unit(bare.lower(), "path", is_capital=False, at=at)
    elif _FLAG.fullmatch(bare):
        yield _Unit(bare.lower(), "code", is_capital=False, at=at)
    elif _NUMBER.fullmatch(bare):
        yield _Unit(bare, "number", is_capital=False, at=at)
    else:
        for word in _WORD.finditer(bare):
            yield from _words(word[0].rstrip("-'"), at + word.start(), language)
    mark = next((sign for sign in text[len(bare) :] if sign in ".:"), None)
    if mark is not None:
        yield _Unit(mark, "sign", is_capital=False, at=at + len(bare))


def _words(text: str, at: int, language: Language) -> Iterator[_Unit]:
    """Yield the words of a word: French writes articles and denials before an apostrophe."""
    parts = text.split("'") if language.code == "fr" else [text]
    for part in filter(None, parts):
        lower = part.lower()
        if number := language.numbers.get(lower):
            yield _Unit(number, "number", is_capital=False, at=at)
            continue
        if "'" in lower and lower not in language.negators and lower.endswith("'s"):
            lower = lower.removesuffix("'s")
        is_written_so = bool(_NAME.search(part)) or (len(part) > 1 and part.isupper())
        is_name = is_written_so or language.code == "zh" or lower in lexicon.tools()
        known = lower in language.ideas or lower in language.stop or lower in language.negators
        yield _Unit(lower, "name" if is_name and not known else "word", is_capital=part[0].isupper(), at=at)


def _cut_han(text: str, at: int, language: Language) -> Iterator[_Unit]:
    """Cut Chinese into the longest known words, else single characters."""
    place = 0
    while place < len(text):
        size = next((n for n in (6, 5, 4, 3, 2) if text[place : place + n] in language.vocabulary), 1)
        word = text[place : place + size]
        number = language.numbers.get(word)
        yield _Unit(number or word, "number" if number else "word", is_capital=False, at=at + place)
        place += size


class _SentenceReader:
    """Reads one sentence."""

    def __init__(self, language: Language, prepared: str, lower: str) -> None:
        self._language = language
        self._units = list(_units(prepared, language))
        self._prepared = prepared.lower()
        self._lower = lower
        self._tokens: list[Token] = []
        self._denials: list[list[str]] = [[]]
        self._first_denial: list[int | None] = [None]
        self._clause = 0
        self._clauses: list[int] = []
        """The number of the clause of each token."""
        self._marks: list[tuple[bool, int, int]] = []
        """For each word of order: whether it is *before*, how many tokens stand before it, its clause."""
        self._seen: set[str] = set()
        self._is_ruling = False
        self._ruled = 0

    def read(self) -> ComparedSentence:
        """Return what the sentence is compared by."""
        skipped = 0
        for number, unit in enumerate(self._units):
            if number < skipped:
                continue
            skipped = number + self._contrast(number)
            if number >= skipped:
                self._take(number, unit)
        return self._sentence()

    def _contrast(self, number: int) -> int:
        """Begin to rule out at words such as `instead of`; return how many words they are."""
        for phrase in self._language.contrast.get(self._units[number].text, ()):
            if tuple(unit.text for unit in self._units[number : number + len(phrase)]) == phrase:
                self._is_ruling, self._ruled = True, 0
                return len(phrase)
        return 0

    def _take(self, number: int, unit: _Unit) -> None:
        language, text = self._language, unit.text
        if unit.kind == "sign":
            self._end(text)
        elif unit.kind == "word" and text in language.negators:
            self._deny(number, unit)
        elif unit.kind == "word" and text in language.before | language.after:
            self._seen.add("order")
            self._marks.append((text in language.before, len(self._tokens), self._clause))
            self._is_ruling = self._is_ruling and not self._ruled
        elif unit.kind == "word" and text in language.only:
            self._seen.add("only")
        elif unit.kind == "word" and text in language.first:
            self._seen.add("first")
        elif unit.kind == "word" and text in language.then:
            self._seen.add("then")
        else:
            if unit.kind == "word" and text in language.scope and self._ruled:
                self._is_ruling = False
            if unit.kind != "word" or language.is_content(text) or self._is_name(number, unit):
                self._add(number, unit)

    def _end(self, sign: str) -> None:
        if sign in _CLAUSE_END:
            self._is_ruling = False
            self._clause += 1
        if sign in _SEGMENT_END:
            self._denials.append([])
            self._first_denial.append(None)

    def _deny(self, number: int, unit: _Unit) -> None:
        """Count a denial; behind a comma or *and* it says what is not wanted instead."""
        before = self._units[number - 1] if number else None
        is_behind = before is not None and (before.text in ",，" or before.text in self._language.joins)
        if is_behind and not self._is_phrase_first(number):
            self._is_ruling, self._ruled = True, 0
            return
        if self._first_denial[-1] is None:
            self._first_denial[-1] = unit.at
        self._denials[-1].append(unit.text)

    def _is_phrase_first(self, number: int) -> bool:
        """Say whether all before a comma is a place or a time: `In tests, never …`."""
        language = self._language
        if self._units[number - 1].text not in ",，" or any(unit.text in ",，" for unit in self._units[: number - 1]):
            return False
        leads = self._units[0].text in language.scope | language.before | language.after
        return leads and not any(token.idea in lexicon.verbs() for token in self._tokens)

    def _add(self, number: int, unit: _Unit) -> None:
        language, kind = self._language, unit.kind
        assert kind != "sign"
        text = _normal(unit.text, language) if kind == "word" else unit.text
        idea = language.ideas.get(text, "") if kind == "word" else ""
        if kind == "word" and not idea and self._is_name(number, unit):
            kind = "name"
        stem = language.stem(text) if kind in ("word", "name") else text
        token = Token(text, kind, idea, stem, len(self._denials) - 1, self._is_ruling, len(self._tokens))
        self._ruled += self._is_ruling
        if any(_is_repeated(known, token) for known in self._tokens):
            return
        self._tokens.append(token)
        self._clauses.append(self._clause)

    def _is_name(self, number: int, unit: _Unit) -> bool:
        """Say whether a word has a capital inside a sentence, where its language has those for names."""
        starts = number == 0 or self._units[number - 1].text in _SEGMENT_END
        return unit.is_capital and not starts and len(unit.text) > 1 and self._language.code != "de"

    def _sentence(self) -> ComparedSentence:
        language = self._language
        is_conditional = self._conditional()
        change = [found[0].strip() for found in language.change.finditer(self._lower)]
        return ComparedSentence(
            language=language,
            tokens=tuple(self._tokens),
            denials=tuple(0 if is_conditional else _count(words, language) for words in self._denials),
            is_released=language.released.search(self._lower) is not None,
            is_conditional=is_conditional,
            is_only="only" in self._seen,
            is_question=self._lower.rstrip().endswith(("?", "？")),
            orders=tuple(self._order(*mark) for mark in self._marks),
            asks_first="first" in self._seen,
            is_sequence={"first", "then"} <= self._seen,
            has_change=bool(change),
            is_change_faint=all(each in language.faint for each in change),
        )

    def _conditional(self) -> bool:
        """Say whether a denial only asks for something first: `no deploy before the tests pass`."""
        return any(
            at is not None and self._language.condition.search(self._prepared, at + 1) is not None
            for at in self._first_denial
        )

    def _order(self, is_before: bool, count: int, clause: int) -> OrderMark:
        if self._language.code == "zh":
            return OrderMark(is_before, tuple(range(max(0, count - _NEIGHBOURS), count)))
        behind = (place for place in range(count, len(self._tokens)) if self._clauses[place] == clause)
        return OrderMark(is_before, tuple(behind))


def _normal(word: str, language: Language) -> str:
    """Return a word without what hides that it is the same: Spanish pronouns, the *ge* of German participles."""
    if word in language.ideas:
        return word
    if language.code == "es" and (ending := next((each for each in _ENCLITICS if word.endswith(each)), "")):
        bare = word[: -len(ending)]
        return word if (plain := bare.translate(_ACCENTS)) == bare else plain
    if language.code == "de" and (found := _PARTICIPLE.fullmatch(word)):
        return found[1] + found[2]
    return word


def _is_repeated(known: Token, token: Token) -> bool:
    if known.is_ruled_out != token.is_ruled_out:
        return False
    return known.text == token.text or (bool(token.idea) and known.idea == token.idea)


def _count(words: list[str], language: Language) -> int:
    """Return how often a segment denies; French `ne … pas` and Spanish `no … nunca` are one."""
    if language.code == "fr":
        return len([word for word in words if word not in _FRENCH_DENIAL]) or len(words)
    if language.code == "es" and "no" in words and len(words) > 1:
        return len(words) - 1
    return len(words)
