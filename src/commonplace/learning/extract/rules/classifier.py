"""How likely a sentence is to be worth keeping, and as what: a linear model over its words, as data.

Cue words find what people say outright. Much is said sideways: as a fact, a sigh, a story, an answer of six words. For
that, several thousand labelled messages were turned into weights (`training/`, `make classifier`): for each word, pair
of words, cue, verdict of the rules and place in the conversation, how much it speaks for each kind of finding.
Classifying adds up the weights of what is there, so it costs microseconds, gives the same on every machine, and can be
explained word by word.
"""

from __future__ import annotations

import math
import re
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from operator import add
from typing import Final, Literal, get_args

import msgspec

from commonplace.learning.extract.rules.findings import FAILURES, KNOWLEDGE, PREFERENCES, Kind
from commonplace.learning.reading.cues import Cue
from commonplace.learning.reading.sentences import Sentence
from commonplace.memory.similarity import without_ending

Moment = Literal["opening", "answering", "asked", "stopped", "refused"]
"""In a first request, after work was shown, after a question, after a stop, with a refusal."""

NOTHING: Final = "nothing"
KINDS: Final[tuple[Kind, ...]] = (
    "preference", "rule", "environment", "decision", "failure", "verify", "procedure",
)  # fmt: skip
SCALE: Final = 100
"""Weights are whole numbers: hundredths."""
_CUES: Final[tuple[Cue, ...]] = get_args(Cue)
_TOKEN: Final = re.compile(r"[\u3400-\u9fff]|[^\W_]+(?:'[a-z]+)?|[./_-]+|[^\w\s]")
_NUMBER: Final = re.compile(r"\d[\d.]*")
_DIGIT: Final = re.compile(r"\d")
_CODE: Final = re.compile(r"\w[/_]\w|\w\.\w{1,4}\b|--\w")
_NAME: Final = re.compile(r"\b[A-Z]{2,}|[a-z][A-Z]")

_stem = lru_cache(maxsize=8192)(without_ending)


class ClassifierWeights(msgspec.Struct):
    """The weights that were trained on labelled messages."""

    kinds: list[str]
    base: list[int]
    words: dict[str, list[int]]
    made_from: str
    """Hash of the labelled messages."""


class KindProbabilities(msgspec.Struct, frozen=True):
    """The probability of each kind, between 0 and 1."""

    nothing: float
    kinds: dict[Kind, float]

    @property
    def best(self) -> Kind:
        """The likeliest kind of the likeliest section, if it is one at all."""
        section = max((PREFERENCES, KNOWLEDGE, FAILURES), key=self.share)
        return max((kind for kind in KINDS if kind in section), key=lambda kind: (self.kinds[kind], kind))

    def share(self, section: frozenset[Kind]) -> float:
        """Return how likely it is one of some kinds."""
        return sum(share for kind, share in self.kinds.items() if kind in section)


@cache
def weights() -> ClassifierWeights:
    """Return the weights, read once."""
    data = resources.files("commonplace.learning.extract.rules").joinpath("classifier.json").read_bytes()
    return msgspec.json.decode(data, type=ClassifierWeights)


@lru_cache(maxsize=1024)
def classify(own: tuple[Sentence, ...], place: int, moment: Moment, by_cues: Kind | None = None) -> KindProbabilities:
    """Return the probable kinds of a sentence of a message, given what cue words say about it."""
    known = weights()
    total = known.base
    for feature in features(own, place, moment, by_cues):
        row = known.words.get(feature)
        if row is not None:
            total = list(map(add, total, row))
    top = max(total)
    powers = [math.exp((value - top) / SCALE) for value in total]
    whole = sum(powers)
    shares = dict(zip(known.kinds, (power / whole for power in powers), strict=True))
    return KindProbabilities(shares[NOTHING], {kind: shares[kind] for kind in KINDS})


def features(own: tuple[Sentence, ...], place: int, moment: Moment, by_cues: Kind | None = None) -> set[str]:
    """Return the features of a sentence: its words, their neighbours, cues, and its position in the message."""
    sentence = own[place]
    tokens = _tokens(sentence.text)
    stems = [_stem(token) for token in tokens]
    found = {f"m:{stem}" for stem in stems}
    found |= {f"x:{token[:5]}" for token in tokens if len(token) > 5}
    found |= {f"b:{one} {two}" for one, two in pairwise(stems)}
    found |= {f"k:{one} {three}" for one, three in zip(stems, stems[2:], strict=False)}
    found |= {f"s{number}:{token}" for number, token in enumerate(tokens[:3])}
    if place + 1 < len(own):
        found |= {f"n:{token}" for token in _tokens(own[place + 1].text)[:2]}
    found.add(f"r:{by_cues}")
    return found | _about(sentence, len(own), place, len(tokens), moment)


def _about(sentence: Sentence, count: int, place: int, size: int, moment: Moment) -> set[str]:
    where = "only" if count == 1 else "first" if place == 0 else "last" if place == count - 1 else "mid"
    found = {f"where:{moment}", f"pos:{where}", f"len:{min(7, size // 4)}"}
    text = sentence.text
    for name, is_there in (
        ("q", sentence.is_question),
        ("code", bool(_CODE.search(text))),
        ("digit", bool(_DIGIT.search(text))),
        ("name", bool(_NAME.search(text))),
    ):
        if is_there:
            found.add(name)
    said = [cue for cue in _CUES if sentence.heard.says(cue)]
    found |= {f"c:{cue}" for cue in said}
    return found | {f"cc:{one}:{two}" for number, two in enumerate(said) for one in said[:number]}


def _tokens(text: str) -> list[str]:
    return ["<num>" if _NUMBER.fullmatch(token) else token for token in _TOKEN.findall(text.lower().replace("’", "'"))]
