"""Typed by hand, or prose of a machine: a linear model over shapes.

What people paste is mostly written by programs and models: reviews, plans, answers of other agents. The model was
trained without labels, on short messages of people against the words of agents. Its score is about -3 for what people
type and above 0 for a machine's prose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from commonplace.learning.lasting.acts import word_set
from commonplace.patterns import regex

_SIGNS: Final = (("em", "—–"), ("typ", "“”’‘"), ("tick", "`"), ("paren", "("), ("semi", ";"))
_LOWER_AFTER_STOP: Final = regex(r"[.?!] [a-z]")
_LOWER_I: Final = regex(r"\bi\b")
_EMOJI: Final = regex("[\U0001f300-\U0001faff]")
_SLASH: Final = regex(r"\w/\w")
_LENGTHS: Final = (4, 8, 12, 18, 25, 35, 50)
"""Steps by which the length of a sentence is told."""


def features(text: str, shape: list[str]) -> set[str]:
    """Return what the model looks at in a sentence: its shapes, pairs of them, and signs."""
    found = set(shape)
    found.update(map(" ".join, zip(["^", *shape], [*shape, "$"], strict=True)))
    last = text.rstrip()[-1:]
    found.add("up:" + ("1" if text[:1].isupper() else "0" if text[:1].islower() else "-"))
    found.add("end:" + (last if last and last in ".?:" else "-"))
    found.add(f"len:{sum(len(shape) >= step for step in _LENGTHS)}")
    found.add("person:0" if word_set("personal").isdisjoint(shape) else "person:1")
    found.update(f"sign:{name}" for name, signs in _SIGNS if any(sign in text for sign in signs))
    found.update(f"sign:{name}" for name in _signs(text))
    return found


def _signs(text: str) -> list[str]:
    is_there = (
        ("bold", "**" in text),
        ("sp2", "  " in text),
        ("ell", "..." in text),
        ("eg", "e.g." in text or "i.e." in text),
        ("lowafter", _LOWER_AFTER_STOP.search(text)),
        ("lowi", _LOWER_I.search(text)),
        ("slash", "/" in text and _SLASH.search(text)),
        ("emoji", not text.isascii() and _EMOJI.search(text)),
    )
    return [name for name, there in is_there if there]


def score(weights: Mapping[str, float], text: str, shape: list[str]) -> float:
    """Return how much a sentence looks like the prose of a machine."""
    return weights.get("", 0.0) + math.fsum(weights.get(feature, 0.0) for feature in features(text, shape))
