"""How likely a sentence lasts: three linear models over features and one over words, joined and calibrated.

The three heads are *work* (how to work and check), *rule* (how things should be) and *fact* (how things are). A
sentence lasts if any of them says so. The weights are in `judge.json`; `training/` makes them, and `docs/learning.md`
is their card.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Final

import msgspec

from commonplace import package_files
from commonplace.learning.lasting.features import MeasuredSentence
from commonplace.memory.entries import CANDIDATE, LISTED, TOLD, Kind
from commonplace.memory.lessons import JudgeInput, JudgeSums

KINDS: Final[tuple[Kind, ...]] = ("preference", "rule", "decision", "environment", "failure", "procedure", "verify")
OUTRIGHT: Final = (0.0, LISTED, TOLD)
"""How likely a sentence lasts whose words say so, by how clearly they do."""
STATED: Final = 0.0
"""From these log odds on, a sentence states something, as far as a new person is concerned."""
MEANT: Final = (STATED, -0.5, -1.2)
"""The same for a sentence whose words say that it lasts, by how clearly they do."""
PERHAPS: Final = (STATED, -2.5, -1.2)
"""From these log odds on, such a sentence is at least a candidate."""
TYPED: Final = (0.0, 1.0, 2.0)
"""What looks more like the prose of a machine was probably not typed, by how clearly its words say that it lasts."""
_BITS: Final = 16
"""Words and pairs of words are hashed to so many bits."""


class LastingJudge(msgspec.Struct, frozen=True):
    """The weights."""

    hand: dict[str, float]
    heads: dict[str, tuple[float, float, float]]
    base: tuple[float, float, float]
    about: dict[str, tuple[float, ...]]
    about_base: tuple[float, ...]
    words: dict[int, float]
    word_base: float
    mix: float
    """How heavy the words are."""
    stated: dict[int, float]
    stated_base: float
    a: float
    b: float
    """The calibration: probability = sigmoid(a · sum + b)."""

    def sums(self, measured: MeasuredSentence) -> JudgeSums:
        """Return what a sentence adds up to by all that its message tells."""
        hashed = grams(measured.tokens)
        said = self.word_base + sum(self.words.get(gram, 0.0) for gram in hashed) / math.sqrt(len(hashed))
        return JudgeSums(self.base, said, self.about_base) + self.features(measured.features)

    def features(self, features: Mapping[str, float]) -> JudgeSums:
        """Return what features add to the sums."""
        heads = [0.0, 0.0, 0.0]
        about = [0.0] * (len(KINDS) + 1)
        for name, value in features.items():
            for at, weight in enumerate(self.heads.get(name, ())):
                heads[at] += weight * value
            for at, weight in enumerate(self.about.get(name, ())):
                about[at] += weight * value
        return JudgeSums((heads[0], heads[1], heads[2]), 0.0, tuple(about))

    def probability(self, sums: JudgeSums) -> float:
        """Return how likely a sentence with these sums lasts."""
        none = math.prod(1 - _sigmoid(head) for head in sums.heads)
        lasting = min(max(1 - none, 1e-6), 1 - 1e-6)
        return _sigmoid(self.a * (math.log(lasting / (1 - lasting)) + self.mix * sums.words) + self.b)


def kind(sums: JudgeSums) -> Kind:
    """Return what kind of lesson a sentence is, supposing that it lasts."""
    return max(zip(sums.about[1:], KINDS, strict=True))[1]


def alone(probability: float, judged: JudgeInput) -> float:
    """Return how likely a sentence lasts while little is known about the person: what they state is believed."""
    if judged.stated < STATED:
        return outright(probability, judged)
    return max(probability, TOLD if judged.outright else LISTED, outright(probability, judged))


def outright(probability: float, judged: JudgeInput) -> float:
    """Return how likely a sentence lasts, given whether its words say that it does."""
    clearly = judged.outright
    if is_outright(judged):
        return max(probability, OUTRIGHT[clearly])
    is_perhaps = clearly and judged.sample.hand < TYPED[clearly] and judged.stated >= PERHAPS[clearly]
    return max(probability, CANDIDATE) if is_perhaps else probability


def is_outright(judged: JudgeInput) -> bool:
    """Say whether the words of a sentence say that it lasts, and nothing speaks against it: it stands by itself."""
    clearly = judged.outright
    return bool(clearly) and judged.sample.hand < TYPED[clearly] and judged.stated >= MEANT[clearly]


@cache
def judge() -> LastingJudge:
    """Return the judge that is shipped."""
    data = (package_files.ROOT / "learning/lasting/judge.json").read_bytes()
    return msgspec.json.decode(data, type=LastingJudge)


def grams(tokens: list[str]) -> list[int]:
    """Return the hashes of words and pairs of words; numbers are one word."""
    words = ["^", *("<n>" if token[0].isdigit() else token for token in tokens), "$"]
    pairs = map(" ".join, pairwise(words))
    return sorted({zlib.crc32(gram.encode()) & ((1 << _BITS) - 1) for gram in (*words, *pairs)})


def _sigmoid(value: float) -> float:
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)
