"""Numbers about a sentence, its message and what happened around it: the input of the judge.

`measure` gives all that one message tells. `PersonHabits` adds what only many sessions of one person tell: how long
and how carefully they write, and what they ask for again and again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Final

import msgspec

from commonplace.learning.lasting import acts, handwriting
from commonplace.learning.lasting.acts import Act, word_set
from commonplace.learning.lasting.authors import Author, Stretch
from commonplace.learning.lasting.own_sentences import OwnSentence, own_sentences
from commonplace.learning.reading.cues import likely_languages
from commonplace.memory.lessons import WritingSample
from commonplace.patterns import regex

_AGREES: Final = regex(
    r"(?i)\b(?:you'?re (?:absolutely |completely |totally )?(?:right|correct)"
    r"|good (?:point|catch|idea|call|thinking|question)|great (?:point|catch|idea|question)"
    r"|that'?s (?:a )?(?:good|great|fair|right|correct|better|much)|makes sense|agreed|fair (?:point|enough)|absolutely"
    r"|excellent|exactly|got it|understood|sorry|apolog\w+|my mistake)\b"
)
_DONE: Final = regex(r"(?i)(?:done|committed|pushed|created|draft pr|pr )")
_BEGINS: Final = regex(r"(?i)(?:let me|i'll|now)")
_YES_OR_NO: Final = regex(r"(?i)(?:yes|no|correct|right)\b")
_LISTED: Final = regex(r"(?m)^[ \t]*(?:\d[.)]|[-*]) ")
_HEADED: Final = regex(r"(?m)^#{1,9} |\*\*")
_LETTERS: Final = regex(r"[a-z][a-z'-]+")
_NAME_LIKE: Final = regex(
    r"`[^`]*`|(?<!\S)\S*[/_]\S*|(?<!\S)\S+\.\w{1,4}\b|https?://\S+|\b\w*[a-z][A-Z]\w*\b|\b[0-9a-f]{7,}\b|#\d+"
    r"|\b[A-Z]+-\d+\b"
)
_REPLY: Final = 300
"""So much of the agent's next words tells how it took a message."""
_SHORT_REQUEST: Final = 16
_BARE_REQUEST: Final = 8
"""How many words a request about the flow of work has at most; without a verb fewer."""
_SHORT: Final = 5
_LONG: Final = 12
_TELLING: Final = 6
STRONG_HABIT: Final = 1.5
"""The same wish in three sessions or more."""
_FOREIGN_HAND: Final = -2.0
"""The score of handwriting for other languages, which look like nothing that its model knows."""
_ENGLISH: Final = 0.12
"""A text with a smaller share of English function words is in another language."""
_REQUESTS: Final = frozenset({"imp", "canyou", "canwe", "lets", "dont", "always"})
_WISHES: Final = frozenset({"why", "shouldwe", "canwe", "whatif"})


class Surroundings(msgspec.Struct, frozen=True):
    """What stood around a message."""

    is_refusal: bool = False
    """It was said in refusing a tool call."""
    position: int = 0
    """How many messages of the person came before it in the session."""
    count: int = 1
    """How many messages of the person the session has."""
    was_stopped: bool = False
    """The person had just interrupted the agent."""
    previous: str = ""
    """The person's message before it."""
    reply: str = ""
    """What the agent said next."""
    has_edited: bool = False
    """The agent changed a file before the next message."""
    is_idle: bool = False
    """The agent called no tool before the next message."""


class MeasuredSentence(msgspec.Struct):
    """One sentence of a person with all that its message tells about it."""

    sentence: OwnSentence
    tokens: list[str]
    hand: float
    """How much it looks like the prose of a machine."""
    features: dict[str, float]
    is_request: bool
    """It is a short request about the flow of work: commits, reviews, tickets, tests."""
    extras: frozenset[str]
    """Stems of what it says beyond the bare words of such requests."""

    @property
    def size(self) -> float:
        """Its length, as the judge sees it."""
        return math.log1p(len(self.tokens))


def measure(
    text: str, stretches: list[Stretch], around: Surroundings, hand_weights: Mapping[str, float]
) -> list[MeasuredSentence]:
    """Return the person's own sentences of a message, measured."""
    sentences = own_sentences(text, stretches)
    tokens = [acts.words(sentence.text) for sentence in sentences]
    shapes = [acts.shape(sentence.text) for sentence in sentences]
    is_english = _is_english(text, [token for each in tokens for token in each])
    hands = [
        handwriting.score(hand_weights, sentence.text, shape) if is_english else _FOREIGN_HAND
        for sentence, shape in zip(sentences, shapes, strict=True)
    ]
    own = sum(len(sentence.text) for sentence in sentences) + max(0, len(sentences) - 1)
    surroundings = _around(around)
    message = _Message(
        features=surroundings | {"own:share": own / max(1, len(text))},
        around=around,
        agrees="aft:right" in surroundings,
        is_beside_paste=any(stretch.author is Author.PASTED for stretch in stretches),
        hand=_mean(zip(hands, tokens, strict=True)),
        line_hands=_line_means(sentences, hands, tokens),
    )
    return [_measured(message, *row) for row in zip(sentences, tokens, shapes, hands, strict=True)]


class _Message(msgspec.Struct):
    """What all sentences of a message share."""

    features: dict[str, float]
    around: Surroundings
    agrees: bool
    """The agent said that the person is right."""
    is_beside_paste: bool
    hand: float
    line_hands: dict[int, float]


def _is_english(text: str, tokens: list[str]) -> bool:
    if len(tokens) < _TELLING:
        languages = likely_languages(text)
        return not languages or "en" in languages
    return sum(token in word_set("function") for token in tokens) >= _ENGLISH * len(tokens)


def _mean(rows: Iterable[tuple[float, list[str]]]) -> float:
    """Return the mean of hand scores, each as heavy as its sentence is long."""
    total = weight = 0
    for hand, tokens in rows:
        total += hand * len(tokens)
        weight += len(tokens)
    return total / max(1, weight)


def _line_means(sentences: list[OwnSentence], hands: list[float], tokens: list[list[str]]) -> dict[int, float]:
    by_line: defaultdict[int, list[tuple[float, list[str]]]] = defaultdict(list)
    for sentence, hand, words in zip(sentences, hands, tokens, strict=True):
        by_line[sentence.line].append((hand, words))
    return {line: _mean(rows) for line, rows in by_line.items()}


def _around(around: Surroundings) -> dict[str, float]:
    """Return the features of a message's surroundings that are not zero."""
    reply = around.reply.strip()[:_REPLY]
    found = {
        "ctx:refusal": around.is_refusal,
        "ctx:pos": math.log1p(around.position),
        "ctx:first": around.position == 0,
        "ctx:count": math.log1p(around.count),
        "ctx:stopped": around.was_stopped,
        "ctx:prevq": "?" in around.previous,
        "aft:right": _AGREES.search(reply) is not None,
        "aft:len": math.log1p(len(around.reply)),
        "aft:done": _DONE.match(reply) is not None,
        "aft:let": _BEGINS.match(reply) is not None,
        "aft:yesno": _YES_OR_NO.match(reply) is not None,
        "aft:q": "?" in reply,
        "aft:none": not reply,
        "aft:list": _LISTED.search(reply) is not None,
        "aft:head": _HEADED.search(reply) is not None,
    }
    return {name: float(value) for name, value in found.items() if value}


def _measured(
    message: _Message, sentence: OwnSentence, tokens: list[str], shape: list[str], hand: float
) -> MeasuredSentence:
    act = acts.act(sentence.text)
    is_request = _is_request(sentence.text, tokens, act)
    extras = _extras(sentence.text, tokens, is_request=is_request)
    line = message.line_hands[sentence.line]
    found = message.features | {f"act:{act.mode}": 1.0, f"act:o_{act.object}": 1.0}
    found |= {"len:s": math.log1p(len(tokens)), "own:hand": hand, "own:line": line, "own:msg": message.hand}
    found |= _shape_shares(shape)
    if line > 0 and len(tokens) >= _TELLING:
        found["own:linepos"] = line
    topics = len(acts.practice(tokens))
    if topics:
        found["pra:n"] = float(topics)
    if is_request:
        found["hab:n"] = math.log1p(len(extras))
    signs = _signs(message, sentence, act, len(tokens)) | _joint_signs(message, act, len(tokens), bool(topics))
    signs |= {"hab:flow": is_request, "hab:bare": is_request and not extras}
    found |= {name: 1.0 for name, is_there in signs.items() if is_there}
    return MeasuredSentence(sentence, tokens, hand, found, is_request, extras)


def _shape_shares(shape: list[str]) -> dict[str, float]:
    names = function = plurals = capitals = 0
    for piece in shape:
        if piece in word_set("function"):
            function += 1
        elif piece in acts.NAMES:
            names += 1
        elif piece == "<s>":
            plurals += 1
        elif piece in ("<Cap>", "<CAP>"):
            capitals += 1
    size = len(shape) or 1
    counts = (("ids", names), ("fn", function), ("pl", plurals), ("cap", capitals))
    return {f"shp:{name}": count / size for name, count in counts}


def _signs(message: _Message, sentence: OwnSentence, act: Act, length: int) -> dict[str, bool]:
    """Return which signs a sentence has by itself."""
    return {
        "act:verb": bool(act.verb),
        "act:tagq": act.question == "tagq",
        "act:q": act.question == "q",
        "act:no": act.leads_with_no,
        "act:yes": act.leads_with_yes,
        "act:lookverb": act.verb in word_set("looking"),
        "act:gitverb": act.verb in word_set("git"),
        "act:keepverb": act.verb in word_set("keeping"),
        "len:short": length < _SHORT,
        "shp:up": sentence.text[:1].isupper(),
        "shp:dot": sentence.text.endswith("."),
        "shp:bul": sentence.is_bullet,
        "own:pasted": message.is_beside_paste,
    }


def _joint_signs(message: _Message, act: Act, length: int, is_practice: bool) -> dict[str, bool]:
    """Return which signs a sentence has together with what happened around it."""
    around, agrees, asks = message.around, message.agrees, bool(act.question)
    is_wish, looks = act.mode in _WISHES, act.verb in word_set("looking")
    return {
        "int:q_edit": asks and around.has_edited,
        "int:q_none": asks and around.is_idle,
        "int:q_right": asks and agrees,
        "int:st_none": not asks and around.is_idle,
        "int:st_edit": not asks and around.has_edited,
        "int:st_right": not asks and agrees,
        "int:refq": asks and around.is_refusal,
        "int:prac_req": is_practice and (is_wish or act.mode in ("imp", "canyou", "lets")),
        "int:prac_q": is_practice and asks,
        "int:why_right": is_wish and (agrees or around.has_edited),
        "int:long_noq": length >= _LONG and not asks,
        "int:look_q": looks and asks,
    }


def _is_request(text: str, tokens: list[str], act: Act) -> bool:
    """Say whether a sentence is a short request about commits, reviews, issues, tests."""
    if len(tokens) > _SHORT_REQUEST or (word_set("flow").isdisjoint(tokens) and "pull request" not in text.lower()):
        return False
    is_bare = len(tokens) <= _BARE_REQUEST and not act.question and act.mode in ("frag", "want")
    return act.mode in _REQUESTS or is_bare


def _extras(text: str, tokens: list[str], *, is_request: bool) -> frozenset[str]:
    words = _LETTERS.findall(_NAME_LIKE.sub(" ", text.replace("’", "'")).lower()) if is_request else tokens
    return frozenset(acts.stem(word) for word in words if len(word) > 2 and word not in word_set("bare"))


class PersonHabits:
    """How one person writes, and what they ask for again and again, over all their sessions."""

    def __init__(self) -> None:
        self._hands: list[float] = []
        self._sizes: list[float] = []
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        self._other: defaultdict[str, set[str]] = defaultdict(set)
        self._middle: tuple[float, float] | None = None

    def add(self, session: str, sample: WritingSample) -> None:
        """Count one sentence of the person."""
        self._hands.append(sample.hand)
        self._sizes.append(sample.size)
        self._middle = None
        for stem in sample.extras:
            (self._asked if sample.is_request else self._other)[stem].add(session)

    def habit(self, extras: Iterable[str]) -> tuple[float, str]:
        """Return how strong a habit a request shows, and the stem of the word that shows it."""
        counts = ((stem, len(self._asked[stem])) for stem in extras if stem in self._asked)
        shown = (
            (math.log2(count) * count / (count + len(self._other.get(stem, ()))), stem)
            for stem, count in counts
            if count > 1
        )
        return max(shown, default=(0.0, ""))

    def features(self, sample: WritingSample) -> dict[str, float]:
        """Return the features of a sentence that depend on who said it."""
        if self._middle is None:
            self._middle = (median(self._hands or [sample.hand]), median(self._sizes or [sample.size]))
        found = {"own:rel": sample.hand - self._middle[0], "len:rel": sample.size - self._middle[1]}
        if sample.is_request:
            strength, _ = self.habit(sample.extras)
            found["hab:score"] = strength
            if strength >= STRONG_HABIT:
                found["hab:strong"] = 1.0
        return found
